//! The documents: links lead somewhere, and lines are short enough to read beside code.

use std::path::Path;

use super::none;
use super::source::{Source, files, root};

/// No line of prose is longer; output of commands, tables and addresses may be.
const WIDEST: usize = 120;

fn at_root(name: &str) -> Source {
    Source { name: name.into(), text: std::fs::read_to_string(root().join(name)).unwrap() }
}

fn documents() -> Vec<Source> {
    let named = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(at_root);
    named.into_iter().chain(files("docs", "md")).collect()
}

/// Lines outside fenced blocks, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut inside = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = !inside;
        } else if !inside {
            found.push((number + 1, line));
        }
    }
    found
}

#[test]
fn lines_of_documents_are_short() {
    let mut faults = Vec::new();
    for document in documents() {
        for (number, line) in prose(&document.text) {
            let free = line.starts_with('|') || line.starts_with("<!--") || line.contains("](http");
            if !free && line.chars().count() > WIDEST {
                faults.push(format!("{}:{number}: {} characters", document.name, line.chars().count()));
            }
        }
    }
    none(&faults);
}

/// The anchor that a heading has on a page.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_of_documents_lead_somewhere() {
    let all = documents();
    let mut faults = Vec::new();
    for document in &all {
        let folder = Path::new(&document.name).parent().unwrap();
        for (number, line) in prose(&document.text) {
            for (at, _) in line.match_indices("](") {
                let target = line[at + 2..].split(')').next().unwrap();
                if target.starts_with("http") {
                    continue;
                }
                let (file, place) = target.split_once('#').unwrap_or((target, ""));
                let path = if file.is_empty() {
                    root().join(&document.name)
                } else {
                    root().join(folder).join(file)
                };
                let there = path.exists()
                    && (place.is_empty()
                        || prose(&std::fs::read_to_string(&path).unwrap())
                            .iter()
                            .filter_map(|(_, line)| line.strip_prefix('#'))
                            .any(|heading| anchor(heading.trim_start_matches('#')) == place));
                if !there {
                    faults.push(format!("{}:{number}: {target}", document.name));
                }
            }
        }
    }
    none(&faults);
}

/// A block without a language would be run as a console session.
#[test]
fn blocks_of_documents_name_their_language() {
    let mut faults = Vec::new();
    for document in documents() {
        let fences = document.text.lines().enumerate().filter(|(_, line)| line.starts_with("```"));
        let opening = fences.step_by(2).filter(|(_, line)| line.trim() == "```");
        faults.extend(opening.map(|(number, _)| format!("{}:{}", document.name, number + 1)));
    }
    none(&faults);
}

/// Files and folders of the project that documents name in code marks are there.
#[test]
fn paths_in_documents_exist() {
    const FOLDERS: [&str; 8] =
        ["src/", "tests/", "hardware/", "models/", "objectives/", "docs/", "benches/", "fuzz/"];
    let mut faults = Vec::new();
    for document in documents() {
        for (number, line) in prose(&document.text) {
            for name in line.split('`').skip(1).step_by(2) {
                let pattern = name.contains(['<', '*', ' ', '{', '…']);
                let named = FOLDERS.iter().any(|folder| name.starts_with(folder));
                if named && !pattern && !root().join(name).exists() {
                    faults.push(format!("{}:{number}: {name}", document.name));
                }
            }
        }
    }
    none(&faults);
}

/// The picture of the terminal shows a console block that the tests run.
#[test]
fn the_terminal_picture_shows_a_tested_answer() {
    let picture = std::fs::read_to_string(root().join("docs/terminal.svg")).unwrap();
    let usage = std::fs::read_to_string(root().join("docs/usage.md")).unwrap();
    let known: Vec<&str> = usage.lines().map(str::trim).collect();
    let shown = picture.lines().filter(|line| line.starts_with("<text"));
    let shown = shown.map(|line| line.split_once('>').unwrap().1.trim_end_matches("</text>"));
    let shown: Vec<String> = shown.map(|text| text.replace("&lt;", "<").replace("&gt;", ">")).collect();
    assert!(shown.len() > 15);
    let absent = shown.into_iter().filter(|text| !known.contains(&text.replace("&amp;", "&").as_str()));
    none(&absent.collect::<Vec<_>>());
}

/// Commands that fetch a package by its name.
const INSTALLERS: [&str; 18] = [
    "pip install",
    "pipx install",
    "pipx run",
    "uv add",
    "uv pip install",
    "uv tool install",
    "uvx",
    "conda install",
    "cargo install",
    "cargo binstall",
    "cargo add",
    "brew install",
    "winget install",
    "scoop install",
    "npm install",
    "npx",
    "docker pull",
    "podman pull",
];

/// Why a line fetches the project from where it is not: no package, image, action or address of it is published.
fn unpublished(line: &str) -> Option<String> {
    let named = |words: &str| {
        let words = words.split(['`', '#', ';']).next().unwrap_or_default().split_whitespace();
        // A path is in a clone, or a file of a release.
        let mut packages = words.map(|word| word.trim_matches(['"', '\'', ',', '.', '(', ')']));
        let own = |word: &&str| word.starts_with("mantile") && !word.contains('/') && !word.ends_with(".whl");
        packages.find(own).map(str::to_owned)
    };
    let installed = INSTALLERS.iter().find_map(|installer| {
        let (_, after) = line.split_once(installer)?;
        named(after.strip_prefix(' ')?).map(|package| format!("{installer} {package}"))
    });
    let used = line.split_once("uses:").map(|(_, action)| action.trim().trim_matches(['`', '"']));
    let action = used.filter(|action| action.contains("mantile") && action.contains('@'));
    // Where a reader has it, pinned to what he has.
    let action = action.filter(|action| *action != "OWNER/mantile@COMMIT").map(str::to_owned);
    let address = line.split("http").skip(1).find(|rest| {
        let address = rest.split([' ', ')', '`', '>', '"']).next().unwrap_or_default();
        rest.starts_with(['s', ':']) && address.contains("://") && address.contains("mantile")
    });
    installed.or(action).or(address.map(|rest| format!("http{rest}")))
}

#[test]
fn documents_fetch_no_package_that_is_not_published() {
    for line in [
        "pip install mantile-opt",
        "the command after `pip install mantile-opt[pandas]`",
        "uvx mantile-opt --model x",
        "cargo install --locked mantile-opt",
        "brew install mantile-opt # macOS",
        "npm install mantile-wasm",
        "docker pull mantile",
        "- uses: OWNER/mantile@main",
        "- uses: owner/mantile-action@v1",
        "- repo: https://github.com/OWNER/mantile",
    ] {
        assert!(unpublished(line).is_some(), "{line}");
    }
    for line in [
        "cargo install --path .",
        "pip install ./bindings/python",
        "  uses: ./mantile",
        "pip install ./mantile_opt-0.whl",
    ] {
        assert_eq!(unpublished(line), None, "{line}");
    }
    let folders = [("bindings/python", "md"), ("fuzz", "md"), ("src", "rs"), ("src", "md")];
    let further = folders.into_iter().flat_map(|(folder, ending)| files(folder, ending));
    let action = at_root("action.yml");
    let faults = documents().into_iter().chain(further).chain([action]).flat_map(|document| {
        let lines = document.text.lines().enumerate();
        let found = lines.filter_map(|(at, line)| Some((at + 1, unpublished(line)?)));
        found.map(|(at, found)| format!("{}:{at}: {found}", document.name)).collect::<Vec<_>>()
    });
    none(&faults.collect::<Vec<_>>());
}
