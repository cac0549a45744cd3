//! The main thread of an engine. It waits until all members have connected, starts their schedules at the same instant, merges
//! their intervals and emits the events. Members are worker threads, or processes that run engines of their own.

use redline_traffic::{
    Clocks, Connected, ENGINE_FORMAT, Ended, Engine, EngineError, ErrorKind, Event, Failures, Interval, JourneyTally,
    KeptRequests, Phase, Reach, RequestTally, Slice, Started, Summary,
};

use crate::job::Job;
use crate::measure_start::IntervalGrid;
use crate::merge::{Measured, Merger};
use crate::protocol::{Commands, OnMeasure, emit};
use crate::shards::child::ShardControl;
use crate::stop::Stop;
use crate::sys::process::lower_priority;
use crate::sys::time::{now_ns, unix_ns};
use crate::tally::MemberInterval;
use crate::workers::internal;

/// The members that load the target, numbered from 0.
pub trait Members {
    /// How far ahead the epoch is set, so that every member is ready in time.
    const NOTICE_NS: u64;
    /// Whether the main thread runs only while its core has nothing else to do.
    fn yields_to_load(&self) -> bool;
    /// The number of members.
    fn count(&self) -> usize;
    /// Worker threads in all processes, and processes.
    fn workers_and_processes(&self) -> (u32, u32);

    /// Wait until every member has tried to connect; `None` when the work was stopped before. `connect_ns` stays 0.
    ///
    /// # Errors
    /// When a member failed.
    fn connect(&mut self, stop: &Stop) -> Result<Option<Connected>, EngineError>;

    /// Start all schedules at this time.
    fn start(&mut self, epoch_ns: u64);

    /// The function that starts the measurement on command.
    fn on_measure(&mut self, grid: IntervalGrid) -> OnMeasure;

    /// Wait for the next report of a member; `None` for a report that needs no handling.
    ///
    /// # Errors
    /// When a member failed.
    fn next(&mut self) -> Result<Option<MemberReport>, EngineError>;

    /// Return the slice of an interval to a member, which reuses it.
    fn give_back(&self, member: usize, slice: Box<Slice>);

    /// The clocks at both ends of this measurement, which has ended.
    fn clocks(&mut self, measured: &Measured) -> Option<Clocks>;

    /// CPU time of this process that is in no interval.
    fn own_cpu_ns(&self) -> u64;
}

/// What a member reports while the load runs.
pub enum MemberReport {
    Interval {
        member: usize,
        interval: MemberInterval,
    },
    /// The member has sent its last interval.
    Finished {
        member: usize,
        measured: Measured,
        failures: Failures,
        /// In the order of the job's requests, if there are several.
        requests: Vec<RequestTally>,
        /// Of a job with a journey.
        journeys: Option<JourneyTally>,
        reach: Reach,
        kept: KeptRequests,
    },
}

/// Run a job and emit its events. Returns how it ended; `None` when it was stopped before it started. `begun_ns` is when
/// connecting began, and `control` receives the coordinator's orders in a shard.
///
/// # Errors
/// When the job could not be done.
pub fn run<M: Members>(
    mut members: M,
    job: &Job,
    stop: &Stop,
    control: Option<&ShardControl>,
    begun_ns: u64,
) -> Result<Option<Ended>, EngineError> {
    let commands = if (job.commands || job.is_part) && control.is_none() {
        Some(Commands::listen().map_err(|error| internal(&error))?)
    } else {
        None
    };
    let (workers, processes) = members.workers_and_processes();
    let Some(connected) = members.connect(stop)? else {
        return Ok(None);
    };
    let connected = Connected { connect_ns: now_ns() - begun_ns, ..connected };
    let epoch_ns = match (control, &commands) {
        (Some(control), _) => {
            emit(&Event::Connected(connected));
            let Some(epoch_ns) = control.epoch_ns(stop) else {
                return Ok(None);
            };
            epoch_ns
        }
        (None, Some(commands)) if job.is_part => {
            emit(&Event::Connected(connected.clone()));
            let Some(epoch_ns) = epoch_of_part(commands, stop, M::NOTICE_NS)? else {
                return Ok(None);
            };
            emit(&Event::Started(started(workers, processes, job, connected, epoch_ns)));
            epoch_ns
        }
        _ => match connected {
            Connected { connections: 0, error: Some(error), .. } => return Err(error),
            connected => {
                let epoch_ns = now_ns() + M::NOTICE_NS;
                emit(&Event::Started(started(workers, processes, job, connected, epoch_ns)));
                epoch_ns
            }
        },
    };
    members.start(epoch_ns);
    if let Some(commands) = commands.filter(|_| job.commands) {
        let latest_ns = epoch_ns + job.warmup_ns;
        commands.on_measure(members.on_measure(IntervalGrid { epoch_ns, interval_ns: job.interval_ns, latest_ns }));
    }
    if members.yields_to_load() {
        lower_priority();
    }
    conduct(&mut members, job.most_sampled).map(Some)
}

/// When the schedule of a part starts, by the monotonic clock; `None` when the part was stopped before it was told.
fn epoch_of_part(commands: &Commands, stop: &Stop, notice_ns: u64) -> Result<Option<u64>, EngineError> {
    let Some(at_unix_ns) = commands.wait_for_start(|| stop.code().is_none()) else {
        return match stop.code() {
            Some(_) => Ok(None),
            None => Err(part_error("the lab ended before it said when the load starts", "see what the lab says of it")),
        };
    };
    let left_ns = at_unix_ns.saturating_sub(unix_ns());
    if left_ns < notice_ns {
        let message = "the command to start came too late for all hosts to start at one instant";
        return Err(part_error(message, "see whether the clocks of the hosts agree: redline doctor --hosts"));
    }
    Ok(Some(now_ns() + left_ns))
}

fn part_error(message: &str, hint: &str) -> EngineError {
    EngineError { kind: ErrorKind::Internal, message: message.to_owned(), hint: hint.to_owned() }
}

/// The event that the load starts at this time, with so many workers in so many processes.
pub fn started(workers: u32, processes: u32, job: &Job, connected: Connected, epoch_ns: u64) -> Started {
    Started {
        format: ENGINE_FORMAT.to_owned(),
        engine: Engine {
            name: "redline-engine".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            backend: connected.backend,
            workers,
            cpus: job.cpus.clone(),
            processes,
        },
        connections: connected.connections,
        connect_ns: connected.connect_ns,
        epoch_unix_ns: unix_ns() + epoch_ns - now_ns(),
        tls: connected.tls,
        addresses: connected.addresses,
    }
}

/// Emit intervals as they end, and then the result.
fn conduct<M: Members>(members: &mut M, most_sampled: usize) -> Result<Ended, EngineError> {
    let mut merger = Merger::new(members.count());
    let mut failures = Failures::default();
    let mut requests = Vec::new();
    let mut journeys = None;
    let mut reach = Reach::default();
    let mut kept = KeptRequests::default();
    let mut cpu_ns = members.own_cpu_ns();
    let measured = loop {
        match members.next()? {
            Some(MemberReport::Interval { member, interval }) => {
                if let Some(spare) = merger.add(member, interval) {
                    members.give_back(member, spare);
                }
            }
            Some(MemberReport::Finished {
                member,
                measured,
                failures: own,
                requests: counted,
                journeys: walked,
                reach: own_reach,
                kept: own_kept,
            }) => {
                failures.merge(own);
                reach = reach.and(own_reach);
                kept.add(own_kept, most_sampled);
                RequestTally::add_all(&mut requests, &counted);
                JourneyTally::add_to(&mut journeys, walked.as_ref());
                merger.finish(member, measured);
            }
            None => continue,
        }
        emit_intervals(&mut merger, members, &mut cpu_ns);
        if let Some(measured) = merger.measured() {
            break measured;
        }
    };
    let Measured { ended, start_ns, end_ns } = measured;
    let clocks = members.clocks(&measured);
    let slice = &merger.total;
    let summary = Summary {
        ended,
        measure_start_ns: start_ns,
        measure_end_ns: end_ns,
        clocks,
        failures,
        requests: requests.into_iter().map(RequestTally::complete).collect(),
        journeys,
        reach,
        kept,
        slice,
    };
    emit(&Event::Result(summary));
    Ok(ended)
}

/// Emit every interval that all members have reported. The CPU time of this thread is counted in the interval that is emitted.
fn emit_intervals<M: Members>(merger: &mut Merger, members: &M, cpu_ns: &mut u64) {
    while let Some(mut merged) = merger.next() {
        let before_ns = std::mem::replace(cpu_ns, members.own_cpu_ns());
        let own_ns = *cpu_ns - before_ns;
        let interval = &mut merged.interval;
        interval.slice.engine_cpu_ns += own_ns;
        if interval.phase == Phase::Measure {
            merger.total.engine_cpu_ns += own_ns;
        }
        emit(&Event::Interval(Interval {
            phase: interval.phase,
            index: merged.index,
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            ticks: std::mem::take(&mut interval.ticks),
            workers: std::mem::take(&mut interval.workers),
            slice: &interval.slice,
        }));
        interval.slice.clear();
        members.give_back(merged.owner, merged.interval.slice);
    }
}
