//! How requests ended, and the counters of an interval.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How a request ended. Every request that falls due ends in exactly one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The expected answer.
    Ok,
    /// A complete answer with another status.
    UnexpectedStatus,
    /// A complete answer with the expected status and another body.
    UnexpectedBody,
    /// Not valid HTTP/1.1 or HTTP/2, or past a limit.
    Malformed,
    /// Its connection could not be opened.
    Connect,
    /// Its connection was open, but the TLS handshake failed.
    Tls,
    /// The connection was reset before the answer was complete.
    Reset,
    /// The connection ended before the answer was complete.
    Closed,
    /// The peer reset its HTTP/2 stream.
    Refused,
    /// No complete answer in time.
    Timeout,
    /// Written, but unanswered when the drain ended.
    InFlight,
    /// Due, but not written when the drain ended.
    Unsent,
}

/// How many requests ended in each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields count the variants of `Outcome`")]
pub struct Outcomes {
    pub ok: u64,
    pub unexpected_status: u64,
    pub unexpected_body: u64,
    pub malformed: u64,
    pub connect: u64,
    pub tls: u64,
    pub reset: u64,
    pub closed: u64,
    pub refused: u64,
    pub timeout: u64,
    pub in_flight: u64,
    pub unsent: u64,
}

impl Outcomes {
    /// Count an outcome.
    #[inline]
    pub fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Ok => &mut self.ok,
            Outcome::UnexpectedStatus => &mut self.unexpected_status,
            Outcome::UnexpectedBody => &mut self.unexpected_body,
            Outcome::Malformed => &mut self.malformed,
            Outcome::Connect => &mut self.connect,
            Outcome::Tls => &mut self.tls,
            Outcome::Reset => &mut self.reset,
            Outcome::Closed => &mut self.closed,
            Outcome::Refused => &mut self.refused,
            Outcome::Timeout => &mut self.timeout,
            Outcome::InFlight => &mut self.in_flight,
            Outcome::Unsent => &mut self.unsent,
        } += 1;
    }

    /// The number of all outcomes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.as_array().iter().sum()
    }

    fn as_array(self) -> [u64; 12] {
        let Self {
            ok,
            unexpected_status,
            unexpected_body,
            malformed,
            connect,
            tls,
            reset,
            closed,
            refused,
            timeout,
            in_flight,
            unsent,
        } = self;
        [
            ok,
            unexpected_status,
            unexpected_body,
            malformed,
            connect,
            tls,
            reset,
            closed,
            refused,
            timeout,
            in_flight,
            unsent,
        ]
    }
}

impl AddAssign for Outcomes {
    fn add_assign(&mut self, other: Self) {
        self.ok += other.ok;
        self.unexpected_status += other.unexpected_status;
        self.unexpected_body += other.unexpected_body;
        self.malformed += other.malformed;
        self.connect += other.connect;
        self.tls += other.tls;
        self.reset += other.reset;
        self.closed += other.closed;
        self.refused += other.refused;
        self.timeout += other.timeout;
        self.in_flight += other.in_flight;
        self.unsent += other.unsent;
    }
}

/// Responses by the class of their status. Serialized as a map of the classes that occurred: `{"2xx": 123}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusClasses([u64; 10]);

impl StatusClasses {
    /// Count a status from 0 to 999.
    #[inline]
    pub fn count(&mut self, status: u16) {
        self.0[usize::from(status / 100).min(9)] += 1;
    }

    /// How many statuses had this first digit.
    #[must_use]
    pub fn of(&self, class: usize) -> u64 {
        self.0.get(class).copied().unwrap_or(0)
    }
}

impl Serialize for StatusClasses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let occurred = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        let mut map = serializer.serialize_map(None)?;
        for (class, count) in occurred {
            map.serialize_entry(&format!("{class}xx"), count)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for StatusClasses {
    fn deserialize<D: Deserializer<'de>>(format: D) -> Result<Self, D::Error> {
        let mut classes = Self::default();
        for (name, count) in BTreeMap::<String, u64>::deserialize(format)? {
            let class = name.strip_suffix("xx").and_then(|digit| digit.parse::<usize>().ok());
            let known = class.and_then(|class| classes.0.get_mut(class));
            *known.ok_or_else(|| D::Error::custom(format_args!("{name:?} is not a class of status")))? = count;
        }
        Ok(classes)
    }
}

impl AddAssign for StatusClasses {
    fn add_assign(&mut self, other: Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }
}

/// Answers by gRPC status other than OK. Serialized as a map of the statuses that occurred: `{"13": 123}`. There are 16 codes;
/// any other number counts as 2, UNKNOWN, as in gRPC clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrpcStatuses([u64; 17]);

impl GrpcStatuses {
    /// Count a status.
    pub fn count(&mut self, status: u32) {
        const UNKNOWN: usize = 2;
        let code = usize::try_from(status).unwrap_or(UNKNOWN);
        self.0[if code < self.0.len() { code } else { UNKNOWN }] += 1;
    }

    /// Whether none was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }
}

impl Serialize for GrpcStatuses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let occurred = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        serializer.collect_map(occurred.map(|(code, count)| (code.to_string(), count)))
    }
}

impl<'de> Deserialize<'de> for GrpcStatuses {
    fn deserialize<D: Deserializer<'de>>(format: D) -> Result<Self, D::Error> {
        let mut statuses = Self::default();
        for (code, count) in BTreeMap::<String, u64>::deserialize(format)? {
            let known = code.parse::<usize>().ok().and_then(|code| statuses.0.get_mut(code));
            *known.ok_or_else(|| D::Error::custom(format_args!("{code:?} is no status of gRPC")))? = count;
        }
        Ok(statuses)
    }
}

impl AddAssign for GrpcStatuses {
    fn add_assign(&mut self, other: Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }
}

/// The counters of an interval or a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests that fell due.
    pub due: u64,
    /// Requests of these that were written, at least in part.
    pub sent: u64,
    /// Right answers, whenever their requests were due.
    pub completed: u64,
    /// Requests that were answered after the measurement window had ended.
    pub late: u64,
    /// Open load: requests for which no connection was idle when they were taken from the queue.
    pub waited: u64,
    /// Requests that were written in vain and are written again. A request is written at most twice; then it has failed.
    pub retried: u64,
    /// Requests that are written again because their server announced that it would not process them on their connection,
    /// however often.
    #[serde(default)]
    pub resent: u64,
    /// Connections opened in place of a connection that had ended.
    pub reconnects: u64,
    /// Connections that were closed because of bytes that nobody requested.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub surplus: u64,
    /// Successful TLS handshakes.
    pub handshakes: u64,
    /// Handshakes of these that resumed a session.
    pub resumed: u64,
    /// Bytes passed to the kernel.
    pub bytes_sent: u64,
    /// Bytes received from the kernel.
    pub bytes_received: u64,
    /// Bytes of messages that are sent compressed, in both directions: as they are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub plain_bytes: u64,
    /// The same, compressed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub packed_bytes: u64,
    /// Durations past the histograms' range.
    pub saturated: u64,
    /// Outcomes `connect` for lack of ports, descriptors or memory on the engine's side.
    pub exhausted: u64,
    /// Complete answers by status.
    pub status: StatusClasses,
    /// Right answers of JSON with `errors` at their top that are looked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub with_errors: u64,
    /// Failed gRPC answers by status.
    #[serde(default, skip_serializing_if = "GrpcStatuses::is_empty")]
    pub grpc_status: GrpcStatuses,
    /// How requests ended.
    pub outcomes: Outcomes,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.due += other.due;
        self.sent += other.sent;
        self.completed += other.completed;
        self.late += other.late;
        self.waited += other.waited;
        self.retried += other.retried;
        self.resent += other.resent;
        self.reconnects += other.reconnects;
        self.surplus += other.surplus;
        self.handshakes += other.handshakes;
        self.resumed += other.resumed;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.plain_bytes += other.plain_bytes;
        self.packed_bytes += other.packed_bytes;
        self.saturated += other.saturated;
        self.exhausted += other.exhausted;
        self.with_errors += other.with_errors;
        self.status += other.status;
        self.grpc_status += other.grpc_status;
        self.outcomes += other.outcomes;
    }
}
