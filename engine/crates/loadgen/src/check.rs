//! `redline-engine check`: sends single requests, or the steps of a journey, with the client of a load and shows their
//! answers.
//!
//! A check is a load of one user who sends a single request on a connection of its own. It is judged as in a load, and what was
//! received is recorded.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redline_pacing::{Crowd, Profile, Think};
use redline_traffic::{Checked, EngineError, Event, Failure, Outcome, TlsInfo};
use redline_wire::in_hex;

use crate::client::{Activity, Client, ClientEvent, OpenError};
use crate::demand::{Demand, Users, WalkRules, Walks};
use crate::first_failures::{Cause, FirstFailures, OVER, in_words};
use crate::ids::GlobalWorkerId;
use crate::io::epoll::Epoll;
use crate::job::{Job, bad, parse_check};
use crate::peers::Peer;
use crate::protocol::emit;
use crate::stop::{INTERRUPTED, Stop};
use crate::sys::process::{Signals, end_now};
use crate::sys::time::now_ns;
use crate::tally::{IntervalSender, MemberInterval, Tally, Window};
use crate::worker::{AfterLoad, Worker, WorkerLoad};
use crate::workers::internal;

/// Make the checks on standard input, one per line, and answer every check with a line, until the input ends.
///
/// # Errors
/// When a line is not a check, or this machine does not allow it.
pub fn serve() -> Result<(), EngineError> {
    let stop = Arc::new(Stop::new().map_err(|error| internal(&error))?);
    end_on_signals().map_err(|error| internal(&error))?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| {
            bad("", &format!("the check cannot be read: {error}"), "write a JSON object in UTF-8 on each line")
        })?;
        if !line.trim().is_empty() {
            let job = parse_check(&line)?;
            let done = match WalkRules::of(&job, GlobalWorkerId(0)) {
                None => check(&job, &stop).map(|checked| emit(&Event::Checked(checked))),
                Some(rules) => walk(&job, rules, &stop).map(|complete| emit(&Event::Walked { complete })),
            };
            done.map_err(|error| internal(&error))?;
        }
    }
    Ok(())
}

/// End the process on SIGINT and SIGTERM, even if the process that started it ignores them: there is nothing to write.
fn end_on_signals() -> io::Result<()> {
    let signals = Signals::block();
    let watch = move || {
        if signals.wait(u64::MAX) {
            end_now(i32::from(INTERRUPTED));
        }
    };
    thread::Builder::new().name("stop".to_owned()).spawn(watch).map(drop)
}

/// How far a check came.
#[derive(Default)]
struct Progress {
    /// The address that was reached.
    address: Option<Peer>,
    tls: Option<TlsInfo>,
    /// Whether bytes arrived that nobody requested.
    has_surplus: bool,
    activity: Activity,
}

/// Make a check.
///
/// # Errors
/// When the kernel refuses what every client needs.
fn check(job: &Arc<Job>, stop: &Arc<Stop>) -> io::Result<Checked> {
    let begun_ns = now_ns();
    let (mut progress, mut client) = connect(job, begun_ns, stop)?;
    if let Some(connected) = client.take() {
        let crowd = Crowd::new(&Profile::constant(1.0), 0, 1);
        let users = Users { crowd, think: Think::None, pace: None, depth: 1, seed: 0, worker: 0, workers: 1 };
        let demand = |epoch_ns, end_ns| Demand::closed(users, None, epoch_ns, end_ns);
        let known = std::mem::take(&mut progress.activity);
        let sent = send(job, begun_ns, demand, connected, known, stop)?;
        (progress.activity, progress.has_surplus) = (sent.activity, sent.has_surplus);
        client = Some(sent.client);
    }
    let checked = checked(job, progress, begun_ns);
    if let Some(mut client) = client {
        client.close_websockets()?;
    }
    Ok(checked)
}

/// Take the steps of a journey, as its first user, until a step is wrong. Emits what came of each step. Returns whether all
/// were right.
///
/// # Errors
/// When the kernel refuses what every client needs.
fn walk(job: &Arc<Job>, rules: WalkRules, stop: &Arc<Stop>) -> io::Result<bool> {
    let mut begun_ns = now_ns();
    let journey = Arc::clone(&rules.journey);
    let request_of = |step: u16| journey.steps[step as usize].request;
    let mut walks = Walks::single(rules, begun_ns);
    let (mut progress, mut client) = connect(job, begun_ns, stop)?;
    while let Some(due) = walks.upcoming() {
        walks.take_skipped().into_iter().for_each(|step| emit(&Event::Skipped { step: request_of(step) }));
        let (mut taken, mut missing_cookies) = (None, Vec::new());
        if let Some(mut connected) = client.take() {
            connected.record_again();
            walks.resume(begun_ns);
            let demand = |_, end_ns| Demand::of_walks(walks, end_ns);
            let sent = send(job, begun_ns, demand, connected, std::mem::take(&mut progress.activity), stop)?;
            (progress.activity, progress.has_surplus) = (sent.activity, sent.has_surplus);
            taken = Some(sent.client.taken(&due));
            missing_cookies = sent.client.missing_cookies(&due);
            client = Some(sent.client);
            let Some(under_way) = sent.walks else {
                return Ok(false);
            };
            walks = under_way;
        }
        let (address, tls) = (progress.address.clone(), progress.tls.clone());
        let mut shown = checked(job, std::mem::take(&mut progress), begun_ns);
        (shown.step, shown.taken, shown.missing_cookies) = (Some(request_of(due.step)), taken, missing_cookies);
        let is_right = shown.failure.is_none();
        emit(&Event::Checked(shown));
        if !is_right {
            return Ok(false);
        }
        (progress.address, progress.tls, begun_ns) = (address, tls, now_ns());
    }
    walks.take_skipped().into_iter().for_each(|step| emit(&Event::Skipped { step: request_of(step) }));
    Ok(true)
}

/// Connect to the first address of the target that takes the connection. No client if none does.
fn connect(job: &Arc<Job>, begun_ns: u64, stop: &Arc<Stop>) -> io::Result<(Progress, Option<Client<Epoll>>)> {
    let end_ns = begun_ns.saturating_add(job.timeout_ns);
    let mut progress = Progress::default();
    let peers = match job.target.peers() {
        Ok(peers) => peers,
        Err(why) => {
            progress.activity.failures.note(Outcome::Connect, now_ns(), || Cause::words(why));
            return Ok((progress, None));
        }
    };
    let mut last = None;
    for peer in peers.all() {
        let left_ns = end_ns.saturating_sub(now_ns()).max(1);
        let mut client = Client::<Epoll>::new(job, GlobalWorkerId(0), &peer.clone().into(), 0, 1, stop)?;
        let connected = client.connect_first(1, left_ns, stop, &mut progress.activity)?;
        progress.tls = connected.tls;
        if connected.open > 0 {
            progress.address = Some(peer.clone());
            return Ok((progress, Some(client)));
        }
        progress.address = matches!(connected.error, Some(OpenError::Tls(_))).then(|| peer.clone());
        last = connected.error.or(last);
        if progress.address.is_some() || now_ns() >= end_ns {
            break;
        }
    }
    let (outcome, why) = match last {
        Some(why) => (why.outcome(), why.to_string()),
        None => (Outcome::Connect, "no answer in time".to_owned()),
    };
    progress.activity.failures.note(outcome, now_ns(), || Cause::words(why));
    Ok((progress, None))
}

/// What came of a request that was sent.
struct Sent {
    client: Client<Epoll>,
    activity: Activity,
    /// Whether bytes arrived that nobody requested.
    has_surplus: bool,
    walks: Option<Walks>,
}

/// Send the request that is due as a load does, in the time that is left. `demand` makes the load of these times.
fn send(
    job: &Job,
    begun_ns: u64,
    demand: impl FnOnce(u64, u64) -> Demand,
    client: Client<Epoll>,
    activity: Activity,
    stop: &Arc<Stop>,
) -> io::Result<Sent> {
    let epoch_ns = now_ns();
    let end_ns = begun_ns.saturating_add(job.timeout_ns);
    let job = &Job { drain_ns: end_ns.saturating_sub(epoch_ns), ..job.clone() };
    let window = Window { epoch_ns, measure_ns: epoch_ns, end_ns: epoch_ns.saturating_add(job.timeout_ns) };
    let ((slices, measured), (_lender, spare)) = (channel(), channel());
    let send = Box::new(move |interval: MemberInterval| drop(slices.send(interval.slice)));
    let tally = Tally::new(window, job.interval_ns, IntervalSender { send, spare });
    let load = WorkerLoad::new(demand(epoch_ns, window.end_ns), tally, job.count, job);
    let mut worker = Worker::new(load, client, activity, Arc::clone(stop), false);
    worker.run()?;
    let AfterLoad { mut client, mut activity, walks, .. } = worker.into_parts();
    // More than the answer may have arrived already.
    client.wait(0)?;
    while let Some(event) = client.next_event() {
        client.handle(event, now_ns(), &mut activity);
    }
    let came_after = activity.events.iter().any(|event| matches!(event, ClientEvent::Surplus));
    let has_surplus = came_after || measured.try_iter().any(|slice| slice.counts.surplus > 0);
    Ok(Sent { client, activity, has_surplus, walks })
}

/// The result of a check.
fn checked(job: &Job, progress: Progress, begun_ns: u64) -> Checked {
    let Progress { address, tls, has_surplus, activity } = progress;
    let elapsed_ns = now_ns() - begun_ns;
    let failure = failure(activity.failures, job.timeout_ns, begun_ns);
    let (answer, record) = activity.recorded.unzip();
    let (interim, headers, body) =
        record.map(|record| (record.interim, record.headers, record.body)).unwrap_or_default();
    Checked {
        step: None,
        taken: None,
        missing_cookies: Vec::new(),
        outcome: failure.as_ref().map_or(Outcome::Ok, |failure| failure.outcome),
        failure,
        status: answer.map(|answer| answer.status),
        headers: answer.map(|_| headers),
        interim,
        body_length: answer.map(|answer| answer.body_length),
        body_sha256: answer.and_then(|answer| answer.body_sha256).map(|hash| in_hex(&hash)),
        body_base64: answer.map(|_| STANDARD.encode(body)),
        grpc_status: answer.and_then(|answer| answer.grpc_status),
        address: address.map(|address| address.to_string()),
        tls: tls.filter(|_| job.target.tls.is_some()),
        has_surplus,
        closes: answer.is_some_and(|answer| !answer.keep_alive),
        elapsed_ns,
    }
}

/// Why the request failed. Every request that ended because the time was over is a timeout.
fn failure(failures: FirstFailures, timeout_ns: u64, begun_ns: u64) -> Option<Failure> {
    let failure = failures.since(begun_ns).into_first()?;
    match failure.outcome {
        Outcome::InFlight | Outcome::Unsent | Outcome::Timeout => Some(Failure {
            outcome: Outcome::Timeout,
            reason: failure.reason.replace(OVER, &format!("within {}", in_words(timeout_ns))),
            ..failure
        }),
        _ => Some(failure),
    }
}
