//! The same, recalculated by LibreOffice: `.ci/workbook` runs it.

use std::fs;
use std::path::Path;
use std::process::Command;

use ironcalc::export::save_to_xlsx;
use mantile::request::workbook::workbook;
use mantile::store::catalog::Catalog;

use super::cases::cases;
use super::changed::{ChangedReading, agree, metrics, posed};
use super::{Book, alike};

/// Makes LibreOffice recalculate every file that it reads.
const SETTINGS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load"><prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"#;

/// Recalculates every workbook of a folder into another one.
fn recalculate(folder: &Path, from: &Path, to: &Path) {
    let user = folder.join("profile/user");
    fs::create_dir_all(&user).unwrap();
    fs::write(user.join("registrymodifications.xcu"), SETTINGS).unwrap();
    let mut files: Vec<_> = fs::read_dir(from).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let profile = format!("-env:UserInstallation=file://{}", folder.join("profile").display());
    let mut office = Command::new("soffice");
    office.args([&profile, "--headless", "--convert-to", "xlsx:Calc MS Excel 2007 XML", "--outdir"]);
    let output = office.arg(to).args(&files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_dir(to).unwrap().count(), files.len(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// An input that every case has.
const CHANGED: &str = "memory_bandwidth";

#[test]
#[ignore = "needs LibreOffice: .ci/workbook"]
fn libreoffice_recalculates_every_cell_and_every_change() {
    let (catalog, home) = (Catalog::default(), tempfile::tempdir().unwrap());
    let [from, to] = ["from", "to"].map(|name| home.path().join(name));
    fs::create_dir(&from).unwrap();
    let mut changes = Vec::new();
    for (number, case) in cases().iter().enumerate() {
        let bytes = workbook(&catalog, &case.scenario, case.plan).unwrap();
        fs::write(from.join(format!("case{number}.xlsx")), &bytes).unwrap();
        // Saved without recalculation: every formula still has its old value.
        let mut book = Book::read(&bytes);
        let (place, ..) = book.inputs().into_iter().find(|(_, symbol, _)| symbol == CHANGED).unwrap();
        let value = book.number(place);
        book.set(place, 0.9 * value);
        save_to_xlsx(&book.model, from.join(format!("changed{number}.xlsx")).to_str().unwrap()).unwrap();
        changes.push(value);
    }
    recalculate(home.path(), &from, &to);
    for (number, case) in cases().iter().enumerate() {
        let read = |folder: &Path, name: &str| {
            Book::read(&fs::read(folder.join(format!("{name}{number}.xlsx"))).unwrap())
        };
        let (ours, theirs) = (read(&from, "case"), read(&to, "case"));
        for (place, formula) in ours.formulas() {
            let (ours, theirs) = (ours.value(place), theirs.value(place));
            assert!(
                alike(&ours, &theirs),
                "{}: {place:?} {formula}: {ours:?}, LibreOffice {theirs:?}",
                case.plan
            );
        }
        let (changed, value) = (read(&to, "changed"), changes[number]);
        if changed.branches_changed() == 0.0 {
            let reading = ChangedReading { symbol: CHANGED, value, to: 0.9 * value };
            agree(
                &format!("{}: LibreOffice, {CHANGED}", case.plan),
                &changed,
                &metrics(&posed(case, &catalog), &reading),
            );
        }
    }
}
