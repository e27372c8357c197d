//! Names from outside, as hostile as they come, through every output: a terminal, a table, a picture and JSON show
//! them and obey none.

use mantile::graph::inspect::Inspection;
use mantile::graph::model::ModelGraph;
use mantile::report::catalog::{entry, list};
use mantile::report::graph::{GraphDrawing, notation, svg};
use mantile::report::inspect::{Inspected, text as opened};
use mantile::report::residuals::{Strip, residuals};
use mantile::report::sheet;
use mantile::spec::error::Error;
use mantile::spec::model::ModelConfig;
use mantile::spec::visible::visible;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// What a terminal, a spreadsheet, a page or a drawing would obey.
const PARTS: [&str; 24] = [
    "\u{1b}[31m",
    "\u{1b}]0;title\u{7}",
    "\u{1b}[2J",
    "\u{9b}2J",
    "\u{202e}",
    "\u{2066}",
    "\u{200f}",
    "\u{61c}",
    "\u{feff}",
    "\u{2028}",
    "\n",
    "\r",
    "\t",
    "\u{0}",
    "=1+1",
    "@SUM(A1)",
    "-2+3",
    "<script>",
    "]]>",
    "\"",
    "&amp;",
    "{};#",
    "\\",
    "|x",
];

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::collection::vec(prop::sample::select(PARTS.to_vec()), 1..5).prop_map(|parts| parts.concat()),
        any::<String>(),
        "[=+@-][a-z0-9(]{1,9}",
    ]
}

/// Whether a text for people holds what acts.
fn harmless(text: &str) -> bool {
    !text.chars().any(|c| acts(c) && c != '\n')
}

/// A small model under any name.
fn model(name: &str) -> Inspected {
    let config = r#"{"model_type": "gemma2", "hidden_size": 6, "num_hidden_layers": 2, "vocab_size": 11,
        "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 2, "intermediate_size": 10,
        "sliding_window": 5}"#;
    let config = ModelConfig::parse(config).unwrap();
    Inspected {
        weight_format: Some(name.to_owned()),
        published_total: None,
        inspection: Inspection::of(&ModelGraph::build(&config).unwrap()),
        name: name.to_owned(),
        source: name.to_owned(),
    }
}

/// A drawing in which everything is called `name`.
fn view(name: &str) -> GraphDrawing {
    let mut view = GraphDrawing::of(&model(name));
    view.description = name.to_owned();
    for group in &mut view.groups {
        (group.name, group.note) = (name.to_owned(), name.to_owned());
    }
    for step in view.graph.node_weights_mut() {
        step.name = name.to_owned();
        step.lines = vec![name.to_owned()];
        step.details = vec![name.to_owned()];
    }
    view
}

/// What is left of Graphviz or Mermaid without what stands in quotes and the line of the title; `escape` begins what
/// ends no quote.
fn skeleton(text: &str, escape: Option<char>) -> String {
    let (mut left, mut inside, mut escaped) = (String::new(), false, false);
    for line in text.lines().filter(|line| !line.trim().starts_with("acc")) {
        for c in line.chars() {
            match c {
                '"' if !escaped => inside = !inside,
                _ if !inside => left.push(c),
                _ => {}
            }
            escaped = Some(c) == escape && !escaped;
        }
        assert!(!inside, "a quote is open at the end of {line}");
        left.push('\n');
    }
    left
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pictures_parse_and_show_every_name(name in hostile()) {
        let picture = svg::svg(&view(&name));
        let parsed = roxmltree::Document::parse(&picture).unwrap();
        prop_assert!(harmless(&picture));
        let shown = visible(&name);
        let texts = parsed.descendants().filter(|node| node.has_tag_name("text") && node.text() == Some(&*shown));
        prop_assert!(name.is_empty() || texts.count() > 0);
        prop_assert!(parsed.descendants().all(|node| !node.has_tag_name("script")));

        let strip = |of: f64| Strip { name: name.clone(), tpot: vec![of, 1.0], ttft: vec![of] };
        let picture = residuals(&name, &[strip(f64::NAN), strip(f64::INFINITY), strip(0.0), strip(2.0)]);
        let parsed = roxmltree::Document::parse(&picture).unwrap();
        prop_assert!(harmless(&picture) && !picture.contains("NaN") && !picture.contains("inf\""));
        let drawn = parsed.descendants().filter(|node| node.is_element() && node.text() == Some(&*shown));
        prop_assert!(name.is_empty() || drawn.count() >= 5, "the title and every line");
    }

    #[test]
    fn drawings_in_words_have_the_same_shape_under_every_name(name in hostile()) {
        let (plain, view) = (view("x"), view(&name));
        for (drawn, escape) in [(notation::dot as fn(&GraphDrawing) -> String, Some('\\')), (notation::mermaid, None)] {
            prop_assert_eq!(skeleton(&drawn(&view), escape), skeleton(&drawn(&plain), escape));
        }
        prop_assert!(harmless(&notation::dot(&view)) && harmless(&notation::mermaid(&view)));
    }

    #[test]
    fn tables_have_as_many_lines_under_every_name(name in hostile(), other in hostile()) {
        let lines = |name: &str, other: &str| {
            let line = |id: &str| mantile::report::catalog::CatalogLine {
                id: id.to_owned(), name: name.to_owned(), aliases: vec![other.to_owned()],
                summary: other.to_owned(), user: true,
                facts: Default::default(),
            };
            let value = json!({ name: other, "figure": {"value": name, "source": other}, "list": [name, other] });
            [list(&[line(name), line(other)]), entry(&value)]
        };
        for (table, plain) in lines(&name, &other).iter().zip(lines("x", "y")) {
            prop_assert!(harmless(table), "{:?}", table);
            if name != "figure" && name != "list" {
                prop_assert_eq!(table.lines().count(), plain.lines().count(), "{}", table);
            }
        }
    }

    #[test]
    fn an_error_has_four_lines_whatever_is_in_it(name in hostile(), other in hostile()) {
        let fault = Error::new(&name, &other, &name, &other).in_file(&other).to_string();
        prop_assert!(harmless(&fault), "{:?}", fault);
        prop_assert_eq!(fault.lines().count(), 4, "{}", fault);
    }
}

/// An entry of the catalogue under other names.
fn renamed(kind: &str, name: &str, with: &[(&str, Value)]) -> String {
    let shipped = text(&run(&["catalog", kind, name, "--format", "json"]).stdout);
    let mut value: Value = serde_json::from_str(&shipped).unwrap();
    for (key, with) in with {
        value[*key] = with.clone();
    }
    value.to_string()
}

#[test]
fn hostile_names_pass_through_the_commands_and_do_nothing() {
    for name in [
        "=1+1<script>\"&]]>",
        "@SUM(A1) $(touch pwned) `id`",
        // These are refused where they name an entry or a folder.
        "=1+1\u{1b}]0;pwned\u{7}\u{1b}[2J",
        "\u{202e}<script>\"&\u{9b}31m\nfound: nothing",
        "@SUM(A1)\r\u{2066}\t\u{feff}\u{200f}",
        "-2+3\u{1b}[8m\u{61c}]]>",
    ] {
        let home = tempfile::tempdir().unwrap();
        let put = |folder: &str, text: String| {
            fs::create_dir_all(home.path().join(folder)).unwrap();
            fs::write(home.path().join(folder).join(format!("{name}.json").replace('/', "")), text).unwrap();
        };
        let id = name.replace('/', "");
        put(
            "hardware/devices",
            renamed(
                "devices",
                "h100",
                &[("id", json!(id)), ("name", json!(name)), ("aliases", json!([name]))],
            ),
        );
        put(
            "objectives",
            renamed("objectives", "throughput", &[("id", json!(id)), ("description", json!(name))]),
        );
        put(
            "hardware/rigs",
            renamed(
                "rigs",
                "spark-mac-studio",
                &[("id", json!(id)), ("name", json!(name)), ("aliases", json!([]))],
            ),
        );
        let folder = home.path().join(&id);
        fs::create_dir(&folder).unwrap();
        let config: Value =
            serde_json::from_str(&text(&run(&["catalog", "models", "Qwen3-8B", "--format", "json"]).stdout))
                .unwrap();
        fs::write(folder.join("config.json"), config["config"].to_string()).unwrap();
        let folder = format!("./{id}");
        let table = home.path().join("t.csv");
        let cell = format!("\"{}\"", name.replace('"', "\"\""));
        fs::write(&table, format!("model,hardware,runtime,isl,osl,concurrency,tp,tpot_ms,mode\n{cell},{cell},{cell},9,9,1,1,9.0,{cell}\n")).unwrap();
        let table = table.to_str().unwrap();
        let out = home.path().join("out");
        let out = out.to_str().unwrap();

        let requested =
            ["--model", &folder, "--hardware", "1xh100", "--isl", "99", "--osl", "9", "--objective", &id];
        let mut commands: Vec<Vec<&str>> = vec![
            vec!["catalog", "devices", &id],
            vec!["catalog", "diff", &id, "h200", "--kind", "devices"],
            vec!["catalog", "check", home.path().to_str().unwrap()],
            vec!["inspect", &folder, "--graph", "dot"],
            vec!["inspect", &folder, "--graph", "mermaid"],
            vec!["inspect", &folder, "--graph", "svg"],
            vec!["--model", name],
            vec!["--hardware", name],
            vec!["--isl", name],
            vec![name],
            vec!["validate", table, "--rows", out, "--plot", "-"],
        ];
        for format in ["table", "csv", "json"] {
            for args in [
                ["catalog", "devices"].as_slice(),
                &["catalog", "objectives"],
                &["catalog", "rigs"],
                &["inspect", &folder],
                &["inspect", "--diff", &folder, "Qwen3-14B"],
                &["place", "--model", "Qwen3-8B", "--hardware", &id],
                &["validate", table],
                &requested,
            ] {
                commands.push([args, &["--format", format]].concat());
            }
        }
        for args in &commands {
            let output =
                mantile(args).env("MANTILE_HOME", home.path()).current_dir(home.path()).output().unwrap();
            let (reported, fault) = (text(&output.stdout), text(&output.stderr));
            assert!(harmless(&reported), "{args:?}: {reported:?}");
            assert!(harmless(&fault) && !fault.contains("panicked"), "{args:?}: {fault:?}");
            let coloured = mantile(args)
                .env("MANTILE_HOME", home.path())
                .env("CLICOLOR_FORCE", "1")
                .current_dir(home.path())
                .output()
                .unwrap();
            let codes = text(&coloured.stdout) + &text(&coloured.stderr);
            let own = ["\u{1b}[1m", "\u{1b}[0m", "\u{1b}[4m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"];
            let left = own.iter().fold(codes, |left, code| left.replace(code, ""));
            assert!(harmless(&left), "{args:?}: {left:?}");
            if args.contains(&"csv") && output.status.success() {
                cells(&reported);
            }
            if args.contains(&"json") && output.status.success() {
                let value: Value =
                    serde_json::from_str(&reported).unwrap_or_else(|fault| panic!("{args:?}: {fault}"));
                if args[..2] == ["catalog", "devices"] {
                    assert!(value.as_array().unwrap().iter().any(|line| line["name"] == name), "{args:?}");
                }
            }
            let shown = !name.chars().any(acts);
            assert!(shown || !args.contains(&folder.as_str()) || !output.status.success(), "{args:?}");
            if args.contains(&"svg") && shown {
                roxmltree::Document::parse(&reported).unwrap();
            }
        }
        cells(&fs::read_to_string(out).unwrap());
    }
}

/// No cell of a table is computed.
fn cells(table: &str) {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(table.as_bytes());
    for record in reader.records().map(Result::unwrap) {
        for cell in record.iter() {
            assert_eq!(sheet::cell(cell), cell, "as it would be written again");
        }
    }
}

#[test]
fn no_colour_reaches_any_wants_none() {
    let plain = run(&["catalog", "links"]).stdout;
    let forced = mantile(&["--isl", "0"]).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output().unwrap();
    assert!(!text(&forced.stderr).contains('\u{1b}'));
    assert_eq!(mantile(&["catalog", "links"]).env("NO_COLOR", "1").output().unwrap().stdout, plain);
    assert!(opened(&model("x")).starts_with('x'));
}
