//! What the users of a journey do once, before the load: they log in.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;

use redline_traffic::{EngineError, ErrorKind};

use crate::client::{Activity, Client};
use crate::demand::{Demand, WalkRules, Walks};
use crate::ids::GlobalWorkerId;
use crate::io::Io;
use crate::job::{Job, Shape};
use crate::stop::Stop;
use crate::sys::time::now_ns;
use crate::tally::{IntervalSender, Tally, Window};
use crate::worker::{AfterLoad, Worker, WorkerLoad};

impl WalkRules {
    /// The rules for a worker; `None` without a journey.
    pub fn of(job: &Job, worker: GlobalWorkerId) -> Option<Self> {
        Some(Self {
            journey: Arc::clone(job.journey.as_ref()?),
            seed: job.seed,
            worker: worker.0,
            workers: job.shard.all_workers,
            is_open: matches!(job.load.shape, Shape::Open { .. }),
            skips_think: job.records.is_some(),
        })
    }
}

/// Why users could not do what they do once.
pub enum OnceError {
    /// A step failed.
    Failed(EngineError),
    /// A system call failed.
    Internal(io::Error),
}

impl From<io::Error> for OnceError {
    fn from(error: io::Error) -> Self {
        Self::Internal(error)
    }
}

/// Let all users of a worker take `once` on the connections that are open, if there is such a list. The first failure ends it.
///
/// # Errors
/// When a step fails, or the kernel refuses to wait.
pub fn take_once<I: Io>(
    job: &Arc<Job>,
    worker: GlobalWorkerId,
    client: Client<I>,
    stop: &Arc<Stop>,
) -> Result<Client<I>, OnceError> {
    let Some(rules) = WalkRules::of(job, worker).filter(|rules| rules.journey.lasts()) else {
        return Ok(client);
    };
    let epoch_ns = now_ns();
    // It ends when all have done it. Every request has the timeout of the job.
    let window = Window { epoch_ns, measure_ns: epoch_ns, end_ns: u64::MAX };
    let (_lender, spare) = channel();
    let tally = Tally::new(window, u64::MAX, IntervalSender { send: Box::new(drop), spare });
    let demand = Demand::of_walks(Walks::once(rules.clone(), epoch_ns), window.end_ns);
    let load = WorkerLoad::new(demand, tally, None, &Job { drain_ns: 0, ..Job::clone(job) });
    let mut worker = Worker::new(load, client, Activity::default(), Arc::clone(stop), false);
    worker.run()?;
    let AfterLoad { client, activity, walks, .. } = worker.into_parts();
    let failed = walks.and_then(|walks| walks.failed);
    let Some((number, at, outcome)) = failed.filter(|_| stop.code().is_none()) else {
        return Ok(client);
    };
    let failures = activity.failures.since(0);
    let failure = failures.as_slice().iter().find(|failure| failure.outcome == outcome);
    let why = failure.map_or("it failed", |failure| &failure.reason);
    let request = rules.journey.steps[at as usize].request;
    let user = number * rules.workers + rules.worker;
    Err(OnceError::Failed(EngineError {
        kind: ErrorKind::Connect,
        message: format!("user {user} could not take `once`: requests[{request}]: {why}"),
        hint: "see what the server answers to that request alone, and what the user sends with it".to_owned(),
    }))
}
