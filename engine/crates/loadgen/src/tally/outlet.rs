//! How intervals leave a worker for the director, and how their memory comes back.

use std::sync::mpsc::{Receiver, Sender};

use redline_traffic::{Phase, Slice};

/// One interval of one worker, on its way to the director. Times are nanoseconds since the epoch.
pub struct WorkerInterval {
    pub phase: Phase,
    /// Which interval of its phase ends with it: the same for all workers, and growing.
    pub number: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub slice: Box<Slice>,
}

/// How pieces leave, and how their memory comes back.
pub struct IntervalSender {
    pub pieces: Box<dyn Fn(WorkerInterval) + Send>,
    pub spare: Receiver<Box<Slice>>,
}

/// The other end of [`IntervalSender::spare`].
pub type Returns = Sender<Box<Slice>>;
