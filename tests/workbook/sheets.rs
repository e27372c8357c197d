//! Names of sheets and cells, texts that are no formulas, and bytes that are the same each time.

use mantile::request::workbook::workbook;
use mantile::store::catalog::Catalog;
use mantile::store::kind::CatalogKind;

use super::Book;
use super::cases::cases;
use crate::ask::on;

#[test]
fn sheets_and_names_are_these() {
    let book = Book::of(&cases()[0], &Catalog::default());
    assert_eq!(book.sheets(), SHEETS);
    let mut names: Vec<String> =
        book.model.get_defined_name_list().into_iter().map(|(name, ..)| name).collect();
    names.sort();
    assert_eq!(names, NAMES);
}

/// Sheets, in order.
const SHEETS: [&str; 10] = [
    "front",
    "inputs",
    "prefill",
    "decode",
    "memory",
    "communication",
    "serving",
    "cost",
    "plan",
    "assumptions",
];
/// Names that formulas of the user's own may use.
const NAMES: [&str; 30] = [
    "concurrency",
    "decode",
    "decode.memory",
    "devices",
    "e2e",
    "e2e_ms",
    "facility_watts",
    "max_context",
    "max_context_tokens",
    "output_tok_s",
    "output_tok_s_per_device",
    "output_tok_s_per_user",
    "prefill",
    "requests_per_s",
    "tok_per_joule",
    "tok_per_usd",
    "tpot",
    "tpot_ms",
    "ttft",
    "ttft_ms",
    "usable_memory",
    "usd_per_day",
    "usd_per_hour",
    "usd_per_month",
    "usd_per_mtok",
    "usd_per_mtok_total",
    "usd_per_second",
    "usd_per_token",
    "usd_per_token_total",
    "watts",
];

#[test]
fn the_same_question_gives_the_same_bytes() {
    let bytes = || workbook(&Catalog::default(), &cases()[4].scenario, cases()[4].plan).unwrap();
    assert_eq!(bytes(), bytes());
}

/// Functions that formulas use.
const FUNCTIONS: [&str; 9] = ["MAX", "MIN", "SQRT", "ROUNDUP", "LN", "IF", "SUM", "SUMIF", "INT"];

#[test]
fn no_text_is_a_formula() {
    let shipped = Catalog::default();
    let text = shipped.entries(CatalogKind::Devices)["nvidia-h100-sxm"].text().unwrap();
    let hostile = text
        .replace("\"source\": \"", "\"source\": \"=HYPERLINK(1) ")
        .replace("NVIDIA H100 SXM5 80GB", "=1+1");
    let catalog = Catalog::default().with_entry(CatalogKind::Devices, "nvidia-h100-sxm", &hostile);
    let bytes = workbook(&catalog, &on("Llama-3.1-8B", "1xh100"), "1 x tp1 @4").unwrap();
    let book = Book::read(&bytes);
    let texts: Vec<String> = book.cells().into_iter().map(|place| book.text(place)).collect();
    assert!(texts.iter().any(|text| text.starts_with("=HYPERLINK(1) ")), "a source is shown as it is");
    for (place, formula) in book.formulas() {
        let called = formula.split(|c: char| !c.is_ascii_alphanumeric() && c != '(').filter_map(|word| {
            let (name, _) = word.split_once('(')?;
            (!name.is_empty()).then_some(name)
        });
        for name in called {
            assert!(FUNCTIONS.contains(&name), "{place:?}: {formula} calls {name}");
        }
    }
}

#[test]
fn formulas_stay_within_the_limits_of_the_format() {
    for case in cases() {
        let book = Book::of(&case, &Catalog::default());
        for (place, formula) in book.formulas() {
            let (mut depth, mut deepest) = (0, 0);
            for c in formula.chars() {
                depth += i32::from(c == '(') - i32::from(c == ')');
                deepest = deepest.max(depth);
            }
            assert!(formula.len() < 8192 && deepest < 64, "{}: {place:?}: {formula}", case.plan);
        }
    }
}

#[test]
fn a_plan_that_cannot_run_has_no_workbook() {
    let fault = workbook(&Catalog::default(), &on("Llama-3.1-8B", "1xh100"), "1 x tp3 @4").unwrap_err();
    assert!(!fault.fix.is_empty(), "{fault}");
}
