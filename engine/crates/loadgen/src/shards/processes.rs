//! The processes of the shards, as the members of the coordinator.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use redline_traffic::{Clocks, Connected, Ended, EngineError, ErrorKind, OwnedEvent, Slice, Summary};

use super::child::{SHARD, ShardOrder};
use super::numbering::Numbering;
use super::split::{JobSplit, Plan};
use crate::conductor::{MemberReport, Members};
use crate::measure_start::IntervalGrid;
use crate::merge::Measured;
use crate::protocol::OnMeasure;
use crate::stop::{CUT_BY_DEADLINE, INTERRUPTED, Stop};
use crate::sys::poll::{Poll, Ready};
use crate::sys::time::{now_ns, process_cpu_ns};
use crate::tally::SliceReturn;

/// The most decoded intervals of all shards that may wait to be merged and emitted. This bounds the memory that a slow reader,
/// or a silent shard, costs. Unread intervals wait in the shards, which extend them.
const MOST_LENT: usize = 128;
/// How far ahead the start of the measurement is set at least: a shard that learns of it too late fails the job.
const MEASURE_NOTICE_NS: u64 = 500_000_000;

/// A message of a shard; `None` when its output has ended. A line that cannot be parsed is an error.
struct ShardMessage {
    shard: usize,
    event: Option<OwnedEvent>,
}

/// The pipes that orders are written to, by shard.
type Pipes = Arc<Mutex<Vec<ChildStdin>>>;

/// All shards of a job. Those that still run when this is dropped are killed.
pub struct Shards {
    plan: Plan,
    stop: Arc<Stop>,
    children: Vec<Child>,
    pipes: Pipes,
    inbox: Receiver<ShardMessage>,
    spares: Vec<SliceReturn>,
    numberings: Vec<Numbering>,
    finished: Vec<bool>,
}

impl Shards {
    /// Start a process for each shard and send it its job. The calling thread must live as long as the processes, because the
    /// kernel ends them with it.
    ///
    /// # Errors
    /// When a process cannot be started; then none is left.
    pub fn start(mut split: JobSplit, plan: Plan, interval_ns: u64, stop: &Arc<Stop>) -> io::Result<Self> {
        let (messages, inbox) = channel();
        let processes = plan.processes as usize;
        let mut shards = Self {
            plan,
            stop: Arc::clone(stop),
            children: Vec::new(),
            pipes: Pipes::default(),
            inbox,
            spares: Vec::new(),
            numberings: (0..processes).map(|_| Numbering::new(interval_ns)).collect(),
            finished: vec![false; processes],
        };
        let most_lent = (MOST_LENT / processes).max(2);
        for shard in 0..plan.processes {
            shards.start_one(&format!("{shard}/{processes}"), most_lent, &messages)?;
            shards.write(shard as usize, split.line_of(shard).as_bytes());
        }
        forward_stop(&shards.pipes, Arc::clone(stop))?;
        Ok(shards)
    }

    fn start_one(&mut self, name: &str, most_lent: usize, messages: &Sender<ShardMessage>) -> io::Result<()> {
        let shard = self.children.len();
        let mut child = Command::new("/proc/self/exe")
            .arg0("redline-engine")
            .env(SHARD, name)
            .env("REDLINE_PARENT", std::process::id().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // The terminal's signals are meant for the coordinator, which forwards them once.
            .process_group(0)
            .spawn()?;
        let (stdin, out, log) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        self.children.push(child);
        let (Some(stdin), Some(out), Some(log)) = (stdin, out, log) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        lock(&self.pipes).push(stdin);
        let (spare, returned) = channel();
        self.spares.push(spare);
        let reader = ShardReader { shard, most_lent, lent: 0, returned, messages: messages.clone() };
        thread::Builder::new().name(format!("shard-{shard}")).spawn(move || reader.read(out))?;
        thread::Builder::new().name(format!("shard-{shard}-log")).spawn(move || forward_log(shard, log))?;
        Ok(())
    }

    /// Write to a shard. A shard that does not read has ended, or will end, and its output shows that.
    fn write(&self, shard: usize, line: &[u8]) {
        let _ = lock(&self.pipes)[shard].write_all(line);
    }

    fn receive(&self) -> Result<ShardMessage, EngineError> {
        self.inbox.recv().map_err(|_| internal("no shard of the engine reports anything any more"))
    }

    fn result(&mut self, shard: usize, result: Summary<Box<Slice>>) -> MemberReport {
        self.finished[shard] = true;
        // A shard that was cut by a signal of its own ends the measurement of all shards.
        if result.ended != Ended::Complete && self.stop.code().is_none() {
            self.stop.request(if result.ended == Ended::Deadline { CUT_BY_DEADLINE } else { INTERRUPTED });
        }
        let measured =
            Measured { ended: result.ended, start_ns: result.measure_start_ns, end_ns: result.measure_end_ns };
        let Summary { failures, requests, journeys, reach, kept, .. } = result;
        MemberReport::Finished { member: shard, measured, failures, requests, journeys, reach, kept }
    }

    /// Why a shard ends the work: it reported an error, has ended, or sent an event out of order.
    fn failed(&mut self, shard: usize, event: Option<OwnedEvent>) -> EngineError {
        match event {
            Some(OwnedEvent::Error(error)) => {
                EngineError { message: format!("shard {shard}: {}", error.message), ..error }
            }
            Some(_) => internal(&format!("shard {shard} sent an event out of order")),
            None => {
                // Kill the shard in case it has only closed its output.
                let child = &mut self.children[shard];
                let _ = child.kill();
                let status = child.wait().map_or_else(|error| error.to_string(), describe);
                internal(&format!("shard {shard} of the engine is gone before its work was done: {status}"))
            }
        }
    }
}

impl Members for Shards {
    const NOTICE_NS: u64 = 100_000_000;

    /// Reports of the shards' main threads must not wait for an idle core again, or the result could miss the deadline.
    fn yields_to_load(&self) -> bool {
        false
    }

    fn count(&self) -> usize {
        self.children.len()
    }

    fn workers_and_processes(&self) -> (u32, u32) {
        (self.plan.workers, self.plan.processes)
    }

    fn connect(&mut self, stop: &Stop) -> Result<Option<Connected>, EngineError> {
        let mut all: Option<Connected> = None;
        for _ in 0..self.plan.processes {
            let message = self.receive();
            if stop.code().is_some() {
                return Ok(None);
            }
            match message? {
                ShardMessage { event: Some(OwnedEvent::Connected(connected)), .. } => {
                    all = Some(all.map_or(connected.clone(), |all| merge_connected(all, connected)));
                }
                ShardMessage { shard, event } => return Err(self.failed(shard, event)),
            }
        }
        Ok(all)
    }

    fn start(&mut self, epoch_ns: u64) {
        for shard in 0..self.children.len() {
            self.write(shard, &encoded(ShardOrder::EpochNs(epoch_ns)));
        }
    }

    /// Sets the start of the measurement so far ahead that all shards learn of it in time.
    fn on_measure(&mut self, grid: IntervalGrid) -> OnMeasure {
        let pipes = Arc::clone(&self.pipes);
        let mut done = false;
        Box::new(move |at_ns| {
            let set_ns = match at_ns {
                Some(at_ns) => grid.at_or_after(at_ns),
                None => grid.next_after(now_ns() + MEASURE_NOTICE_NS),
            };
            if let Some(at_ns) = set_ns.filter(|_| !done) {
                done = true;
                for pipe in lock(&pipes).iter_mut() {
                    let _ = pipe.write_all(&encoded(ShardOrder::MeasureNs(at_ns)));
                }
            }
        })
    }

    fn next(&mut self) -> Result<Option<MemberReport>, EngineError> {
        let ShardMessage { shard, event } = self.receive()?;
        match event {
            Some(OwnedEvent::Interval(interval)) => {
                let interval = self.numberings[shard].number(interval);
                Ok(Some(MemberReport::Interval { member: shard, interval }))
            }
            Some(OwnedEvent::Result(result)) => Ok(Some(self.result(shard, result))),
            Some(OwnedEvent::Started(_)) => Ok(None),
            None if self.finished[shard] => Ok(None),
            other => Err(self.failed(shard, other)),
        }
    }

    fn give_back(&self, member: usize, slice: Box<Slice>) {
        let _ = self.spares[member].send(slice);
    }

    /// Only an engine of a single process reads them.
    fn clocks(&mut self, _measured: &Measured) -> Option<Clocks> {
        None
    }

    fn own_cpu_ns(&self) -> u64 {
        process_cpu_ns()
    }
}

impl Drop for Shards {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
        }
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}

fn merge_connected(all: Connected, other: Connected) -> Connected {
    Connected {
        connections: all.connections + other.connections,
        connect_ns: all.connect_ns.max(other.connect_ns),
        backend: all.backend,
        tls: all.tls.or(other.tls),
        addresses: all.addresses,
        error: all.error.or(other.error),
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(libc::SIGKILL)) => "it was killed (SIGKILL)".to_owned(),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

fn lock(pipes: &Pipes) -> MutexGuard<'_, Vec<ChildStdin>> {
    pipes.lock().unwrap_or_else(PoisonError::into_inner)
}

fn encoded(order: ShardOrder) -> Vec<u8> {
    let mut line = serde_json::to_vec(&order).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Start the thread that stops the shards when this engine is stopped.
fn forward_stop(pipes: &Pipes, stop: Arc<Stop>) -> io::Result<()> {
    let pipes = Arc::clone(pipes);
    let poll = Poll::new()?;
    poll.add_waker(stop.waker(), 0)?;
    thread::Builder::new().name("stop-shards".to_owned()).spawn(move || {
        let code = loop {
            if let Some(code) = stop.code() {
                break code;
            }
            if poll.wait(&mut [Ready::NOTHING], true).is_err() {
                return;
            }
        };
        for pipe in lock(&pipes).iter_mut() {
            let _ = pipe.write_all(&encoded(ShardOrder::Stop(code)));
        }
    })?;
    Ok(())
}

/// Copy a shard's standard error to ours, line by line.
fn forward_log(shard: usize, log: ChildStderr) {
    for line in BufReader::new(log).split(b'\n').map_while(Result::ok) {
        let line = format!("shard {shard}: {}\n", String::from_utf8_lossy(&line));
        let _ = io::stderr().write_all(line.as_bytes());
    }
}

/// The thread that reads the events of a shard.
struct ShardReader {
    shard: usize,
    most_lent: usize,
    /// Intervals that were sent on and whose slices were not returned.
    lent: usize,
    returned: Receiver<Box<Slice>>,
    messages: Sender<ShardMessage>,
}

impl ShardReader {
    fn read(mut self, out: ChildStdout) {
        for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
            let event = serde_json::from_slice(&line).unwrap_or_else(|error| OwnedEvent::Error(garbled(&error)));
            let received = self.wait_for_room(&event).is_some() && self.send(Some(event));
            if !received {
                return;
            }
        }
        self.send(None);
    }

    /// Returns false when the coordinator has ended.
    fn send(&self, event: Option<OwnedEvent>) -> bool {
        self.messages.send(ShardMessage { shard: self.shard, event }).is_ok()
    }

    /// Wait until few enough intervals of this shard are lent; `None` when the coordinator has ended.
    fn wait_for_room(&mut self, event: &OwnedEvent) -> Option<()> {
        if matches!(event, OwnedEvent::Interval(_)) {
            self.lent += 1;
            self.lent -= self.returned.try_iter().count();
            while self.lent > self.most_lent {
                self.returned.recv().ok()?;
                self.lent -= 1;
            }
        }
        Some(())
    }
}

fn garbled(error: &serde_json::Error) -> EngineError {
    EngineError {
        kind: ErrorKind::Internal,
        message: format!("its output cannot be understood: {error}"),
        hint: "it is this engine's own program: report it".to_owned(),
    }
}

/// An error of the coordination.
pub fn internal(message: &str) -> EngineError {
    EngineError {
        kind: ErrorKind::Internal,
        message: message.to_owned(),
        hint: "look at the lines before this one, at the limits of processes and memory, and in the kernel's log for one that \
               was killed for want of memory"
            .to_owned(),
    }
}
