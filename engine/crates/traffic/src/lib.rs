//! What the engine measured: histograms, outcomes and counts, how they merge, and the events that contain them.
//!
//! Merging is adding counts: associative, commutative, and it loses nothing. Percentiles are never merged.

mod counts;
mod event;
mod failures;
mod histogram;
mod journey_tally;
mod kept;
mod one_way;
mod request_tally;
mod slice;
mod sparse;
mod stream_tally;

pub use counts::{Counts, GrpcStatuses, Outcome, Outcomes, StatusClasses};
pub use event::{
    Checked, Clocks, Connected, DuetBlock, DuetResult, DuetSlice, DuetTotal, ENGINE_FORMAT, Ended, Engine, EngineError,
    ErrorKind, Event, Interval, OwnedEvent, Phase, Reach, Started, Summary, TlsInfo,
};
pub use failures::{Failure, Failures};
pub use histogram::{DIGITS, HIGHEST_NS, Histogram, LOWEST_NS};
pub use journey_tally::{JourneyEnd, JourneyTally};
pub use kept::{KeptRequest, KeptRequests, MOST_SLOWEST};
pub use one_way::{OneWay, Signed};
pub use request_tally::RequestTally;
pub use slice::Slice;
pub use sparse::SparseHistogram;
pub use stream_tally::{StreamEnded, StreamNews, StreamTally};
