//! `redline-engine`: reads a job from standard input, puts its load on a server, and tells what it saw on standard output.
//!
//! The contract is `docs/reference/engine-protocol.md`. Lines of this file are the order of things: read, check what the
//! machine allows, watch for the end, resolve, direct.

mod connection;
mod demand;
mod director;
mod exchange;
mod flights;
mod io;
mod job;
mod merge;
mod outbox;
mod output;
mod pool;
mod reasons;
mod roster;
mod scenario;
mod sources;
mod stop;
mod streams;
mod sys;
mod tally;
mod worker;

use std::io::Read;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use redline_traffic::{Ended, ErrorKind, Event, Trouble};

use crate::job::{Job, bad};
use crate::stop::{CUT_BY_DEADLINE, INTERRUPTED, Stop, watch};
use crate::sys::process::{Signals, allowed_cpus, die_with_parent, pin, raise_open_files};
use crate::sys::time::now_ns;

const HELP: &str = "\
redline-engine: the load engine of Redline

Reads one job (JSON) from standard input and writes events (one JSON object a line) to standard output.

  --help     this text
  --version  the version

Exit codes: 0 complete, 1 could not run, 2 the job is wrong, 124 cut by its deadline, 130 interrupted.
The formats are described in docs/reference/engine-protocol.md.
";

/// Descriptors that are not connections: the standard three, the waker, and some that libraries may open for a moment.
const OTHER_DESCRIPTORS: u64 = 12;

fn main() -> ExitCode {
    let started_ns = now_ns();
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [] => {}
        [flag] if flag == "--version" => {
            println!("redline-engine {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        [flag] if flag == "--help" || flag == "-h" => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!(
                "redline-engine: it takes no arguments but --help and --version\n  hint: the job goes to standard input"
            );
            return ExitCode::from(2);
        }
    }
    if parent_is_gone() {
        return ExitCode::FAILURE;
    }
    match run(started_ns) {
        Ok(code) => ExitCode::from(code),
        Err(trouble) => {
            output::tell(&Event::Error(&trouble));
            ExitCode::from(if trouble.kind == ErrorKind::BadJob { 2 } else { 1 })
        }
    }
}

/// Tie this process to the parent that `REDLINE_PARENT` names, if it does; whether that one is gone already.
fn parent_is_gone() -> bool {
    let parent = std::env::var("REDLINE_PARENT").ok().and_then(|pid| pid.parse().ok());
    parent.is_some_and(|pid| !die_with_parent(pid))
}

fn run(started_ns: u64) -> Result<u8, Trouble> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| {
        bad("", &format!("the job cannot be read: {error}"), "write one JSON object in UTF-8 to standard input")
    })?;
    let job = Arc::new(Job::parse(&text)?);
    take_cpus(&job)?;
    check_open_files(&job)?;
    let stop = Arc::new(Stop::new().map_err(|error| limit(&error))?);
    watch(Arc::clone(&stop), Signals::block(), started_ns.saturating_add(job.deadline_ns))
        .map_err(|error| limit(&error))?;
    let target = resolve(&job)?;
    Ok(match director::direct(&job, target, &stop)? {
        Some(Ended::Complete) => 0,
        Some(Ended::Interrupted) => INTERRUPTED,
        Some(Ended::Deadline) => CUT_BY_DEADLINE,
        None => stop.code().unwrap_or_default(),
    })
}

/// Keep the whole engine on the cores that the job gives it, so that its main thread does not disturb others either.
/// They may be others than those that it was started on, as long as the kernel grants them.
fn take_cpus(job: &Job) -> Result<(), Trouble> {
    if job.cpus.is_empty() {
        return Ok(());
    }
    let before = allowed_cpus().map_err(|error| limit(&error))?;
    let granted = if pin(&job.cpus).is_ok() { allowed_cpus().map_err(|error| limit(&error))? } else { before };
    match job.cpus.iter().position(|cpu| !granted.contains(cpu)) {
        None => Ok(()),
        Some(i) => {
            let message = format!("core {} is not one on which this process may run", job.cpus[i]);
            Err(bad(&format!("cpus[{i}]"), &message, "give other cores, or none"))
        }
    }
}

/// Each connection is a descriptor: say before anything starts when there cannot be so many.
fn check_open_files(job: &Job) -> Result<(), Trouble> {
    let allowed = raise_open_files().map_err(|error| limit(&error))?;
    let others = OTHER_DESCRIPTORS + u64::from(job.workers);
    let connections = u64::from(job.load.connections());
    if connections + others <= allowed {
        return Ok(());
    }
    Err(Trouble {
        kind: ErrorKind::Limit,
        message: format!(
            "{connections} connections are asked for, but this process may hold {allowed} descriptors, which is enough for {}",
            allowed.saturating_sub(others)
        ),
        hint: "ask for fewer, or raise the hard limit: `ulimit -Hn`, LimitNOFILE in systemd, /etc/security/limits.conf"
            .to_owned(),
    })
}

fn limit(error: &std::io::Error) -> Trouble {
    Trouble {
        kind: ErrorKind::Limit,
        message: format!("this machine does not let the engine start: {error}"),
        hint: "look at the limits of this process: descriptors, threads, cores".to_owned(),
    }
}

/// The address of the target. A name may have many: then it is the first that takes a connection.
fn resolve(job: &Job) -> Result<SocketAddr, Trouble> {
    let host = job.target.host.as_str();
    let name = (host, job.target.port);
    let unknown = |why: String| Trouble {
        kind: ErrorKind::Connect,
        message: format!("the host {host:?} is not known: {why}"),
        hint: "check target.host; it is a name or an address, without scheme, port or path".to_owned(),
    };
    let addresses: Vec<_> = name.to_socket_addrs().map_err(|error| unknown(error.to_string()))?.collect();
    let patience = Duration::from_nanos(job.timeout_ns);
    let takes = |address: &&SocketAddr| TcpStream::connect_timeout(address, patience).is_ok();
    let chosen = if addresses.len() > 1 { addresses.iter().find(takes) } else { None };
    chosen.or(addresses.first()).copied().ok_or_else(|| unknown("it has no address".to_owned()))
}
