//! One worker of a duet: its connections to its targets, and the slices that it runs on them in turn.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use redline_pacing::{Arrivals, Crowd, Schedule};
use redline_traffic::{EngineError, JourneyTally, Phase, Reach, RequestTally, Slice};

use super::DuetTarget;
use crate::by_journey::{self, ByJourney};
use crate::by_request::{ByRequest, empty};
use crate::client::{Activity, Client, ConnectResult};
use crate::demand::{Demand, Users, WalkRules, Walks};
use crate::first_failures::FirstFailures;
use crate::ids::{GlobalWorkerId, WorkerId};
use crate::io::Io;
use crate::io::epoll::Epoll;
use crate::io::uring::Uring;
use crate::job::{Backend, Duet, Job, Shape};
use crate::keeper::Keeper;
use crate::once::{OnceError, take_once};
use crate::stop::Stop;
use crate::sys::process::{pin, precise_timers, shortest_slices};
use crate::sys::time::now_ns;
use crate::tally::{IntervalSender, MemberInterval, Tally, Window};
use crate::worker::{AfterLoad, Worker, WorkerLoad};
use crate::workers::internal;

/// One slice, as it is set for all workers.
pub struct Turn {
    pub target: usize,
    pub epoch_ns: u64,
    pub slice_ns: u64,
    /// Its distributions are part of the result.
    pub counts: bool,
    /// The number of the arrivals of an open load: slices with the same number have the same due times, and of a replay the
    /// same window.
    pub arrivals: u64,
}

/// What a worker reports.
pub enum WorkerReport {
    /// It has tried to connect to each target, with the backend of this name.
    Connected(Vec<ConnectResult>, &'static str),
    Ended(TurnResult),
    /// All slices are over: what was measured of each target.
    Totals(Vec<TargetTotal>),
    Failed(EngineError),
}

/// What a worker measured of a target in all slices that count, and why requests failed.
pub struct TargetTotal {
    pub slice: Slice,
    pub failures: FirstFailures,
    pub requests: Vec<RequestTally>,
    pub journeys: Option<JourneyTally>,
    pub reach: Reach,
    pub keeper: Keeper,
}

/// What one worker did in one slice.
#[derive(Default)]
pub struct TurnResult {
    /// When its last answer had come, in nanoseconds of the monotonic clock.
    pub drained_ns: u64,
    /// How long it measured, to the time when it noticed the end.
    pub measured_ns: u64,
    /// Right answers while it measured, and in the whole slice.
    pub measured: u64,
    pub completed: u64,
    /// Requests that ended otherwise, in the whole slice.
    pub failed: u64,
    pub bytes_received: u64,
    /// Requests without an answer when the drain was over.
    pub unanswered: u64,
    pub cpu_ns: u64,
    /// For how long it stood still.
    pub paused_ns: u64,
}

impl TurnResult {
    fn of(intervals: &[MemberInterval], drained_ns: u64, failed: u64, unanswered: u64) -> Self {
        let mut result = Self { drained_ns, failed, unanswered, ..Self::default() };
        for MemberInterval { phase, start_ns, end_ns, slice, .. } in intervals {
            result.completed += slice.counts.completed;
            result.bytes_received += slice.counts.bytes_received;
            result.cpu_ns += slice.engine_cpu_ns;
            result.paused_ns += slice.paused_ns;
            if *phase == Phase::Measure {
                result.measured += slice.counts.completed;
                result.measured_ns += end_ns - start_ns;
            }
        }
        result
    }
}

/// A worker's thread.
pub struct Turns {
    worker: WorkerId,
    cpu: Option<u32>,
    targets: Vec<DuetTarget>,
    duet: Duet,
    stop: Arc<Stop>,
    orders: Receiver<Turn>,
    reports: Sender<WorkerReport>,
}

impl Turns {
    /// Start the thread, pinned to the core if there is one, which connects at once; where its slices are ordered.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        number: u32,
        cpu: Option<u32>,
        targets: &[DuetTarget],
        duet: &Duet,
        stop: &Arc<Stop>,
        reports: &Sender<WorkerReport>,
    ) -> io::Result<Sender<Turn>> {
        let (sender, orders) = channel();
        let worker = Self {
            worker: WorkerId(number),
            cpu,
            targets: targets.to_vec(),
            duet: duet.clone(),
            stop: Arc::clone(stop),
            orders,
            reports: reports.clone(),
        };
        thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
            if let Err(error) = worker.run() {
                let error = match error {
                    OnceError::Failed(error) => error,
                    OnceError::Internal(error) => internal(&error),
                };
                let _ = worker.reports.send(WorkerReport::Failed(error));
            }
        })?;
        Ok(sender)
    }

    fn job(&self) -> &Arc<Job> {
        &self.targets[0].0
    }

    fn run(&self) -> Result<(), OnceError> {
        precise_timers();
        shortest_slices();
        let job = self.job();
        if let Some(cpu) = self.cpu {
            pin(&[cpu])?;
        }
        if job.backend != Backend::Epoll {
            match self.clients::<Uring>() {
                Ok(clients) => return self.run_with(clients),
                // An older kernel, a sandbox, or a limit of locked memory.
                Err(_) if job.backend == Backend::Auto => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.run_with(self.clients::<Epoll>()?)
    }

    /// A client for each target.
    fn clients<I: Io>(&self) -> io::Result<Vec<Client<I>>> {
        let new = |(job, peers): &DuetTarget| {
            let all = u64::from(job.load.connections());
            let mine = job.share_of(all, self.worker);
            let first = all / u64::from(job.workers) * u64::from(self.worker.0);
            Client::new(job, GlobalWorkerId(self.worker.0), peers, first as u32, mine as usize, &self.stop)
        };
        self.targets.iter().map(new).collect()
    }

    fn run_with<I: Io>(&self, mut clients: Vec<Client<I>>) -> Result<(), OnceError> {
        let mut activity = Activity::default();
        let connect = |client: &mut Client<I>| {
            let connections = self.job().share_of(u64::from(self.job().load.connections()), self.worker);
            client.connect_first(connections as usize, self.job().timeout_ns, &self.stop, &mut activity)
        };
        let connected = clients.iter_mut().map(connect).collect::<io::Result<Vec<_>>>()?;
        let is_connected = connected.iter().all(|result| result.open > 0);
        if is_connected {
            let once = |(client, (job, _)): (Client<I>, &DuetTarget)| {
                take_once(job, GlobalWorkerId(self.worker.0), client, &self.stop)
            };
            clients = clients.into_iter().zip(&self.targets).map(once).collect::<Result<_, _>>()?;
        }
        let _ = self.reports.send(WorkerReport::Connected(connected, I::NAME));
        // Handshakes and bytes before the first slice are of none.
        drop(activity);

        let (intervals, ended) = channel();
        let (spare, returned) = channel();
        let send = Box::new(move |interval| {
            let _ = intervals.send(interval);
        });
        let before = Window { epoch_ns: now_ns(), measure_ns: u64::MAX, end_ns: u64::MAX };
        let mut tally = Tally::new(before, u64::MAX, IntervalSender { send, spare: returned });
        tally.count_by_request(ByRequest::journal(self.job()));
        tally.count_journeys(ByJourney::journal(self.job()));
        let new = |(job, _): &DuetTarget| TargetTotal {
            slice: Slice::default(),
            failures: FirstFailures::default(),
            requests: empty(job),
            journeys: by_journey::empty(job),
            reach: Reach::default(),
            keeper: Keeper::new(job),
        };
        let mut totals: Vec<_> = self.targets.iter().map(new).collect();
        let mut walks: Vec<_> = clients.iter().map(|_| self.walks()).collect();
        while let Ok(turn) = self.orders.recv() {
            let client = clients.remove(turn.target);
            let TargetTotal { slice: total, failures, requests, journeys, keeper, .. } = &mut totals[turn.target];
            let known = Activity { failures: std::mem::take(failures), ..Activity::default() };
            let walked = walks[turn.target].take();
            if turn.counts {
                tally.keep_requests(keeper.clone());
            }
            let AfterLoad { unanswered, tally: used, client, activity, walks: under_way } =
                self.slice(&turn, client, known, tally, walked)?;
            let drained_ns = now_ns();
            (tally, *failures, walks[turn.target]) = (used, activity.failures, under_way);
            clients.insert(turn.target, client);
            let intervals: Vec<_> = ended.try_iter().collect();
            let result = TurnResult::of(&intervals, drained_ns, tally.take_failed(), unanswered);
            let counts = turn.counts && result.paused_ns == 0;
            if self.reports.send(WorkerReport::Ended(result)).is_err() {
                break;
            }
            if let Some(kept) = tally.take_keeper().filter(|_| counts) {
                *keeper = kept;
            }
            tally.settle_requests(requests, counts);
            tally.settle_journeys(journeys.as_mut(), counts);
            for mut interval in intervals {
                match interval.phase {
                    Phase::Measure if counts => total.add(&interval.slice),
                    Phase::Drain if counts => {
                        // As right answers and bytes: what came after the window is not of it.
                        interval.slice.counts.surplus = 0;
                        total.add_drained(&interval.slice);
                    }
                    _ => {}
                }
                interval.slice.clear();
                let _ = spare.send(interval.slice);
            }
        }
        for (total, walks) in totals.iter_mut().zip(walks) {
            let marks = walks.iter().flat_map(Walks::marks_under_way);
            tally.leave_unfinished(marks, total.journeys.as_mut());
        }
        for (total, client) in totals.iter_mut().zip(&mut clients) {
            total.reach = client.reach();
            client.close_websockets()?;
        }
        let _ = self.reports.send(WorkerReport::Totals(totals));
        Ok(())
    }

    /// This worker's journeys, none of which has begun.
    fn walks(&self) -> Option<Walks> {
        WalkRules::of(self.job(), GlobalWorkerId(self.worker.0)).map(Walks::new)
    }

    /// Run one slice as a load of its own, as [`Worker::into_parts`] returns it. `activity` has the failures of earlier ones,
    /// and `walks` the journeys that go on.
    fn slice<I: Io>(
        &self,
        turn: &Turn,
        client: Client<I>,
        activity: Activity,
        mut tally: Tally,
        mut walks: Option<Walks>,
    ) -> io::Result<AfterLoad<I>> {
        let job = &self.targets[turn.target].0;
        let window = Window {
            epoch_ns: turn.epoch_ns,
            measure_ns: turn.epoch_ns + self.duet.guard_ns,
            end_ns: turn.epoch_ns + turn.slice_ns,
        };
        tally.restart_noticing_end(window);
        if let Some(walks) = &mut walks {
            walks.resume(turn.epoch_ns);
        }
        let load = WorkerLoad::new(self.demand(job, window, turn.arrivals, walks)?, tally, None, job);
        let mut worker = Worker::new(load, client, activity, Arc::clone(&self.stop), job.spin);
        worker.run()?;
        Ok(worker.into_parts())
    }

    fn demand(&self, job: &Job, window: Window, arrivals: u64, walks: Option<Walks>) -> io::Result<Demand> {
        let (worker, workers) = (self.worker.0, job.workers);
        match &job.load.shape {
            Shape::Open { rate_per_s, arrivals: kind, .. } => {
                let schedule = match kind {
                    Arrivals::Replayed(times) => {
                        Schedule::window(times, arrivals, window.end_ns - window.epoch_ns, worker, workers)
                    }
                    _ => Schedule::new(rate_per_s, kind, job.seed.wrapping_add(arrivals), worker, workers),
                };
                let schedule = schedule.map_err(io::Error::other)?;
                Ok(Demand::open(schedule, walks, window.epoch_ns, window.end_ns))
            }
            Shape::Closed { users, think, pace } => {
                let crowd = Crowd::new(users, worker, workers);
                let (depth, seed) = (job.load.depth, job.seed);
                let users = Users { crowd, think: *think, pace: *pace, depth, seed, worker, workers };
                Ok(Demand::closed(users, walks, window.epoch_ns, window.end_ns))
            }
        }
    }
}
