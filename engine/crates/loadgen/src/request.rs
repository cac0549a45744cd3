//! A request of a load: when it is due, and how it ended.

use redline_traffic::Outcome;

/// Later than any time.
pub const NEVER: u64 = u64::MAX;

/// A request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueRequest {
    /// When it was due, in nanoseconds of the monotonic clock.
    pub due_ns: u64,
    /// In a closed load and in journeys, the number of its user among the users of this worker; in a replay, its number among
    /// all requests.
    pub user: u32,
    /// How often it was written without an answer, not counting what its server announced not to process.
    pub tries: u8,
    /// How a step of a journey came to be due.
    pub kind: StepKind,
    /// The number of the step of a journey.
    pub step: u16,
    /// Its number among all requests of the job, set when it is first written.
    pub seq: u64,
    /// When it was last written, if it was.
    pub written_ns: Option<u64>,
}

/// How a step came to be due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepKind {
    /// It follows another step, or is of no journey.
    #[default]
    Next,
    /// It begins a journey.
    First,
    /// It begins `once`, which is taken again.
    Again,
    /// It is sent again, after `once` was.
    Repeated,
}

impl DueRequest {
    pub fn new(due_ns: u64, user: u32) -> Self {
        Self { due_ns, user, tries: 0, kind: StepKind::Next, step: 0, seq: 0, written_ns: None }
    }
}

/// A request that has ended.
#[derive(Clone, Copy)]
pub struct EndedRequest {
    pub due: DueRequest,
    /// The index of the request in the job.
    pub request: u32,
    /// When it was last written, if it was.
    pub written_ns: Option<u64>,
    /// When the first byte of its answer came, when the answer was complete.
    pub first_ns: Option<u64>,
    /// Its answer is a stream that began.
    pub has_streamed: bool,
    pub outcome: Outcome,
    /// The status of its answer, when the answer was complete.
    pub status: Option<u16>,
    /// The gRPC status, if this is a gRPC answer.
    pub grpc_status: Option<u32>,
    /// Bytes of the body of its answer, when the answer was complete.
    pub body_bytes: u64,
    /// Whether it is a right answer with `errors` that are looked for.
    pub has_errors: bool,
}

impl EndedRequest {
    /// A request without a complete answer.
    pub fn unanswered(due: DueRequest, request: u32, written_ns: Option<u64>, outcome: Outcome) -> Self {
        Self {
            due,
            request,
            written_ns,
            first_ns: None,
            has_streamed: false,
            outcome,
            status: None,
            grpc_status: None,
            body_bytes: 0,
            has_errors: false,
        }
    }
}
