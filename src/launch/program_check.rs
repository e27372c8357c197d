//! Checks of scripts: the program that a command starts is there, or how it is installed.

use serde::Serialize;

/// The program of a command, as a script checks it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgramCheck {
    /// The program.
    pub program: String,
    /// The module that it runs, where it is Python.
    pub module: Option<String>,
    /// The message where it is missing.
    pub missing: String,
}

impl ProgramCheck {
    /// The check of the words of a command; `install` says how to get it.
    pub fn of<'a>(words: impl IntoIterator<Item = &'a str>, install: &str) -> Option<ProgramCheck> {
        let words: Vec<&str> = words.into_iter().take(3).collect();
        let program = (*words.first()?).to_owned();
        let package = |module: &&str| module.split('.').next().unwrap_or(module).to_owned();
        let runs_module = program.starts_with("python") && words.get(1) == Some(&"-m");
        let module = words.get(2).filter(|_| runs_module).map(package);
        let what = module.as_ref().unwrap_or(&program);
        let missing = format!("{what} is missing: {install}");
        Some(ProgramCheck { program, module, missing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_of_python_is_checked_by_its_package() {
        let check =
            ProgramCheck::of("python3 -m sglang_router.launch_router --port 1".split(' '), "pip").unwrap();
        assert_eq!((check.program.as_str(), check.module.as_deref()), ("python3", Some("sglang_router")));
        assert_eq!(check.missing, "sglang_router is missing: pip");
        let check = ProgramCheck::of(["nginx", "-c", "x"], "apt").unwrap();
        assert_eq!((check.program.as_str(), check.module), ("nginx", None));
    }
}
