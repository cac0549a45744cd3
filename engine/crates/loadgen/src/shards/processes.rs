//! The processes of the shards: starting them, hearing them, telling them the epoch and the end.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use redline_traffic::{EngineError, ErrorKind, OwnedEvent, Slice};

use super::child::{Order, SHARD};
use super::split::JobSplit;
use crate::commands;
use crate::io::ready::{Poll, Ready};
use crate::measure_start::IntervalGrid;
use crate::stop::Stop;
use crate::sys::time::now_ns;

/// Decoded intervals of all shards together that may wait to be merged and told. It bounds the memory that a reader who is
/// slow, or a shard that tells nothing, can cost; what is not taken waits in the shards, where intervals run together.
const MOST_LENT: usize = 128;

/// How far ahead the beginning of the measurement is set at least: a shard that hears of it later has lost the job.
const NOTICE_NS: u64 = 500_000_000;

/// What is heard from a shard.
pub struct ShardMessage {
    pub shard: usize,
    /// `None` when it says nothing any more. What cannot be understood is an error.
    pub told: Option<OwnedEvent>,
}

/// Where orders are written: one pipe for each shard.
type Pipes = Arc<Mutex<Vec<ChildStdin>>>;

/// All shards of a job. Those that still run when this is dropped are killed.
pub struct Shards {
    children: Vec<Child>,
    pipes: Pipes,
    returns: Vec<Sender<Box<Slice>>>,
    pub inbox: Receiver<ShardMessage>,
}

impl Shards {
    /// Start a process for each shard and give it its job; the calling thread must live as long as they do, because the
    /// kernel ends them with it.
    ///
    /// # Errors
    /// When one cannot be started; then none is left.
    pub fn start(mut deal: JobSplit, shards: u32, stop: &Arc<Stop>) -> io::Result<Self> {
        let (messages, inbox) = channel();
        let mut crew = Self { children: Vec::new(), pipes: Pipes::default(), returns: Vec::new(), inbox };
        let most_lent = (MOST_LENT / shards as usize).max(2);
        for shard in 0..shards {
            crew.start_one(&format!("{shard}/{shards}"), most_lent, &messages)?;
            crew.write(shard as usize, deal.line_of(shard).as_bytes());
        }
        pass_on_the_stop(&crew.pipes, Arc::clone(stop))?;
        Ok(crew)
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
            // What the terminal's user presses is for the coordinator alone, who passes it on once.
            .process_group(0)
            .spawn()?;
        let (stdin, out, log) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        self.children.push(child);
        let (Some(stdin), Some(out), Some(log)) = (stdin, out, log) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        lock(&self.pipes).push(stdin);
        let (returns, returned) = channel();
        self.returns.push(returns);
        let ear = ShardReader { shard, most_lent, lent: 0, returned, messages: messages.clone() };
        thread::Builder::new().name(format!("shard-{shard}")).spawn(move || ear.hear(out))?;
        thread::Builder::new().name(format!("shard-{shard}-log")).spawn(move || pass_on_the_log(shard, log))?;
        Ok(())
    }

    /// Tell all shards when their schedules start.
    pub fn start_schedules(&self, epoch_ns: u64) {
        for shard in 0..self.children.len() {
            self.write(shard, &encoded(Order::EpochNs(epoch_ns)));
        }
    }

    /// Pass on what is said from now on to the engine as a whole: when the measurement begins, with time for all to hear of it.
    ///
    /// # Errors
    /// When there can be no thread that listens.
    pub fn pass_on_commands(&self, grid: IntervalGrid) -> io::Result<()> {
        let pipes = Arc::clone(&self.pipes);
        let mut told = false;
        commands::listen(move || {
            if let Some(at_ns) = grid.next_after(now_ns() + NOTICE_NS).filter(|_| !told) {
                told = true;
                for pipe in lock(&pipes).iter_mut() {
                    let _ = pipe.write_all(&encoded(Order::MeasureNs(at_ns)));
                }
            }
        })
    }

    /// A shard that does not read has ended, or will be found to have; it is heard from its other pipe.
    fn write(&self, shard: usize, line: &[u8]) {
        let _ = lock(&self.pipes)[shard].write_all(line);
    }

    /// The memory of an interval that this shard told is not needed any more: it may tell another.
    pub fn give_back(&self, shard: usize, slice: Box<Slice>) {
        let _ = self.returns[shard].send(slice);
    }

    /// How a shard that says nothing any more has ended. It is killed if it has only closed its output.
    pub fn end_of(&mut self, shard: usize) -> String {
        let child = &mut self.children[shard];
        let _ = child.kill();
        child.wait().map_or_else(|error| error.to_string(), spelt)
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

fn spelt(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(libc::SIGKILL)) => "it was killed (SIGKILL)".to_owned(),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

fn lock(pipes: &Pipes) -> std::sync::MutexGuard<'_, Vec<ChildStdin>> {
    pipes.lock().unwrap_or_else(PoisonError::into_inner)
}

fn encoded(order: Order) -> Vec<u8> {
    let mut line = serde_json::to_vec(&order).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Start the thread that tells the shards to stop when this engine is to.
fn pass_on_the_stop(pipes: &Pipes, stop: Arc<Stop>) -> io::Result<()> {
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
            let _ = pipe.write_all(&encoded(Order::Stop(code)));
        }
    })?;
    Ok(())
}

/// Why requests failed is for whoever reads the log of the whole.
fn pass_on_the_log(shard: usize, log: ChildStderr) {
    for line in BufReader::new(log).split(b'\n').map_while(Result::ok) {
        let line = format!("shard {shard}: {}\n", String::from_utf8_lossy(&line));
        let _ = io::stderr().write_all(line.as_bytes());
    }
}

fn garbled(error: &serde_json::Error) -> EngineError {
    EngineError {
        kind: ErrorKind::Internal,
        message: format!("what it tells cannot be understood: {error}"),
        hint: "it is this engine's own program: report it".to_owned(),
    }
}

/// The thread that hears one shard.
struct ShardReader {
    shard: usize,
    most_lent: usize,
    /// Intervals that were told on and whose memory has not come back.
    lent: usize,
    returned: Receiver<Box<Slice>>,
    messages: Sender<ShardMessage>,
}

impl ShardReader {
    fn hear(mut self, out: ChildStdout) {
        for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
            let told = serde_json::from_slice(&line).unwrap_or_else(|error| OwnedEvent::Error(garbled(&error)));
            let listened = self.wait_for_room(&told).is_some() && self.tell(Some(told));
            if !listened {
                return;
            }
        }
        self.tell(None);
    }

    /// Whether anybody listens.
    fn tell(&self, told: Option<OwnedEvent>) -> bool {
        self.messages.send(ShardMessage { shard: self.shard, told }).is_ok()
    }

    /// An interval waits until there are few enough of this shard's; `None` when nobody listens.
    fn wait_for_room(&mut self, told: &OwnedEvent) -> Option<()> {
        if matches!(told, OwnedEvent::Interval(_)) {
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
