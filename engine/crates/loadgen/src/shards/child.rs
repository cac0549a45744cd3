//! A shard's side: it is told the epoch, and when to stop, on its standard input.
//!
//! The job is the first line. Signals would do to stop it, but a second signal ends an engine at once, and whoever stops a
//! whole group of processes sends each its own.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use redline_traffic::{EngineError, ErrorKind, Event};
use serde::{Deserialize, Serialize};

use crate::commands;
use crate::measure_start::MeasureStart;
use crate::output::tell;
use crate::stop::Stop;
use crate::sys::process::end_now;

/// The variable that makes an engine a shard: `3/13`, for the log alone.
pub const SHARD: &str = "REDLINE_SHARD";
/// How often a shard that waits for the epoch looks whether it was stopped.
const LOOK: Duration = Duration::from_millis(20);

/// Whether this process is a shard of another engine.
pub fn is_shard() -> bool {
    std::env::var_os(SHARD).is_some()
}

/// A line from the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The schedule starts then, in nanoseconds of the monotonic clock, which all processes of a host share.
    EpochNs(u64),
    /// The measurement begins then: the end of an interval, in nanoseconds of the same clock.
    MeasureNs(u64),
    /// Stop, and end with this exit code.
    Stop(u8),
}

/// The job: all of standard input, or its first line for a shard and where commands follow.
///
/// # Errors
/// When it cannot be read.
pub fn read_job() -> io::Result<String> {
    let mut text = String::new();
    let mut input = io::stdin().lock();
    input.read_line(&mut text)?;
    if !is_shard() && !commands::follow(&text) {
        input.read_to_string(&mut text)?;
    }
    Ok(text)
}

/// What the coordinator still has to say.
pub struct Orders {
    epoch: Receiver<u64>,
    pub beginning: Arc<MeasureStart>,
}

impl Orders {
    /// Start the thread that listens to the coordinator. When there is none any more, the process ends.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn listen(stop: Arc<Stop>) -> io::Result<Self> {
        let (sender, epoch) = channel();
        let beginning = Arc::new(MeasureStart::default());
        let told = Arc::clone(&beginning);
        thread::Builder::new().name("orders".to_owned()).spawn(move || {
            obey(io::stdin().lock(), &sender, &told, &stop);
            end_now(1);
        })?;
        Ok(Self { epoch, beginning })
    }

    /// Wait for the epoch; `None` when the work was stopped before.
    pub fn epoch_ns(&self, stop: &Stop) -> Option<u64> {
        loop {
            match self.epoch.recv_timeout(LOOK) {
                Ok(epoch_ns) => return Some(epoch_ns),
                Err(RecvTimeoutError::Timeout) if stop.code().is_none() => {}
                Err(_) => return None,
            }
        }
    }
}

/// Do what is said, until nothing is said any more or it cannot be understood.
fn obey(lines: impl BufRead, epoch: &Sender<u64>, beginning: &MeasureStart, stop: &Stop) {
    for line in lines.lines() {
        match line.ok().and_then(|line| serde_json::from_str(&line).ok()) {
            // Nobody waits for it when the work was stopped.
            Some(Order::EpochNs(epoch_ns)) => drop(epoch.send(epoch_ns)),
            Some(Order::MeasureNs(at_ns)) => {
                if !beginning.set(at_ns) {
                    return tell(&Event::Error(&too_late()));
                }
            }
            Some(Order::Stop(code)) if stop.code().is_none() => stop.ask(code),
            Some(Order::Stop(_)) => {}
            None => return,
        }
    }
}

/// Its workers have warmed up past an instant from which the others measure.
fn too_late() -> EngineError {
    EngineError {
        kind: ErrorKind::Internal,
        message: "it was told too late that the measurement begins, so that not all would begin it at one instant"
            .to_owned(),
        hint: "give the engine more cores, or a fixed warm-up".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::INTERRUPTED;

    #[test]
    fn orders_are_lines() {
        let line = |order| serde_json::to_string(&order).unwrap();
        assert_eq!(line(Order::EpochNs(7)), r#"{"epoch_ns":7}"#);
        assert_eq!(line(Order::MeasureNs(8)), r#"{"measure_ns":8}"#);
        assert_eq!(line(Order::Stop(130)), r#"{"stop":130}"#);
    }

    #[test]
    fn they_are_obeyed_in_turn() {
        let (sender, epoch) = channel();
        let stop = Stop::new().unwrap();
        let beginning = Arc::new(MeasureStart::default());
        let orders = Orders { epoch, beginning: Arc::clone(&beginning) };
        obey(&b"{\"epoch_ns\":7}\n{\"measure_ns\":8}\n"[..], &sender, &beginning, &stop);
        assert_eq!(beginning.at_ns(), Some(8));
        assert_eq!((orders.epoch_ns(&stop), stop.code()), (Some(7), None));
        obey(&b"{\"stop\":130}\n{\"stop\":124}\nwhat?\n{\"epoch_ns\":9}\n"[..], &sender, &beginning, &stop);
        assert_eq!((orders.epoch_ns(&stop), stop.code()), (None, Some(INTERRUPTED)));
    }
}
