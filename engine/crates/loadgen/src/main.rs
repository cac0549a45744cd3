//! `redline-engine`: reads a job from standard input, loads a server, and writes what it measured to standard output.
//!
//! The protocol is `docs/reference/engine-protocol.md`. This file has the sequence: read the job, check what the machine
//! allows, watch for signals and the deadline, resolve the target, run the load.

mod by_journey;
mod by_request;
mod check;
mod client;
mod conductor;
mod demand;
mod duet;
mod first_failures;
mod fixed_work;
mod heartbeat;
mod ids;
mod io;
mod job;
mod keeper;
mod measure_start;
mod merge;
mod once;
mod peers;
mod processes;
mod protocol;
mod quick;
mod request;
mod request_log;
mod server_clocks;
mod shards;
mod sources;
mod stop;
mod sys;
mod tally;
mod ticks;
mod window_clocks;
mod worker;
mod workers;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use redline_traffic::{Ended, EngineError, ErrorKind, Event};

use crate::job::{Addresses, Backend, Duet, Http, Job, bad};
use crate::measure_start::MeasureStart;
use crate::peers::Peers;
use crate::protocol::{emit, read_job};
use crate::shards::Plan;
use crate::shards::child::{ShardControl, is_shard};
use crate::stop::{CUT_BY_DEADLINE, INTERRUPTED, Stop, watch};
use crate::sys::process::{Signals, allowed_cpus, die_with_parent, pin, raise_open_files};
use crate::sys::time::now_ns;
use crate::workers::Workers;

const HELP: &str = "\
redline-engine: the load engine of Redline

Reads one job (JSON) from standard input and writes events (one JSON object a line) to standard output.

  --help           this text
  load URL         instead of a job: a quick look at a server; see redline-engine load --help
  --version        the version
  fixed-work CPUS  instead of a job: the CPU time in nanoseconds that a fixed piece of work takes on each of these cores
                   (0,1), as a JSON object
  check            instead of a job: make the checks of single requests on standard input, one JSON object a line, and
                   answer each with one line
  clocks ADDRESS   instead of a job: answer engines on other hosts that ask for CPU times on this one

Exit codes: 0 complete, 1 could not run, 2 the job is wrong, 124 cut by its deadline, 130 interrupted.
The formats are described in docs/reference/engine-protocol.md.
";

/// The engine's memory for an idle connection, and what TLS and HTTP/2 add, in bytes: more than was measured.
const CONNECTION_BYTES: u64 = 2048;
const TLS_BYTES: u64 = 4096;
const HTTP2_BYTES: u64 = 16 * 1024;

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
        [command, cpus] if command == "fixed-work" => return fixed_work(&cpus.to_string_lossy()),
        [command] if command == "check" => return checks(),
        [command, rest @ ..] if command == "load" => return ExitCode::from(quick::run(rest.to_vec())),
        [command, address] if command == "clocks" => return clocks(&address.to_string_lossy()),
        _ => {
            eprintln!(
                "redline-engine: it takes no arguments but --help, --version, load URL, fixed-work CPUS, check and clocks ADDRESS\n  hint: the job goes to standard input"
            );
            return ExitCode::from(2);
        }
    }
    if parent_is_gone() {
        return ExitCode::FAILURE;
    }
    match run(started_ns) {
        Ok(code) => ExitCode::from(code),
        Err(error) => failed(&error),
    }
}

fn failed(error: &EngineError) -> ExitCode {
    emit(&Event::Error(error));
    ExitCode::from(if error.kind == ErrorKind::BadJob { 2 } else { 1 })
}

fn checks() -> ExitCode {
    if parent_is_gone() {
        return ExitCode::FAILURE;
    }
    match check::serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn fixed_work(cpus: &str) -> ExitCode {
    let Ok(cpus) = cpus.split(',').map(str::parse).collect::<Result<Vec<_>, _>>() else {
        eprintln!("redline-engine: {cpus:?} are not numbers of cores\n  hint: write 0,1");
        return ExitCode::from(2);
    };
    match fixed_work::measure(&cpus) {
        Ok(cpu_ns) => {
            println!("{}", serde_json::json!(cpu_ns));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("redline-engine: one of the cores {cpus:?} cannot be used: {error}");
            ExitCode::FAILURE
        }
    }
}

fn clocks(address: &str) -> ExitCode {
    let Ok(address) = address.parse() else {
        eprintln!(
            "redline-engine: {address:?} is no address\n  hint: write that of the interface to listen on, 10.0.0.1"
        );
        return ExitCode::from(2);
    };
    if parent_is_gone() {
        return ExitCode::FAILURE;
    }
    match server_clocks::serve(address) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("redline-engine: the clocks of this host cannot be served on {address}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Arrange for this process to end with the parent that `REDLINE_PARENT` names. Returns whether that parent has ended already.
fn parent_is_gone() -> bool {
    let parent = std::env::var("REDLINE_PARENT").ok().and_then(|pid| pid.parse().ok());
    parent.is_some_and(|pid| !die_with_parent(pid))
}

fn run(started_ns: u64) -> Result<u8, EngineError> {
    let text = read_job().map_err(|error| {
        bad("", &format!("the job cannot be read: {error}"), "write one JSON object in UTF-8 to standard input")
    })?;
    let job = Arc::new(Job::parse(&text)?);
    take_cpus(&job)?;
    let stop = Arc::new(Stop::new().map_err(|error| limit(&error))?);
    let deadline_at_ns = started_ns.saturating_add(job.deadline_ns);
    watch(Arc::clone(&stop), Signals::block(), deadline_at_ns).map_err(|error| limit(&error))?;
    let ended = if is_shard() {
        raise_open_files().map_err(|error| limit(&error))?;
        let control = ShardControl::listen(Arc::clone(&stop)).map_err(|error| limit(&error))?;
        let target = job.shard.target.clone().map_or_else(|| resolve(&job), Ok)?;
        run_workers(&job, &target, &stop, Some(&control))?
    } else {
        let target = resolve(&job)?;
        check_sources(&job, &target)?;
        let plan = plan(&job, &target)?;
        if let Some(duet) = &job.duet {
            run_duet(&text, &job, target, duet, &stop)?
        } else if plan.processes == 1 {
            run_workers(&job, &target, &stop, None)?
        } else {
            let sharded = shards::ShardedJob { text: &text, job: &job, target: &target, plan, deadline_at_ns };
            shards::run(&sharded, &stop)?
        }
    };
    Ok(match ended {
        Some(Ended::Complete) => 0,
        Some(Ended::Interrupted) => INTERRUPTED,
        Some(Ended::Deadline) => CUT_BY_DEADLINE,
        None => stop.code().unwrap_or_default(),
    })
}

/// Run a duet of the job's target and the others.
fn run_duet(
    text: &str,
    job: &Arc<Job>,
    target: Peers,
    duet: &Duet,
    stop: &Arc<Stop>,
) -> Result<Option<Ended>, EngineError> {
    let mut targets = vec![(Arc::clone(job), target)];
    for number in 1..duet.targets {
        let other = Arc::new(Job::parse_for(text, number)?);
        let peers = resolve(&other)?;
        check_sources(&other, &peers)?;
        targets.push((other, peers));
    }
    duet::run(&targets, duet, stop)
}

/// Run a job with the worker threads of this process.
fn run_workers(
    job: &Arc<Job>,
    target: &Peers,
    stop: &Arc<Stop>,
    control: Option<&ShardControl>,
) -> Result<Option<Ended>, EngineError> {
    let begun_ns = now_ns();
    let measure_start = control.map_or_else(Arc::<MeasureStart>::default, |control| Arc::clone(&control.measure_start));
    let workers = Workers::start(job, target, stop, measure_start)?;
    conductor::run(workers, job, stop, control, begun_ns)
}

/// Pin the whole engine, including its main thread, to the cores of the job. They may differ from the cores on which it was
/// started, as long as the kernel allows them.
fn take_cpus(job: &Job) -> Result<(), EngineError> {
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

/// Source addresses must have the target's address family.
fn check_sources(job: &Job, target: &Peers) -> Result<(), EngineError> {
    let Some(i) = sources::unfit(target, &job.target.sources) else {
        return Ok(());
    };
    let message = format!("{target} cannot be reached from {}", job.target.sources[i]);
    Err(bad(&format!("target.sources[{i}]"), &message, "give addresses of the target's family, IPv4 or IPv6"))
}

/// How many processes the job needs: one, as long as its connections fit.
fn plan(job: &Job, target: &Peers) -> Result<Plan, EngineError> {
    shards::plan(&shards::Needs {
        connections: job.own_connections(),
        workers: job.workers,
        workers_are_fixed: job.is_part,
        target,
        sources: &job.target.sources,
        descriptors: raise_open_files().map_err(|error| limit(&error))?,
        engine_bytes: CONNECTION_BYTES
            + if job.target.tls.is_some() { TLS_BYTES } else { 0 }
            + if job.target.http == Http::V2 { HTTP2_BYTES } else { 0 },
        watched: job.backend != Backend::IoUring,
    })
}

fn limit(error: &std::io::Error) -> EngineError {
    EngineError {
        kind: ErrorKind::Limit,
        message: format!("this machine does not let the engine start: {error}"),
        hint: "look at the limits of this process: descriptors, threads, cores".to_owned(),
    }
}

/// Where the connections go: to all addresses of the target in turn, or to the first that accepts a connection.
fn resolve(job: &Job) -> Result<Peers, EngineError> {
    let peers = job.target.peers().map_err(|message| EngineError {
        kind: ErrorKind::Connect,
        message,
        hint: "check target.host; it is a name or an address, without scheme, port or path".to_owned(),
    })?;
    if job.target.addresses == Addresses::All || peers.all().len() == 1 {
        return Ok(peers);
    }
    let timeout = Duration::from_nanos(job.timeout_ns);
    let chosen = peers.all().iter().find(|peer| peer.accepts(timeout)).unwrap_or(&peers.all()[0]);
    Ok(chosen.clone().into())
}
