//! The oracle's binary, in this package so that it is installed with the engine.

use std::process::ExitCode;

fn main() -> ExitCode {
    redline_oracle::run(std::env::args().skip(1))
}
