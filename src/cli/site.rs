//! `site`: the page as files that need no server.

use std::path::{Path, PathBuf};

use super::{CliError, ExitStatus};
use crate::site::{MODULE, PageEngine, compressed_name, files, gzipped};
use crate::spec::error::Error;
use crate::spec::writer::shell_word;
use crate::store::catalog::Catalog;
use crate::store::file;

const AFTER: &str = "\
The page computes in the browser with a WebAssembly module. A release has the module next to the program; from the \
source, `cargo build --release --target wasm32-unknown-unknown` in bindings/wasm makes it. Any server of files serves \
the folder, and sends the compressed copies (`.gz`) where it knows them. Once loaded, the page loads again without a \
network. `mantile-opt serve` serves the same page without a module, and computes itself.

Examples:
  mantile-opt site --out page
  mantile-opt site --out page --wasm bindings/wasm/target/wasm32-unknown-unknown/release/mantile_wasm.wasm
  python3 -m http.server --directory page";

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub struct Site {
    /// The folder to write
    #[arg(long, value_name = "DIR", default_value = "page")]
    pub out: PathBuf,
    /// The WebAssembly module [default: mantile.wasm next to the program, or the one that the source has built]
    #[arg(long, value_name = "FILE")]
    pub wasm: Option<PathBuf>,
}

/// The module as the source builds it, from the root of the source.
const BUILT: &str = "bindings/wasm/target/wasm32-unknown-unknown/release/mantile_wasm.wasm";

/// The places of the module: next to the program, and where the source builds it, for a program in `target/release`.
fn places() -> Vec<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    let root = program.ancestors().nth(3).unwrap_or(Path::new("."));
    vec![program.with_file_name(MODULE), root.join(BUILT)]
}

impl Site {
    pub fn run(&self, catalog: &Catalog) -> Result<ExitStatus, CliError> {
        let module = self.module()?;
        file::make_folder(&self.out)?;
        let pages = files(&catalog.closed(false), PageEngine::Module)?;
        let packed = gzipped(&module)?;
        let pages = pages.iter().map(|one| (one.name, one.text.as_bytes(), &one.packed[..]));
        for (name, bytes, packed) in pages.chain([(MODULE, &module[..], &packed[..])]) {
            file::write_bytes(&self.out.join(name), bytes)?;
            file::write_bytes(&self.out.join(compressed_name(name)), packed)?;
        }
        Ok(ExitStatus::Success)
    }

    fn module(&self) -> Result<Vec<u8>, Error> {
        let paths = self.wasm.clone().map_or_else(places, |path| vec![path]);
        let read = |path: &PathBuf| std::fs::read(path).ok().filter(|bytes| bytes.starts_with(b"\0asm"));
        paths.iter().find_map(read).ok_or_else(|| {
            let shown: Vec<String> = paths.iter().map(|path| file::shown(path)).collect();
            let found = format!("no WebAssembly module at {}", shown.join(" or "));
            let fix = format!(
                "in the source, run `cargo build --release --target wasm32-unknown-unknown --manifest-path \
                 bindings/wasm/Cargo.toml` and then `mantile-opt site --out {} --wasm {BUILT}`; or use `mantile-opt \
                 serve`, whose page needs no module",
                shell_word(&file::shown(&self.out))
            );
            Error::new("wasm", found, "the file mantile.wasm of a release, or one built from the source", fix)
        })
    }
}
