//! The worker threads of this process, as the members of its main thread.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use redline_pacing::{Crowd, Schedule};
use redline_traffic::{
    Clocks, Connected, Ended, EngineError, ErrorKind, Event, JourneyTally, KeptRequests, Reach, RequestTally, Slice,
};

use crate::by_journey::ByJourney;
use crate::by_request::ByRequest;
use crate::client::{Activity, Client, ConnectResult, OpenError};
use crate::conductor::{MemberReport, Members};
use crate::demand::{Demand, Users, WalkRules, Walks};
use crate::first_failures::FirstFailures;
use crate::ids::{GlobalWorkerId, WorkerId};
use crate::io::Io;
use crate::io::epoll::Epoll;
use crate::io::uring::Uring;
use crate::job::{Backend, Job, Shape};
use crate::keeper::Keeper;
use crate::measure_start::{IntervalGrid, MeasureStart};
use crate::merge::Measured;
use crate::once::{OnceError, take_once};
use crate::peers::Peers;
use crate::protocol::{OnMeasure, emit};
use crate::request_log::{LogOrder, RequestLog};
use crate::shards::child::{is_shard, too_late};
use crate::stop::Stop;
use crate::sys::process::{end_now, pin, precise_timers, shortest_slices};
use crate::sys::time::thread_cpu_ns;
use crate::tally::{IntervalSender, MemberInterval, SliceReturn, Tally, Window};
use crate::window_clocks::WindowClocks;
use crate::worker::{Worker, WorkerLoad};

/// All workers of this process, from the main thread's side.
pub struct Workers {
    job: Arc<Job>,
    stop: Arc<Stop>,
    target: Peers,
    handles: Vec<WorkerHandle>,
    inbox: Receiver<Message>,
    measure_start: Arc<MeasureStart>,
    epoch_ns: u64,
    clocks: Option<WindowClocks>,
}

struct WorkerHandle {
    epoch: Sender<u64>,
    spare: SliceReturn,
}

/// What a worker reports.
enum Message {
    /// It has tried to connect, with the backend of this name.
    Connected(ConnectResult, &'static str),
    Interval(WorkerId, MemberInterval),
    /// When its measurement ended, if it was cut, why requests failed, the measurements by request, and how far
    /// the connections came.
    Finished {
        worker: WorkerId,
        cut_ns: Option<u64>,
        failures: FirstFailures,
        requests: Vec<RequestTally>,
        journeys: Option<JourneyTally>,
        reach: Reach,
        kept: KeptRequests,
    },
    Failed(EngineError),
}

impl Workers {
    /// Start the threads, which connect at once.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(
        job: &Arc<Job>,
        target: &Peers,
        stop: &Arc<Stop>,
        measure_start: Arc<MeasureStart>,
    ) -> Result<Self, EngineError> {
        let (messages, inbox) = channel();
        let handles = (0..job.workers).map(|number| {
            let (epoch, epoch_inbox) = channel();
            let (spare, returned) = channel();
            let thread = WorkerThread {
                worker: WorkerId(number),
                job: Arc::clone(job),
                stop: Arc::clone(stop),
                target: target.clone(),
                messages: messages.clone(),
                epoch: epoch_inbox,
                measure_start: Arc::clone(&measure_start),
            };
            thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
                let messages = thread.messages.clone();
                if let Err(error) = thread.run(returned) {
                    let _ = messages.send(Message::Failed(match error {
                        OnceError::Failed(error) => error,
                        OnceError::Internal(error) => internal(&error),
                    }));
                }
            })?;
            Ok(WorkerHandle { epoch, spare })
        });
        let handles = handles.collect::<io::Result<Vec<_>>>().map_err(|error| internal(&error))?;
        Ok(Self {
            job: Arc::clone(job),
            stop: Arc::clone(stop),
            target: target.clone(),
            handles,
            inbox,
            measure_start,
            epoch_ns: 0,
            clocks: None,
        })
    }

    fn receive(&self) -> Result<Message, EngineError> {
        match self.inbox.recv() {
            Ok(Message::Failed(error)) => Err(error),
            Ok(message) => Ok(message),
            Err(error) => Err(internal(&io::Error::other(error))),
        }
    }

    /// The measurement of a worker that has finished, in nanoseconds since the epoch. Its start is known by now.
    fn measured(&self, cut_ns: Option<u64>) -> Measured {
        let set_ns = self.measure_start.at_ns().map(|at_ns| at_ns - self.epoch_ns);
        let start_ns = set_ns.unwrap_or(self.job.warmup_ns);
        let planned_ns = start_ns + self.job.measure_ns;
        let end_ns = cut_ns.map_or(planned_ns, |cut_ns| cut_ns.saturating_sub(self.epoch_ns).min(planned_ns));
        let ended = if cut_ns.is_some() { self.stop.ended() } else { Ended::Complete };
        Measured { ended, start_ns: start_ns.min(end_ns), end_ns }
    }
}

/// The error when no connection could be opened, if some are needed at the start.
pub fn not_connected(job: &Job, target: &Peers, why: Option<&OpenError>) -> Option<EngineError> {
    let needs_some = match &job.load.shape {
        Shape::Closed { users, .. } => users.start() >= 1.0,
        Shape::Open { .. } => true,
    };
    let hint = match why {
        Some(why) if why.is_exhaustion() => {
            "this machine has no port, descriptor or memory left for it: see who holds connections (`ss -tan`), \
             net.ipv4.ip_local_port_range and `ulimit -n`; ports of closed connections rest for a minute"
        }
        Some(OpenError::Tls(why)) if why.contains("the server's certificate") => {
            "check the certificate: trust who signed it (`ca`, `--cacert`), or any (`--insecure`)"
        }
        Some(OpenError::Tls(why)) if why.contains("it wants a certificate of the client") => {
            "give the client's certificate and its key: `--cert` and `--key`, or `cert` and `key` of `tls`"
        }
        Some(OpenError::Tls(why)) if why.contains("the server sent the alert") => {
            "see what the server's log says of the handshake"
        }
        Some(OpenError::Tls(_)) => "check that the port speaks TLS",
        Some(OpenError::WebSocket(..)) => "check the path of the WebSocket, its headers and its subprotocols",
        Some(OpenError::Proxy(why)) if why.contains("answered 407") => {
            "give a user and a password that the proxy takes: http://USER:PASSWORD@HOST:PORT"
        }
        Some(OpenError::Proxy(why)) if why.contains("answered 403") => {
            "let the proxy open tunnels to that port: many do so to port 443 alone"
        }
        Some(OpenError::Proxy(_)) => {
            "check that it is an HTTP proxy that takes CONNECT, and that it reaches the server"
        }
        _ if job.target.proxy.is_some() => "check that the proxy is running and listens on that address and port",
        _ if target.unix().is_some() => {
            "check that the server is running and listens on that socket, and that you may write to it"
        }
        _ => "check that the server is running and listens on that address and port",
    };
    let why = why.map_or_else(|| "no answer in time".to_owned(), ToString::to_string);
    let target = if job.target.proxy.is_some() { format!("the proxy {target}") } else { target.to_string() };
    needs_some.then(|| EngineError {
        kind: ErrorKind::Connect,
        message: format!("not one connection to {target} could be opened: {why}"),
        hint: hint.to_owned(),
    })
}

impl Members for Workers {
    const NOTICE_NS: u64 = 1_000_000;

    /// A coordinator waits for all its shards: if they share few cores, a main thread that yields would delay the result.
    fn yields_to_load(&self) -> bool {
        !is_shard()
    }

    fn count(&self) -> usize {
        self.handles.len()
    }

    fn workers_and_processes(&self) -> (u32, u32) {
        (self.job.workers, 1)
    }

    fn connect(&mut self, stop: &Stop) -> Result<Option<Connected>, EngineError> {
        let mut all = ConnectResult::default();
        let mut name = "";
        for _ in &self.handles {
            if let Message::Connected(result, backend) = self.receive()? {
                all.add(result);
                name = backend;
            }
        }
        let none = all.open == 0;
        let error = if none { not_connected(&self.job, &self.target, all.error.as_ref()) } else { None };
        Ok(stop.code().is_none().then(|| Connected {
            connections: all.open as u64,
            connect_ns: 0,
            backend: name.to_owned(),
            tls: all.tls,
            addresses: self.target.all().iter().map(ToString::to_string).collect(),
            error,
        }))
    }

    fn start(&mut self, epoch_ns: u64) {
        self.epoch_ns = epoch_ns;
        for worker in &self.handles {
            // This fails if the worker has ended, and reported why.
            let _ = worker.epoch.send(epoch_ns);
        }
        if !is_shard() {
            self.clocks = WindowClocks::start(&self.job, epoch_ns, Arc::clone(&self.measure_start)).ok();
        }
    }

    fn on_measure(&mut self, grid: IntervalGrid) -> OnMeasure {
        let measure_start = Arc::clone(&self.measure_start);
        Box::new(move |at_ns| match at_ns.map(|at_ns| grid.at_or_after(at_ns)) {
            None => measure_start.set_next(grid),
            // The engines on other hosts measure from there on.
            Some(Some(at_ns)) if !measure_start.set(at_ns) => {
                emit(&Event::Error(&too_late()));
                end_now(1);
            }
            Some(_) => {}
        })
    }

    fn next(&mut self) -> Result<Option<MemberReport>, EngineError> {
        Ok(match self.receive()? {
            Message::Interval(worker, interval) => Some(MemberReport::Interval { member: worker.index(), interval }),
            Message::Finished { worker, cut_ns, failures, requests, journeys, reach, kept } => {
                Some(MemberReport::Finished {
                    member: worker.index(),
                    measured: self.measured(cut_ns),
                    failures: failures.since(self.epoch_ns),
                    requests,
                    journeys,
                    reach,
                    kept,
                })
            }
            Message::Connected(..) | Message::Failed(_) => None,
        })
    }

    fn give_back(&self, member: usize, slice: Box<Slice>) {
        let _ = self.handles[member].spare.send(slice);
    }

    fn clocks(&mut self, measured: &Measured) -> Option<Clocks> {
        self.clocks.take()?.of(measured, &self.job)
    }

    fn own_cpu_ns(&self) -> u64 {
        thread_cpu_ns()
    }
}

pub fn internal(error: &io::Error) -> EngineError {
    EngineError {
        kind: ErrorKind::Internal,
        message: format!("a system call failed that should not: {error}"),
        hint:
            "look at the limits of this process (descriptors, threads, memory) and report it if they are not the cause"
                .to_owned(),
    }
}

/// The parameters of a worker's thread.
struct WorkerThread {
    worker: WorkerId,
    job: Arc<Job>,
    stop: Arc<Stop>,
    target: Peers,
    messages: Sender<Message>,
    epoch: Receiver<u64>,
    measure_start: Arc<MeasureStart>,
}

impl WorkerThread {
    /// Connect, wait for the epoch, and run this worker's share of the load.
    fn run(self, returned: Receiver<Box<Slice>>) -> Result<(), OnceError> {
        precise_timers();
        shortest_slices();
        if !self.job.cpus.is_empty() {
            pin(&[self.job.cpus[self.global().index() % self.job.cpus.len()]])?;
        }
        if self.job.backend != Backend::Epoll {
            match self.client::<Uring>() {
                Ok(client) => return self.run_with(client, returned),
                // The kernel is too old, a sandbox forbids it, or the limit of locked memory is too low.
                Err(_) if self.job.backend == Backend::Auto => {}
                Err(error) => return Err(error.into()),
            }
        }
        let client = self.client::<Epoll>()?;
        self.run_with(client, returned)
    }

    fn run_with<I: Io>(self, mut client: Client<I>, returned: Receiver<Box<Slice>>) -> Result<(), OnceError> {
        let mut activity = Activity::default();
        let (connections, limit_ns) = (self.connections_at_start(), self.job.timeout_ns);
        // Users who come later take `once` before the load as well.
        let is_extra = connections == 0 && self.job.journey.as_ref().is_some_and(|journey| journey.lasts());
        let opened = connections.max(usize::from(is_extra));
        let result = client.connect_first(opened, limit_ns, &self.stop, &mut activity)?;
        if result.open > 0 {
            client = take_once(&self.job, self.global(), client, &self.stop)?;
        }
        if is_extra {
            client.shrink();
        }
        let _ = self.messages.send(Message::Connected(result, I::NAME));
        let Ok(epoch_ns) = self.epoch.recv() else {
            return Ok(());
        };
        let measure_ns = epoch_ns + self.job.warmup_ns;
        let window = Window { epoch_ns, measure_ns, end_ns: measure_ns + self.job.measure_ns };
        let (worker, messages) = (self.worker, self.messages.clone());
        let send = Box::new(move |interval| {
            let _ = messages.send(Message::Interval(worker, interval));
        });
        let mut tally = Tally::new(window, self.job.interval_ns, IntervalSender { send, spare: returned });
        tally.count_by_request(ByRequest::sums(&self.job));
        tally.count_journeys(ByJourney::sums(&self.job));
        tally.keep_requests(Keeper::new(&self.job));
        let all_workers = u64::from(self.job.shard.all_workers);
        let log = self.job.log.as_ref().map(|log| RequestLog::new(epoch_ns, log.at_most / all_workers));
        tally.log_requests(log.map(Box::new));
        if self.job.commands {
            tally.follow(Arc::clone(&self.measure_start));
        }
        let count = self.job.count.map(|count| self.job.share_of(count, worker));
        let load = WorkerLoad::new(self.demand(window)?, tally, count, &self.job);
        let worker = Worker::new(load, client, activity, self.stop, self.job.spin);
        let mut worker = worker.wakes_early(self.job.shard.all_workers);
        let cut_ns = worker.run()?;
        // Before the end is known, with which the process may end.
        worker.close_websockets()?;
        // Done before the connections are closed, because closing many takes long.
        let (failures, requests, journeys) = (worker.take_failures(), worker.take_requests(), worker.take_journeys());
        let (worker_id, reach, kept) = (self.worker, worker.reach(), worker.kept());
        let log = worker.take_log().zip(self.job.log.as_ref());
        let global = self.job.global(self.worker);
        // Before the end is said: who hears of it reads the file.
        log.map(|(log, LogOrder { folder, .. })| log.write(folder, global.0)).transpose()?;
        let _ = self.messages.send(Message::Finished {
            worker: worker_id,
            cut_ns,
            failures,
            requests,
            journeys,
            reach,
            kept,
        });
        drop(worker);
        Ok(())
    }

    /// The number of this worker among those of all processes.
    fn global(&self) -> GlobalWorkerId {
        self.job.global(self.worker)
    }

    fn client<I: Io>(&self) -> io::Result<Client<I>> {
        let all = u64::from(self.job.load.connections());
        let mine = self.job.share_of(all, self.worker);
        // Connections are numbered through all workers, so that their source addresses are spread evenly.
        let first = all / u64::from(self.job.shard.all_workers) * u64::from(self.global().0);
        Client::new(&self.job, self.global(), &self.target, first as u32, mine as usize, &self.stop)
    }

    /// How many connections are opened before the epoch.
    fn connections_at_start(&self) -> usize {
        match &self.job.load.shape {
            Shape::Closed { .. } => self.users().map_or(0, |users| users.at_start()),
            Shape::Open { at_start, .. } => self.job.share_of(u64::from(*at_start), self.worker).max(1) as usize,
        }
    }

    fn users(&self) -> Option<Users> {
        let Shape::Closed { users, think, pace } = &self.job.load.shape else {
            return None;
        };
        let (worker, workers) = (self.global().0, self.job.shard.all_workers);
        let crowd = Crowd::new(users, worker, workers);
        let (depth, seed) = (self.job.load.depth, self.job.seed);
        Some(Users { crowd, think: *think, pace: *pace, depth, seed, worker, workers })
    }

    fn demand(&self, window: Window) -> io::Result<Demand> {
        let walks = WalkRules::of(&self.job, self.global()).map(Walks::new);
        match (&self.job.load.shape, self.users()) {
            (Shape::Open { rate_per_s, arrivals, .. }, _) => {
                let (worker, workers) = (self.global().0, self.job.shard.all_workers);
                let schedule = Schedule::new(rate_per_s, arrivals, self.job.seed, worker, workers);
                let schedule = schedule.map_err(io::Error::other)?;
                Ok(Demand::open(schedule, walks, window.epoch_ns, window.end_ns))
            }
            (_, Some(users)) => Ok(Demand::closed(users, walks, window.epoch_ns, window.end_ns)),
            (_, None) => Err(io::Error::other("a closed load has users")),
        }
    }
}
