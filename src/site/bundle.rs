//! The modules of the page as one script: a browser loads one file in place of forty, and a seventh less.
//!
//! A module becomes a function that returns what it exports, after those that it imports, as browsers evaluate them.

use std::collections::BTreeSet;

/// A module as its file has it: imports and exports of names are lines of their own.
struct ScriptModule<'a> {
    /// The names that it imports, as it states them, and the file of each.
    imports: Vec<(&'a str, &'a str)>,
    exports: Vec<&'a str>,
    body: Vec<&'a str>,
}

/// The names and the file of a line `import NAMES from "./FILE";`.
fn imported(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("import ")?.strip_suffix("\";")?.split_once(" from \"./")
}

/// The line without `export`, and the name that it declares.
fn exported(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("export ")?;
    let declared = ["async function ", "function ", "const ", "class "];
    let name = declared.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = name.find(|one: char| !one.is_alphanumeric() && one != '_').unwrap_or(name.len());
    Some((rest, &name[..end]))
}

impl<'a> ScriptModule<'a> {
    fn of(text: &'a str) -> ScriptModule<'a> {
        let mut module = ScriptModule { imports: vec![], exports: vec![], body: vec![] };
        for line in text.lines() {
            if let Some(import) = imported(line) {
                module.imports.push(import);
            } else if let Some((rest, name)) = exported(line) {
                module.exports.push(name);
                module.body.push(rest);
            } else {
                module.body.push(line);
            }
        }
        module
    }
}

/// The variable that holds the exports of a file.
fn variable(file: &str) -> String {
    format!("${}", file.trim_end_matches(".mjs"))
}

/// `{ a, b as c }` of an import as a declaration.
fn declared(names: &str, file: &str) -> String {
    match names.strip_prefix("* as ") {
        Some(name) => format!("const {name} = {};\n", variable(file)),
        None => format!("const {} = {};\n", names.replace(" as ", ": "), variable(file)),
    }
}

/// Appends a module behind those that it imports. Files that are none of `modules` are still imported.
fn append<'a>(
    modules: &[(&'a str, &'a str)],
    (file, text): (&'a str, &'a str),
    done: &mut BTreeSet<&'a str>,
    made: &mut [String; 2],
) {
    let ScriptModule { imports, exports, body } = ScriptModule::of(text);
    let mut own = String::new();
    for (names, from) in imports {
        let Some(module) = modules.iter().find(|(name, _)| *name == from) else {
            made[0] += &format!("import {names} from \"./{from}\";\n");
            continue;
        };
        if done.insert(from) {
            append(modules, *module, done, made);
        }
        own += &declared(names, from);
    }
    let body = body.join("\n");
    made[1] += &match exports.is_empty() {
        true => format!("{own}{body}\n"),
        false => {
            let exports = exports.join(", ");
            format!("const {} = (() => {{\n{own}{body}\nreturn {{ {exports} }};\n}})();\n", variable(file))
        }
    };
}

/// `entry`, by its name and its text, as one script with those of `modules` that it needs.
pub(super) fn bundled(entry: (&str, &str), modules: &[(&str, &str)]) -> String {
    let mut made = [String::new(), String::new()];
    append(modules, entry, &mut BTreeSet::new(), &mut made);
    made.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_functions_behind_those_that_they_import() {
        let modules = [
            ("a.mjs", "import { two } from \"./b.mjs\";\nexport const one = two + 1;"),
            ("b.mjs", "import { far } from \"./other.mjs\";\nexport function two() {}\nconst own = far;"),
        ];
        let entry =
            "import * as a from \"./a.mjs\";\nimport { two as second } from \"./b.mjs\";\na.one(second);";
        let expected = "import { far } from \"./other.mjs\";\nconst $b = (() => {\nfunction two() {}\nconst own = far;\n\
                        return { two };\n})();\nconst $a = (() => {\nconst { two } = $b;\nconst one = two + 1;\n\
                        return { one };\n})();\nconst a = $a;\nconst { two: second } = $b;\na.one(second);\n";
        assert_eq!(bundled(("entry.mjs", entry), &modules), expected);
    }

    #[test]
    fn every_module_is_used_and_imports_what_another_exports_before_it() {
        let modules = crate::site::MODULES;
        let read = |file: &str| {
            modules.iter().find(|(name, _)| *name == file).map(|(_, text)| ScriptModule::of(text))
        };
        let whole = bundled(("app.mjs", crate::site::APP), &modules);
        for (file, text) in modules.into_iter().chain([("app.mjs", crate::site::APP)]) {
            assert!(file == "app.mjs" || whole.contains(&format!("const {} = (", variable(file))), "{file}");
            assert!(!ScriptModule::of(text).body.iter().any(|line| line.starts_with("export ")), "{file}");
            let place = |file: &str| whole.find(&format!("const {} = (", variable(file)));
            for (names, from) in ScriptModule::of(text).imports {
                let Some(other) = read(from) else { continue };
                assert!(
                    file == "app.mjs" || place(from) < place(file),
                    "{file} and {from} import each other"
                );
                let names =
                    names.trim_matches(['{', '}', ' ']).split(", ").map(|name| name.split(' ').next());
                let names = names.flatten().filter(|name| *name != "*");
                names.for_each(|name| assert!(other.exports.contains(&name), "{file}: {name} of {from}"));
            }
        }
    }
}
