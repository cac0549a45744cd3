//! A server with known answers: the truth that the load engine is tested against.

mod args;
mod conversation;
mod discipline;
mod lateness;
mod random;
mod request;
mod slots;
mod sys;
mod worker;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use args::{Command, Options};
use lateness::Lateness;
use worker::Worker;

fn main() -> ExitCode {
    let options = match args::parse(std::env::args().skip(1)) {
        Ok(Command::Serve(options)) => options,
        Ok(Command::Help) => {
            print!("{}", args::USAGE);
            return ExitCode::SUCCESS;
        }
        Ok(Command::Version) => {
            println!("redline-oracle {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("{message}\n  hint: redline-oracle --help");
            return ExitCode::from(2);
        }
    };
    match serve(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let address = options.address;
            eprintln!("cannot listen on {address}: {error}\n  hint: --port 0 takes a free port");
            ExitCode::FAILURE
        }
    }
}

/// Serves until SIGTERM or SIGINT, then tells how late the timed answers were.
fn serve(options: &Options) -> io::Result<()> {
    let termination = sys::Termination::hold();
    let listeners = sys::listeners(options.address, options.threads)?;
    let address = listeners[0].local_addr()?;
    let origin_ns = sys::monotonic_ns();
    let mut latenesses = Vec::new();
    for listener in listeners {
        let lateness = Arc::new(Mutex::new(Lateness::new()));
        let worker = Worker::new(listener, options.discipline.clone(), origin_ns, Arc::clone(&lateness))?;
        latenesses.push(lateness);
        thread::Builder::new().spawn(move || fail(worker.run()))?;
    }
    say(&format!("listening on {address}"));
    termination.wait();
    if !options.discipline.is_null() {
        let mut total = Lateness::new();
        for lateness in &latenesses {
            total.add(&lateness.lock().unwrap_or_else(PoisonError::into_inner));
        }
        say(&total.summary());
    }
    Ok(())
}

/// A line to standard output; that nobody reads it is no reason to end.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// A worker that cannot go on takes the process with it: half a server would answer wrongly.
fn fail(ended: io::Result<std::convert::Infallible>) {
    let Err(error) = ended;
    eprintln!("cannot serve any more: {error}");
    std::process::exit(1);
}
