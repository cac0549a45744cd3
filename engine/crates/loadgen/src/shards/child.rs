//! A shard's side of the protocol with its coordinator, on standard input: the first line is the job, later lines are orders.
//!
//! A stop is an order and not a signal, because a second signal ends an engine immediately, and stopping a process group sends
//! every process a signal.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use redline_traffic::{EngineError, ErrorKind, Event};
use serde::{Deserialize, Serialize};

use crate::measure_start::MeasureStart;
use crate::protocol::{CHECK_EVERY, emit};
use crate::stop::Stop;
use crate::sys::process::end_now;

/// The environment variable that makes an engine a shard: `3/13`, used only in the log.
pub const SHARD: &str = "REDLINE_SHARD";

/// Whether this process is a shard of another engine.
pub fn is_shard() -> bool {
    std::env::var_os(SHARD).is_some()
}

/// An order of the coordinator, on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShardOrder {
    /// The schedule starts at this time of the monotonic clock, which all processes of a host share.
    EpochNs(u64),
    /// The measurement starts at this time of the same clock: the end of an interval.
    MeasureNs(u64),
    /// Stop, and end with this exit code.
    Stop(u8),
}

/// The orders of the coordinator after the job.
pub struct ShardControl {
    epoch: Receiver<u64>,
    pub measure_start: Arc<MeasureStart>,
}

impl ShardControl {
    /// Start the thread that reads orders. The process ends when the coordinator has ended.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn listen(stop: Arc<Stop>) -> io::Result<Self> {
        let (sender, epoch) = channel();
        let measure_start = Arc::new(MeasureStart::default());
        let of_thread = Arc::clone(&measure_start);
        thread::Builder::new().name("orders".to_owned()).spawn(move || {
            execute(io::stdin().lock(), &sender, &of_thread, &stop);
            end_now(1);
        })?;
        Ok(Self { epoch, measure_start })
    }

    /// Wait for the epoch; `None` when the work was stopped before.
    pub fn epoch_ns(&self, stop: &Stop) -> Option<u64> {
        loop {
            match self.epoch.recv_timeout(CHECK_EVERY) {
                Ok(epoch_ns) => return Some(epoch_ns),
                Err(RecvTimeoutError::Timeout) if stop.code().is_none() => {}
                Err(_) => return None,
            }
        }
    }
}

/// Execute orders until the input ends, or an order is invalid.
fn execute(lines: impl BufRead, epoch: &Sender<u64>, measure_start: &MeasureStart, stop: &Stop) {
    for line in lines.lines() {
        match line.ok().and_then(|line| serde_json::from_str(&line).ok()) {
            // Nothing waits for it when the work was stopped.
            Some(ShardOrder::EpochNs(epoch_ns)) => drop(epoch.send(epoch_ns)),
            Some(ShardOrder::MeasureNs(at_ns)) => {
                if !measure_start.set(at_ns) {
                    return emit(&Event::Error(&too_late()));
                }
            }
            Some(ShardOrder::Stop(code)) if stop.code().is_none() => stop.request(code),
            Some(ShardOrder::Stop(_)) => {}
            None => return,
        }
    }
}

/// The error when a worker's warm-up has passed the instant from which the others measure.
pub fn too_late() -> EngineError {
    EngineError {
        kind: ErrorKind::Internal,
        message: "the order to measure came too late for all workers to start at one instant".to_owned(),
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
        assert_eq!(line(ShardOrder::EpochNs(7)), r#"{"epoch_ns":7}"#);
        assert_eq!(line(ShardOrder::MeasureNs(8)), r#"{"measure_ns":8}"#);
        assert_eq!(line(ShardOrder::Stop(130)), r#"{"stop":130}"#);
    }

    #[test]
    fn orders_are_executed_in_turn() {
        let (sender, epoch) = channel();
        let stop = Stop::new().unwrap();
        let measure_start = Arc::new(MeasureStart::default());
        let control = ShardControl { epoch, measure_start: Arc::clone(&measure_start) };
        execute(&b"{\"epoch_ns\":7}\n{\"measure_ns\":8}\n"[..], &sender, &measure_start, &stop);
        assert_eq!(measure_start.at_ns(), Some(8));
        assert_eq!((control.epoch_ns(&stop), stop.code()), (Some(7), None));
        execute(&b"{\"stop\":130}\n{\"stop\":124}\nwhat?\n{\"epoch_ns\":9}\n"[..], &sender, &measure_start, &stop);
        assert_eq!((control.epoch_ns(&stop), stop.code()), (None, Some(INTERRUPTED)));
    }
}
