//! The main thread: starts the workers together, puts together what they tell, and tells it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use redline_pacing::{Crowd, Schedule};
use redline_traffic::{
    ENGINE_FORMAT, Ended, Engine, ErrorKind, Event, Interval, Phase, Started, Summary, TlsTold, Trouble,
};

use crate::demand::{Demand, Users};
use crate::io::Io;
use crate::io::epoll::Epoll;
use crate::io::uring::Uring;
use crate::job::{Backend, Job, Shape};
use crate::merge::Merger;
use crate::output::tell;
use crate::pool::{Failure, Opened, Pool};
use crate::reasons::{Kind, Reasons};
use crate::scenario::Scenario;
use crate::stop::Stop;
use crate::sys::process::{exact_timers, give_way, pin, short_slices};
use crate::sys::time::{now_ns, thread_cpu_ns, unix_ns};
use crate::tally::{Outlet, Piece, Returns, Tally, Window};
use crate::worker::{Share, Worker};

/// How far ahead the epoch is set, so that every worker is there when it comes.
const NOTICE_NS: u64 = 1_000_000;

enum Message {
    Connected(Opened, &'static str),
    Piece(usize, Piece),
    /// When its measurement ended, if it was cut.
    Finished {
        worker: usize,
        cut_ns: Option<u64>,
    },
    Failed(io::Error),
}

/// What a worker thread is given.
struct Place {
    number: u32,
    job: Arc<Job>,
    stop: Arc<Stop>,
    target: SocketAddr,
    messages: Sender<Message>,
    epoch: Receiver<u64>,
}

/// The main thread's side of a worker.
struct Hired {
    epoch: Sender<u64>,
    returns: Returns,
}

/// Do a job and tell its events; how it ended, or `None` when it was stopped before there was anything to tell.
///
/// # Errors
/// When it could not be done.
pub fn direct(job: &Arc<Job>, target: SocketAddr, stop: &Arc<Stop>) -> Result<Option<Ended>, Trouble> {
    let begun_ns = now_ns();
    let (messages, inbox) = channel();
    let hired = (0..job.workers)
        .map(|number| hire(number, job, stop, target, &messages))
        .collect::<io::Result<Vec<_>>>()
        .map_err(|error| internal(&error))?;
    drop(messages);
    let connections = wait_for_connections(&hired, &inbox)?;
    if stop.code().is_some() {
        return Ok(None);
    }
    if let Some(trouble) = not_connected(job, target, &connections) {
        return Err(trouble);
    }
    let epoch_ns = now_ns() + NOTICE_NS;
    tell(&Event::Started(Started {
        format: ENGINE_FORMAT.to_owned(),
        engine: Engine {
            name: "redline-engine".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            backend: connections.backend.to_owned(),
            workers: job.workers,
            cpus: job.cpus.clone(),
            processes: 1,
        },
        connections: connections.open,
        connect_ns: epoch_ns - NOTICE_NS - begun_ns,
        epoch_unix_ns: unix_ns() + epoch_ns - now_ns(),
        tls: connections.tls,
    }));
    for worker in &hired {
        // A worker that is gone has said why.
        let _ = worker.epoch.send(epoch_ns);
    }
    conduct(job, stop, &hired, &inbox, epoch_ns).map(Some)
}

/// Start a worker's thread.
fn hire(
    number: u32,
    job: &Arc<Job>,
    stop: &Arc<Stop>,
    target: SocketAddr,
    messages: &Sender<Message>,
) -> io::Result<Hired> {
    let (epoch, epoch_inbox) = channel();
    let (returns, returned) = channel();
    let place = Place {
        number,
        job: Arc::clone(job),
        stop: Arc::clone(stop),
        target,
        messages: messages.clone(),
        epoch: epoch_inbox,
    };
    thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
        let failures = place.messages.clone();
        if let Err(error) = place.work(returned) {
            let _ = failures.send(Message::Failed(error));
        }
    })?;
    Ok(Hired { epoch, returns })
}

impl Place {
    /// Connect, wait for the epoch, do this worker's share of the load.
    fn work(self, returned: Receiver<Box<redline_traffic::Slice>>) -> io::Result<()> {
        exact_timers();
        short_slices();
        if !self.job.cpus.is_empty() {
            pin(&[self.job.cpus[self.global() as usize % self.job.cpus.len()]])?;
        }
        let scenario = Scenario::new(&self.job, self.global());
        if self.job.backend != Backend::Epoll {
            match self.pool::<Uring>(&scenario) {
                Ok(pool) => return self.work_with(pool, scenario, returned),
                // An older kernel, a sandbox, or a limit on locked memory.
                Err(_) if self.job.backend == Backend::Auto => {}
                Err(error) => return Err(error),
            }
        }
        let pool = self.pool::<Epoll>(&scenario)?;
        self.work_with(pool, scenario, returned)
    }

    fn work_with<I: Io>(
        self,
        mut pool: Pool<I>,
        scenario: Scenario,
        returned: Receiver<Box<redline_traffic::Slice>>,
    ) -> io::Result<()> {
        pool.grow(self.at_start());
        let opened = pool.open_all(self.job.timeout_ns, &self.stop)?;
        let mut reasons = Reasons::new(self.global());
        match &opened.why {
            Some(why @ Failure::Connect(error)) => reasons.tell(Kind::of_connecting(error), why),
            Some(why @ Failure::Tls(_)) => reasons.tell(Kind::Tls, why),
            None => {}
        }
        let _ = self.messages.send(Message::Connected(opened, I::NAME));
        let Ok(epoch_ns) = self.epoch.recv() else {
            return Ok(());
        };
        let measure_ns = epoch_ns + self.job.warmup_ns;
        let window = Window { epoch_ns, measure_ns, end_ns: measure_ns + self.job.measure_ns };
        let worker = self.number as usize;
        let messages = self.messages.clone();
        let pieces = Box::new(move |piece| {
            let _ = messages.send(Message::Piece(worker, piece));
        });
        let tally = Tally::new(window, self.job.interval_ns, Outlet { pieces, spare: returned });
        let demand = self.demand(window)?;
        let count = self.job.count.map(|count| self.job.share_of(count, self.number));
        let share = Share { pool, demand, scenario, tally, reasons, count };
        let cut_ns = Worker::new(share, self.job, self.stop, window.end_ns).run()?;
        let _ = self.messages.send(Message::Finished { worker, cut_ns });
        Ok(())
    }

    /// This worker's number among those of all processes.
    fn global(&self) -> u32 {
        self.job.shard.first_worker + self.number
    }

    fn pool<I: Io>(&self, scenario: &Scenario) -> io::Result<Pool<I>> {
        let all = u64::from(self.job.load.connections());
        let mine = self.job.share_of(all, self.number);
        // Connections are numbered through all workers, so that sources are spread evenly.
        let first = all / u64::from(self.job.shard.all_workers) * u64::from(self.global());
        Pool::new(&self.job, scenario.tapes(), self.target, first as u32, mine as usize, &self.stop)
    }

    /// How many connections are opened before the epoch.
    fn at_start(&self) -> usize {
        match &self.job.load.shape {
            Shape::Closed { .. } => self.users().map_or(0, |users| users.at_start()),
            Shape::Open { at_start, .. } => self.job.share_of(u64::from(*at_start), self.number).max(1) as usize,
        }
    }

    fn users(&self) -> Option<Users> {
        let Shape::Closed { users, think, pace } = &self.job.load.shape else {
            return None;
        };
        let (worker, workers) = (self.global(), self.job.shard.all_workers);
        let crowd = Crowd::new(users, worker, workers);
        let (depth, seed) = (self.job.load.depth, self.job.seed);
        Some(Users { crowd, think: *think, pace: *pace, depth, seed, worker, workers })
    }

    fn demand(&self, window: Window) -> io::Result<Demand> {
        match (&self.job.load.shape, self.users()) {
            (Shape::Open { rate_per_s, arrivals, .. }, _) => {
                let (worker, workers) = (self.global(), self.job.shard.all_workers);
                let schedule = Schedule::new(rate_per_s, arrivals, self.job.seed, worker, workers);
                Ok(Demand::open(schedule.map_err(io::Error::other)?, window.epoch_ns, window.end_ns))
            }
            (_, Some(users)) => Ok(Demand::closed(users, window.epoch_ns, window.end_ns)),
            (_, None) => Err(io::Error::other("a closed load has users")),
        }
    }
}

/// What the workers' connecting came to.
struct Connections {
    open: u64,
    backend: &'static str,
    tls: Option<TlsTold>,
    why: Option<Failure>,
}

/// Wait until every worker has tried.
fn wait_for_connections(hired: &[Hired], inbox: &Receiver<Message>) -> Result<Connections, Trouble> {
    let mut all = Connections { open: 0, backend: "", tls: None, why: None };
    for _ in hired {
        match inbox.recv() {
            Ok(Message::Connected(opened, backend)) => {
                all.open += opened.open as u64;
                all.why = opened.why.or(all.why);
                all.tls = all.tls.or(opened.tls);
                all.backend = backend;
            }
            Ok(Message::Failed(error)) => return Err(internal(&error)),
            Ok(_) => {}
            Err(error) => return Err(internal(&io::Error::other(error))),
        }
    }
    Ok(all)
}

/// That not one connection could be opened, when some were wanted.
fn not_connected(job: &Job, target: SocketAddr, connections: &Connections) -> Option<Trouble> {
    let wants_some = match &job.load.shape {
        Shape::Closed { users, .. } => users.start() >= 1.0,
        Shape::Open { .. } => true,
    };
    if connections.open > 0 || !wants_some {
        return None;
    }
    let why = connections.why.as_ref().map_or_else(|| "no answer in time".to_owned(), ToString::to_string);
    let hint = match connections.why {
        Some(Failure::Tls(_)) => {
            "check the certificate: give its CA with ca_pem, or trust any with insecure; and that the port speaks TLS"
        }
        _ => "check that the server is running and listens on that address and port",
    };
    Some(Trouble {
        kind: ErrorKind::Connect,
        message: format!("not one connection to {target} could be opened: {why}"),
        hint: hint.to_owned(),
    })
}

/// Tell intervals as they end, and then the result.
fn conduct(
    job: &Job,
    stop: &Stop,
    hired: &[Hired],
    inbox: &Receiver<Message>,
    epoch_ns: u64,
) -> Result<Ended, Trouble> {
    give_way();
    let mut merger = Merger::new(hired.len());
    let mut last_cut_ns = None;
    let mut cpu_ns = thread_cpu_ns();
    while !merger.all_finished() {
        match inbox.recv() {
            Ok(Message::Piece(worker, piece)) => {
                if let Some(spare) = merger.add(worker, piece) {
                    let _ = hired[worker].returns.send(spare);
                }
            }
            Ok(Message::Finished { worker, cut_ns }) => {
                last_cut_ns = last_cut_ns.max(cut_ns);
                merger.finish(worker);
            }
            Ok(Message::Connected(..)) => {}
            Ok(Message::Failed(error)) => return Err(internal(&error)),
            Err(error) => return Err(internal(&io::Error::other(error))),
        }
        tell_intervals(&mut merger, hired, &mut cpu_ns);
    }
    let ended = if last_cut_ns.is_some() { stop.ended() } else { Ended::Complete };
    let planned_end_ns = job.warmup_ns + job.measure_ns;
    let measure_end_ns =
        last_cut_ns.map_or(planned_end_ns, |cut_ns| planned_end_ns.min(cut_ns.saturating_sub(epoch_ns)));
    tell(&Event::Result(Summary {
        ended,
        measure_start_ns: job.warmup_ns.min(measure_end_ns),
        measure_end_ns,
        slice: &merger.total,
    }));
    Ok(ended)
}

/// Tell every interval that all workers have told. The main thread's own CPU time belongs to the interval that it tells.
fn tell_intervals(merger: &mut Merger, hired: &[Hired], cpu_ns: &mut u64) {
    while let Some(mut merged) = merger.next() {
        let before_ns = std::mem::replace(cpu_ns, thread_cpu_ns());
        let own_ns = *cpu_ns - before_ns;
        let piece = &mut merged.piece;
        piece.slice.engine_cpu_ns += own_ns;
        if piece.phase == Phase::Measure {
            merger.total.engine_cpu_ns += own_ns;
        }
        tell(&Event::Interval(Interval {
            phase: piece.phase,
            index: merged.index,
            start_ns: piece.start_ns,
            end_ns: piece.end_ns,
            slice: &piece.slice,
        }));
        piece.slice.clear();
        let _ = hired[merged.lender].returns.send(merged.piece.slice);
    }
}

fn internal(error: &io::Error) -> Trouble {
    Trouble {
        kind: ErrorKind::Internal,
        message: format!("the system refused what it never should: {error}"),
        hint:
            "look at the limits of this process (descriptors, threads, memory) and report it if they are not the cause"
                .to_owned(),
    }
}
