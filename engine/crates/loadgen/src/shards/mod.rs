//! A job in several processes, for more connections than a process may hold. This process, the coordinator, starts several
//! copies of itself, starts their schedules at the same instant, and reports as a single engine does. It opens no connection
//! itself.
//!
//! - [`split`]: the job of every process.
//! - [`limits`]: whether this machine allows the connections, from the [`facts`] about it.
//! - [`processes`]: the processes. [`child`]: their side of the protocol with the coordinator.

pub mod child;
mod facts;
mod limits;
mod numbering;
mod processes;
mod split;

use std::net::IpAddr;
use std::sync::Arc;

use redline_traffic::{Ended, EngineError, ErrorKind};

use self::facts::Facts;
use self::limits::Need;
use self::processes::{Shards, internal};
pub use self::split::Plan;
use self::split::{JobSplit, Room};
use crate::conductor;
use crate::job::Job;
use crate::peers::Peers;
use crate::sources::Sources;
use crate::stop::Stop;
use crate::sys::time::now_ns;

/// Descriptors of a process besides its connections and workers: the standard three, the waker, and some that libraries open
/// briefly.
const OTHER_DESCRIPTORS: u64 = 12;
/// Descriptors of a worker besides its connections: for waiting and for being woken.
const WORKER_DESCRIPTORS: u64 = 3;

/// What a job needs from the machine.
pub struct Needs<'a> {
    /// The most connections of the workers.
    pub connections: u32,
    pub workers: u32,
    /// Whether the number of workers is fixed, because other engines number their workers after it.
    pub workers_are_fixed: bool,
    pub target: &'a Peers,
    pub sources: &'a [IpAddr],
    /// How many descriptors a process may have.
    pub descriptors: u64,
    /// Memory of the engine per connection, in bytes.
    pub engine_bytes: u64,
    /// Whether the backend uses epoll, which limits the sockets of a user.
    pub watched: bool,
}

/// How many processes a job needs: one, as long as its connections fit.
///
/// # Errors
/// A `limit` when the machine does not allow so many connections.
pub fn plan(needs: &Needs<'_>) -> Result<Plan, EngineError> {
    let Needs { connections, workers, workers_are_fixed, target, sources, descriptors, engine_bytes, watched } = *needs;
    let room = Room { descriptors, others: OTHER_DESCRIPTORS, per_worker: WORKER_DESCRIPTORS };
    let plan = Plan::new(connections, workers, room);
    let sources = Sources::new(target, sources, connections).count();
    let need = Need { connections, target: target.clone(), sources, engine_bytes, watched, room, plan };
    limits::check(&need, &Facts::read(target))?;
    let plan = plan.ok_or_else(|| internal("no limit is reached, and yet no number of processes is enough"))?;
    if workers_are_fixed && plan.workers > workers {
        let message = format!(
            "{connections} connections take {} processes of this host with a worker each, and it has {workers} workers",
            plan.processes
        );
        return Err(EngineError { kind: ErrorKind::Limit, message, hint: "give the host more workers".to_owned() });
    }
    Ok(plan)
}

/// A job for several processes.
pub struct ShardedJob<'a> {
    /// The job as it was read. It is valid.
    pub text: &'a str,
    pub job: &'a Job,
    pub target: &'a Peers,
    pub plan: Plan,
    /// When all processes must have ended, in nanoseconds of the monotonic clock.
    pub deadline_at_ns: u64,
}

/// Run a job in several processes and emit its events, as [`conductor::run`] does. The calling thread must live as long as the
/// process.
///
/// # Errors
/// When the job could not be done.
pub fn run(sharded: &ShardedJob<'_>, stop: &Arc<Stop>) -> Result<Option<Ended>, EngineError> {
    let begun_ns = now_ns();
    let ShardedJob { text, job, target, plan, deadline_at_ns } = *sharded;
    let left_ns = deadline_at_ns.saturating_sub(begun_ns).max(1);
    let numbers = job.is_part.then_some((job.shard.first_worker, job.shard.all_workers));
    let split = JobSplit::new(text, plan, target, left_ns, numbers).map_err(|error| internal(&error.to_string()))?;
    let shards = Shards::start(split, plan, job.interval_ns, stop).map_err(|error| {
        internal(&format!("so many connections take {} processes, and one cannot be started: {error}", plan.processes))
    })?;
    conductor::run(shards, job, stop, None, begun_ns)
}
