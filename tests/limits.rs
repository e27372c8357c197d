//! What every number from outside may be: the flags keep to the one list of limits, the help tells them, the document
//! is that list, and what is outside is refused wherever it is stated.

use clap::{Arg, Command};
use mantile::admission::MESSAGE_BYTES;
use mantile::request::permalink::{MOST_BYTES, MOST_JSON};
use mantile::spec::limits::{LIMITS, markdown, of_flag};
use mantile::store::file::FileSizeLimit;

use crate::source;

/// Names that stand for a number in the help: `--isl <N>`.
const NUMBERS: [&str; 9] = ["N", "R", "P", "USD", "X", "S", "T", "TOKENS", "WxH"];

/// Every flag of every command, with the names of the commands that lead to it.
fn flags(command: &Command, way: &[String]) -> Vec<(Vec<String>, Arg)> {
    let own = command.get_arguments().filter(|arg| arg.get_long().is_some());
    let mut found: Vec<_> = own.map(|arg| (way.to_vec(), arg.clone())).collect();
    for sub in command.get_subcommands() {
        found.extend(flags(sub, &[way, &[sub.get_name().to_owned()]].concat()));
    }
    found
}

fn is_number(arg: &Arg) -> bool {
    // A rate and a runtime are both `R`; a runtime is a text.
    let of_text = ["runtime", "tpot-percentile"].contains(&arg.get_long().unwrap());
    !of_text && arg.get_value_names().is_some_and(|names| names.iter().any(|n| NUMBERS.contains(&n.as_str())))
}

#[test]
fn every_number_of_every_command_has_a_limit_that_its_help_shows() {
    let command = mantile::cli::command();
    let mut numbers = 0;
    for (way, arg) in flags(&command, &[]).into_iter().filter(|(_, arg)| is_number(arg)) {
        let flag = arg.get_long().unwrap();
        let limit = of_flag(flag).unwrap_or_else(|| panic!("{way:?} --{flag}: no limit is listed"));
        let help = arg.get_help().unwrap().to_string();
        assert!(help.contains(&limit.range()), "{way:?} --{flag}: {help}");
        numbers += 1;
    }
    assert!(numbers > 100, "only {numbers} numbers were found");
}

/// Whatever is outside is refused by the parser itself, or else when the question is resolved; never taken.
#[test]
fn no_flag_takes_a_number_beyond_its_limit() {
    let command = mantile::cli::command();
    for (way, arg) in flags(&command, &[]).into_iter().filter(|(_, arg)| is_number(arg)) {
        let flag = arg.get_long().unwrap();
        let limit = of_flag(flag).unwrap();
        let parses = |value: &str| {
            let mut line = vec!["mantile-opt".to_owned()];
            line.extend(way.iter().cloned());
            line.extend(arg.get_long().map(|flag| format!("--{flag}={value}")));
            // What a command cannot do without.
            line.extend(
                ["validate", "calibrate", "verify"]
                    .contains(&way.first().map_or("", |w| w))
                    .then(|| "x".into()),
            );
            command.clone().try_get_matches_from(line)
        };
        // Times, money and contexts have units of their own: they are read with the question.
        let by_parser = parses("soon").is_err();
        let beyond = format!("{:e}", limit.most * 4.0 + 1.0);
        for wrong in
            ["18446744073709551615", "18446744073709551616", "-1", "NaN", "inf", "1e999", beyond.as_str()]
        {
            let outside = wrong.parse::<f64>().is_ok_and(|number| !limit.holds(number));
            if by_parser && outside {
                assert!(parses(wrong).is_err(), "{way:?} --{flag}={wrong} is taken");
            }
        }
    }
}

#[test]
fn the_document_of_limits_is_the_list() {
    let path = source::root().join("docs/limits.md");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let (head, rest) = text.split_once(BEGIN).expect("the document has a place for the list");
    let (_, tail) = rest.split_once(END).expect("and an end of it");
    let whole = format!("{head}{BEGIN}\n\n{}\n{END}{tail}", markdown());
    if std::env::var("TRYCMD").is_ok_and(|wish| wish == "overwrite") {
        std::fs::write(&path, &whole).unwrap();
    } else {
        assert!(text == whole, "docs/limits.md is not the list; TRYCMD=overwrite writes it anew");
    }
    assert!(LIMITS.iter().all(|limit| whole.contains(&format!("`{}`", limit.name))));
}

const BEGIN: &str = "<!-- the list of src/spec/limits.rs -->";
const END: &str = "<!-- its end -->";

#[test]
fn the_sizes_of_the_document_are_those_of_the_program() {
    let text = std::fs::read_to_string(source::root().join("docs/limits.md")).unwrap();
    let mebibytes = |bytes: u64| format!("{} MiB", bytes >> 20);
    for (what, most) in [
        ("a model's configuration, ", mebibytes(FileSizeLimit::Configuration.bytes())),
        ("what is fetched from a hub", mebibytes(FileSizeLimit::Configuration.bytes())),
        ("headers of a GGUF file, in all its parts", mebibytes(mantile::spec::model::gguf::MOST_BYTES)),
        ("a saved answer, a table, a trace", mebibytes(FileSizeLimit::Answer.bytes())),
        ("a body over HTTP, a message over MCP", mebibytes(MESSAGE_BYTES as u64)),
        ("a permalink", format!("{MOST_BYTES} bytes")),
        ("a permalink", mebibytes(MOST_JSON as u64)),
    ] {
        let row = text.lines().find(|line| line.starts_with(&format!("| {what}"))).unwrap();
        assert!(row.contains(&most), "{row}: {most}");
    }
}
