//! The counts and distributions of a slice of time.

use serde::{Deserialize, Serialize};

use crate::{Counts, Histogram, OneWay, StreamTally};

/// The counts and distributions of an interval, or of many when merged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// The counters.
    pub counts: Counts,
    /// From due to the last byte of the answer, or to when the outcome was known.
    pub response: Histogram,
    /// From written to the last byte of the answer, or to when the outcome was known.
    pub service: Histogram,
    /// From due to the first byte of the answer, of complete answers.
    #[serde(default)]
    pub first_byte: Histogram,
    /// From due to taken from the queue: the engine's own delay.
    pub lateness: Histogram,
    /// From the first byte of the TLS handshake to its end; `None` without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake: Option<Box<Histogram>>,
    /// From the request of a WebSocket's handshake to its answer 101; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Box<Histogram>>,
    /// One-way times; `None` if no answer contains the server's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<Box<OneWay>>,
    /// The streams of events among the answers; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<Box<StreamTally>>,
    /// CPU time of the engine's process in nanoseconds.
    pub engine_cpu_ns: u64,
    /// How long its workers stood still, without waiting for a core: the sum over the workers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub paused_ns: u64,
}

/// Engines hardly ever stand still.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

impl Slice {
    /// Add all counts of another slice.
    pub fn add(&mut self, other: &Self) {
        self.counts += other.counts;
        self.add_distributions(other);
        if let Some(streams) = &other.streams {
            self.streams_mut().add(streams);
        }
        self.engine_cpu_ns += other.engine_cpu_ns;
        self.paused_ns += other.paused_ns;
    }

    /// Add a slice of the drain to the measurement before it: all that belongs to its requests, but no rates of the window
    /// (right answers, events, bytes, CPU time). A pause in the drain is in the response times.
    pub fn add_drained(&mut self, other: &Self) {
        self.paused_ns += other.paused_ns;
        self.counts +=
            Counts { completed: 0, bytes_sent: 0, bytes_received: 0, plain_bytes: 0, packed_bytes: 0, ..other.counts };
        self.add_distributions(other);
        if let Some(streams) = &other.streams {
            self.streams_mut().add_drained(streams);
        }
    }

    fn add_distributions(&mut self, other: &Self) {
        self.response.add(&other.response);
        self.service.add(&other.service);
        self.first_byte.add(&other.first_byte);
        self.lateness.add(&other.lateness);
        if let Some(handshake) = &other.handshake {
            self.handshake_mut().add(handshake);
        }
        if let Some(upgrade) = &other.upgrade {
            self.upgrade.get_or_insert_default().add(upgrade);
        }
        if let Some(one_way) = &other.one_way {
            self.one_way_mut().add(one_way);
        }
    }

    /// Record the duration of a TLS handshake, in nanoseconds. A duration past the range counts in `saturated`.
    pub fn record_handshake(&mut self, ns: u64) {
        let saturated = self.handshake_mut().record(ns);
        self.counts.saturated += u64::from(saturated);
    }

    /// Record the duration of a WebSocket's handshake, in nanoseconds, as [`Self::record_handshake`] does.
    pub fn record_upgrade(&mut self, ns: u64) {
        let saturated = self.upgrade.get_or_insert_default().record(ns);
        self.counts.saturated += u64::from(saturated);
    }

    /// The durations of handshakes, which are written from now on even if empty. The first call allocates.
    pub fn handshake_mut(&mut self) -> &mut Histogram {
        self.handshake.get_or_insert_default()
    }

    /// The one-way times, which are written from now on even if empty. The first call allocates.
    pub fn one_way_mut(&mut self) -> &mut OneWay {
        self.one_way.get_or_insert_default()
    }

    /// The streams, which are written from now on even if there are none. The first call allocates.
    pub fn streams_mut(&mut self) -> &mut StreamTally {
        self.streams.get_or_insert_default()
    }

    /// Clear everything, keeping the memory.
    pub fn clear(&mut self) {
        self.counts = Counts::default();
        self.response.clear();
        self.service.clear();
        self.first_byte.clear();
        self.lateness.clear();
        if let Some(handshake) = &mut self.handshake {
            handshake.clear();
        }
        if let Some(upgrade) = &mut self.upgrade {
            upgrade.clear();
        }
        if let Some(one_way) = &mut self.one_way {
            one_way.clear();
        }
        if let Some(streams) = &mut self.streams {
            streams.clear();
        }
        (self.engine_cpu_ns, self.paused_ns) = (0, 0);
    }
}
