//! The thread of one worker: where it runs, what its share is, and how it reports to the director.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use redline_pacing::{Crowd, Schedule};
use redline_traffic::Slice;

use crate::demand::{Demand, Users};
use crate::failure_log::{FailureLog, Kind};
use crate::io::Io;
use crate::io::epoll::Epoll;
use crate::io::uring::Uring;
use crate::job::{Backend, Job, Shape};
use crate::measure_start::MeasureStart;
use crate::pool::{Failure, Opened, Pool};
use crate::scenario::Scenario;
use crate::stop::Stop;
use crate::sys::process::{exact_timers, pin, short_slices};
use crate::tally::{IntervalSender, Returns, Tally, Window, WorkerInterval};
use crate::worker::{Worker, WorkerParts};

/// What a worker tells.
pub enum Message {
    Connected(Opened, &'static str),
    WorkerInterval(usize, WorkerInterval),
    /// When its measurement ended, if it was cut.
    Finished {
        worker: usize,
        cut_ns: Option<u64>,
    },
    Failed(io::Error),
}

/// What a worker thread is given.
struct WorkerThread {
    number: u32,
    job: Arc<Job>,
    stop: Arc<Stop>,
    target: SocketAddr,
    messages: Sender<Message>,
    epoch: Receiver<u64>,
    beginning: Arc<MeasureStart>,
}

/// The main thread's side of a worker.
pub struct WorkerHandle {
    pub epoch: Sender<u64>,
    pub returns: Returns,
}

/// Start a worker's thread.
pub fn spawn_worker(
    number: u32,
    job: &Arc<Job>,
    stop: &Arc<Stop>,
    target: SocketAddr,
    messages: &Sender<Message>,
    beginning: &Arc<MeasureStart>,
) -> io::Result<WorkerHandle> {
    let (epoch, epoch_inbox) = channel();
    let (returns, returned) = channel();
    let place = WorkerThread {
        number,
        job: Arc::clone(job),
        stop: Arc::clone(stop),
        target,
        messages: messages.clone(),
        epoch: epoch_inbox,
        beginning: Arc::clone(beginning),
    };
    thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
        let failures = place.messages.clone();
        if let Err(error) = place.work(returned) {
            let _ = failures.send(Message::Failed(error));
        }
    })?;
    Ok(WorkerHandle { epoch, returns })
}

impl WorkerThread {
    /// Connect, wait for the epoch, do this worker's share of the load.
    fn work(self, returned: Receiver<Box<Slice>>) -> io::Result<()> {
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

    fn work_with<I: Io>(self, mut pool: Pool<I>, scenario: Scenario, returned: Receiver<Box<Slice>>) -> io::Result<()> {
        pool.grow(self.at_start());
        let opened = pool.open_all(self.job.timeout_ns, &self.stop)?;
        let mut reasons = FailureLog::new(self.global());
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
            let _ = messages.send(Message::WorkerInterval(worker, piece));
        });
        let mut tally = Tally::new(window, self.job.interval_ns, IntervalSender { pieces, spare: returned });
        if self.job.commands {
            tally.ask(Arc::clone(&self.beginning));
        }
        let demand = self.demand(window)?;
        let count = self.job.count.map(|count| self.job.share_of(count, self.number));
        let share = WorkerParts { pool, demand, scenario, tally, reasons, count };
        let mut load = Worker::new(share, self.job, self.stop, window.end_ns);
        let cut_ns = load.run()?;
        // Before the connections are closed, which takes its time where there are many.
        let _ = self.messages.send(Message::Finished { worker, cut_ns });
        drop(load);
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
