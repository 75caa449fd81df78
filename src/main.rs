//! The binary: hands the arguments over to one command and ends with its exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    modeldeck::cli::run(std::env::args_os()).into()
}
