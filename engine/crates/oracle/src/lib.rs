//! A server with known answers: the truth that the load engine is tested against.

mod agenda;
mod args;
mod behaviour;
pub mod body;
mod connection;
mod content;
mod conversation;
mod discipline;
mod endings;
mod faults;
mod given;
mod lateness;
mod pauses;
mod processes;
mod queue;
mod random;
mod report;
mod request;
mod service;
mod sessions;
mod signals;
mod slots;
mod streams;
mod sys;
mod usage;
mod websocket;
mod worker;

use std::io::{self, Write as _};
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use args::{Command, Options};
use behaviour::Places;
use lateness::Lateness;
use processes::Children;
use signals::Signals;
use worker::Worker;

/// Serve as the arguments say, which are those of the process without its name; or say what is wrong with them.
pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let options = match args::parse(arguments) {
        Ok(Command::Serve(options)) => options,
        Ok(Command::Help) => {
            print!("{}", usage::USAGE);
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
    let address = options.address;
    let listeners = match sys::listeners(address, options.threads * options.processes) {
        Ok(listeners) => listeners,
        Err(error) => {
            eprintln!("cannot listen on {address}: {error}\n  hint: --port 0 takes a free port");
            return ExitCode::FAILURE;
        }
    };
    match serve(&options, listeners) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "cannot serve: {error}\n  hint: look at the limits of descriptors, threads and processes (ulimit -a)"
            );
            ExitCode::FAILURE
        }
    }
}

/// Serves until SIGTERM or SIGINT, then prints how late the timed answers were.
fn serve(options: &Options, listeners: Vec<TcpListener>) -> io::Result<()> {
    let signals = Signals::hold();
    sys::raise_descriptor_limit();
    let listening = format!("listening on {}", listeners[0].local_addr()?);
    let origin_ns = sys::monotonic_ns();
    let lateness = if options.processes == 1 && options.pauses.is_none() {
        let workers = Workers::start(options, listeners, 0, origin_ns)?;
        say(&listening);
        workers.until_signalled(&signals)
    } else {
        // A listener is open only in the process that accepts from it; otherwise connections would wait there for ever.
        let mut shares: Vec<TcpListener> = listeners;
        let children = Children::start(options.processes, |index| {
            let share = std::mem::take(&mut shares).into_iter().skip(index * options.threads).take(options.threads);
            let first = index * options.threads;
            Ok(Workers::start(options, share.collect(), first, origin_ns)?.until_signalled(&signals))
        })?;
        drop(shares);
        say(&listening);
        signals::be_punctual();
        children.watch(&signals, origin_ns, options.pauses.clone())?
    };
    if let Some(report) = options.behaviour.report() {
        say(&report.summary(&lateness));
    } else if options.behaviour.is_timed() {
        say(&lateness.summary());
    }
    Ok(())
}

/// The threads of a process.
struct Workers(Vec<Arc<Mutex<Lateness>>>);

impl Workers {
    /// A thread for each listener; `first` is the number of the first listener among those of all processes.
    fn start(options: &Options, listeners: Vec<TcpListener>, first: usize, origin_ns: u64) -> io::Result<Self> {
        let places = Places::new(options.connections_at_most);
        let mut latenesses = Vec::new();
        for (index, listener) in listeners.into_iter().enumerate() {
            let lateness = Arc::new(Mutex::new(Lateness::new()));
            latenesses.push(Arc::clone(&lateness));
            let behaviour = options.behaviour.of_thread(first + index);
            let worker = Worker::new(listener, behaviour, places.clone(), origin_ns, lateness)?;
            thread::Builder::new().spawn(move || fail(worker.run()))?;
        }
        Ok(Self(latenesses))
    }

    /// Waits for SIGTERM or SIGINT. Returns how late the answers were.
    fn until_signalled(&self, signals: &Signals) -> Lateness {
        signals.wait_for_end();
        let mut total = Lateness::new();
        for lateness in &self.0 {
            total.add(&lateness.lock().unwrap_or_else(PoisonError::into_inner));
        }
        total
    }
}

/// Print a line to standard output. It does not matter whether it is read.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// A worker that fails ends the process: half a server would answer wrongly.
fn fail(ended: io::Result<std::convert::Infallible>) {
    let Err(error) = ended;
    eprintln!("cannot serve any more: {error}");
    std::process::exit(1);
}
