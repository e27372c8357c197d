//! `site`: the page as files that need no server.

use std::path::{Path, PathBuf};

use super::{CliError, ExitStatus};
use crate::site::{MODULE, PageEngine, files};
use crate::spec::error::Error;
use crate::store::catalog::Catalog;
use crate::store::file;

const AFTER: &str = "\
The page computes in the browser with a WebAssembly module. A release has the module next to the program; from the \
source, `cargo build --release --target wasm32-unknown-unknown` in bindings/wasm makes it. Any server of files serves \
the folder. `mantile-opt serve` serves the same page without a module, and computes itself.

Examples:
  mantile-opt site --out page
  mantile-opt site --out page --wasm bindings/wasm/target/wasm32-unknown-unknown/release/mantile_wasm.wasm
  python3 -m http.server --directory page";

/// The flags of `site`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Site {
    /// The folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The WebAssembly module [default: mantile.wasm next to the program]
    #[arg(long, value_name = "FILE")]
    pub wasm: Option<PathBuf>,
}

impl Site {
    /// Writes the files.
    ///
    /// # Errors
    /// The module is not found, or a file cannot be written.
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let module = self.module()?;
        file::make_folder(&self.out)?;
        for one in files(&catalog.closed(false), PageEngine::Module)? {
            file::write(&self.out.join(one.name), &one.text)?;
        }
        file::write_bytes(&self.out.join(MODULE), &module)?;
        Ok(ExitStatus::Success)
    }

    /// The bytes of the module.
    fn module(&self) -> Result<Vec<u8>, Error> {
        let beside = || Some(std::env::current_exe().ok()?.parent()?.join(MODULE));
        let path = self.wasm.clone().or_else(beside).unwrap_or_else(|| Path::new(MODULE).to_owned());
        let bytes = std::fs::read(&path).unwrap_or_default();
        if !bytes.starts_with(b"\0asm") {
            let found = format!("no WebAssembly module at {}", file::shown(&path));
            let fix = "build it in bindings/wasm, or use `mantile-opt serve`, whose page needs none";
            return Err(Error::new("wasm", found, "the file mantile.wasm of a release", fix));
        }
        Ok(bytes)
    }
}
