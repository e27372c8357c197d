//! Every PNG by its pixels: dark texts on a light page, nothing cut off, and the size of the picture.

use std::collections::HashSet;
use std::process::Command;

use mantile::report::format::Format;
use mantile::report::svg::EDGE;
use mantile::request::{REQUESTS, UNCONTROLLED, entry};
use mantile::store::catalog::Catalog;
use mantile::store::png::png_with;
use resvg::tiny_skia::{Pixmap, PremultipliedColorU8};
use resvg::usvg::fontdb::Database;
use roxmltree::Document;
use serde_json::{Value, json};

use crate::requests::{LINES, request};

/// Pixels of a PNG for each of the picture.
const SCALE: u32 = 2;

/// Whether this machine draws no texts at all, which only a machine of a developer may.
fn has_no_font(fault: &str) -> bool {
    let none = fault.contains("no font") && std::env::var_os("CI").is_none();
    if none {
        eprintln!("SKIPPED: {fault}");
    }
    none
}

fn brightness(pixel: &PremultipliedColorU8) -> u32 {
    (u32::from(pixel.red()) + u32::from(pixel.green()) + u32::from(pixel.blue())) / 3
}

/// Checks a PNG against the picture that it draws.
fn looked_at(name: &str, png: &[u8], svg: &str) {
    let pixels = Pixmap::decode_png(png).unwrap();
    let read = Document::parse(svg).unwrap();
    let side = |key: &str| read.root_element().attribute(key).unwrap().parse::<f64>().unwrap();
    let size = [side("width"), side("height")].map(|side| (side * f64::from(SCALE)).ceil() as u32);
    assert_eq!([pixels.width(), pixels.height()], size, "{name}");
    let all = pixels.pixels();
    assert!(all.iter().all(|pixel| pixel.alpha() == 255), "{name} is transparent");
    let page = all[0];
    assert!(brightness(&page) > 240, "{name}: the page is {page:?}");
    let share = |wanted: fn(&PremultipliedColorU8) -> bool| {
        all.iter().filter(|pixel| wanted(pixel)).count() as f64 / all.len() as f64
    };
    let (dark, light) = (share(|pixel| brightness(pixel) < 40), share(|pixel| brightness(pixel) > 200));
    assert!(dark < 0.1 && light > 0.5, "{name}: {dark} is dark, {light} is light");
    let colours: HashSet<_> = all.iter().map(|pixel| (pixel.red(), pixel.green(), pixel.blue())).collect();
    assert!(colours.len() >= 16, "{name}: {} colours", colours.len());
    let (width, height) = (pixels.width(), pixels.height());
    let at = |x: u32, y: u32| pixels.pixel(x, y).unwrap();
    let border = (0..width).flat_map(|x| [(x, 0), (x, height - 1)]);
    let border = border.chain((0..height).flat_map(|y| [(0, y), (width - 1, y)]));
    assert!(border.into_iter().all(|(x, y)| at(x, y) == page), "{name} is cut off");
    // The two lines of the heading stand at the left edge, their bases 30 and 48 pixels down.
    for base in [30, 48] {
        let rows = SCALE * (base - 12)..SCALE * base;
        let columns = (EDGE as u32 * SCALE)..(EDGE as u32 + 60) * SCALE;
        let inked = rows.flat_map(|y| columns.clone().map(move |x| (x, y)));
        let inked = inked.filter(|(x, y)| brightness(&at(*x, *y)) < 128).count();
        assert!(inked > 60, "{name}: {inked} dark pixels in the line at {base}");
    }
}

/// More kinds of pictures than the requests of the other tests have.
fn more() -> Vec<(&'static str, Value)> {
    let scenario = json!({"model": "Llama-3.1-8B", "hardware": "2xh100"});
    let sweep = |vary: Value| ("sweep", json!({"scenario": scenario, "vary": vary}));
    vec![
        sweep(json!(["isl=1k..4k*2"])),
        sweep(json!(["isl=1k..8k*2", "concurrency=1..512*2"])),
        sweep(json!(["runtime=vllm,sglang"])),
        (
            "optimize",
            json!({"scenario": {"model": "Qwen3-32B", "hardware": "4xh100", "pareto": ["tpot", "usd_per_mtok"]}}),
        ),
    ]
}

#[test]
fn every_answer_that_is_drawn_is_a_picture_in_pixels() {
    let lines = LINES.iter().map(|line| (line[0], request(line)));
    let mut seen = HashSet::new();
    for (name, body) in lines.chain(more()) {
        let question = entry(name).unwrap();
        let answer = (question.answer)(&Catalog::default(), &body, &UNCONTROLLED).unwrap();
        let drawn = |format| question.formatted(&Catalog::default(), &answer, format);
        let svg = drawn(Format::Svg).unwrap();
        match (drawn(Format::Png), svg) {
            (Ok(None), None) => {}
            (Ok(Some(png)), Some(svg)) => {
                looked_at(&format!("{name} {body}"), &png, &String::from_utf8(svg).unwrap());
                seen.insert(name);
            }
            (Err(fault), _) if has_no_font(&fault.to_string()) => return,
            (png, svg) => panic!("{name} {body}: {png:?} of {svg:?}"),
        }
    }
    let expected: HashSet<&str> = REQUESTS
        .iter()
        .filter(|one| one.formats().any(|one| one == Format::Png))
        .map(|one| one.name)
        .collect();
    assert_eq!(seen, expected);
}

/// The command line writes the same pixels in each of its ways, and those of pictures that only it has.
#[test]
fn the_command_line_writes_the_same_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let run = |words: &[&str]| {
        let done =
            Command::new(env!("CARGO_BIN_EXE_mantile-opt")).args(words).arg("--no-config").output().unwrap();
        let fault = String::from_utf8_lossy(&done.stderr).into_owned();
        if done.status.success() { Ok(done.stdout) } else { Err(fault) }
    };
    let requested = ["optimize", "--model", "Qwen3-0.6B", "--hardware", "1xl40s"];
    let printed = match run(&[&requested[..], &["--format", "png"]].concat()) {
        Err(fault) if has_no_font(&fault) => return,
        printed => printed.unwrap(),
    };
    let svg = String::from_utf8(run(&[&requested[..], &["--format", "svg"]].concat()).unwrap()).unwrap();
    looked_at("--format png", &printed, &svg);
    for flag in ["--out", "--plot"] {
        let file = path(&format!("{flag}.png"));
        run(&[&requested[..], &[flag, &file]].concat()).unwrap();
        assert!(std::fs::read(file).unwrap() == printed, "{flag}");
    }
    let timeline = ["estimate", "--model", "Qwen3-0.6B", "--hardware", "1xl40s", "--plan", "1 x tp1 @4"];
    let rows = "model,hardware,runtime,isl,osl,concurrency,tp,tpot_ms,mode\n\
                Llama-3.1-8B,h100-sxm,vllm,128,64,4,1,9.0,agg\nLlama-3.1-8B,h100-sxm,vllm,128,64,8,1,9.5,agg\n";
    let table = path("serving.csv");
    std::fs::write(&table, rows).unwrap();
    let scattered = ["validate", &table];
    for (name, words) in [("timeline", &timeline[..]), ("scatter", &scattered)] {
        let [png, svg] = ["png", "svg"].map(|ending| path(&format!("{name}.{ending}")));
        run(&[words, &["--plot", &png]].concat()).unwrap();
        run(&[words, &["--plot", &svg]].concat()).unwrap();
        looked_at(name, &std::fs::read(png).unwrap(), &std::fs::read_to_string(svg).unwrap());
    }
}

/// Without a font there is a message, not a picture without its texts.
#[test]
fn without_a_font_there_is_no_png() {
    let answer = (entry("optimize").unwrap().answer)(&Catalog::default(), &request(LINES[0]), &UNCONTROLLED);
    let svg = entry("optimize").unwrap().formatted(&Catalog::default(), &answer.unwrap(), Format::Svg);
    let svg = String::from_utf8(svg.unwrap().unwrap()).unwrap();
    let fault = png_with(&svg, Database::new()).unwrap_err();
    assert!(fault.found.contains("no font") && fault.fix.contains(".svg"), "{fault}");
}
