//! The binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    mantile::main()
}
