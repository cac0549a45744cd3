//! The output of an engine, checked against the laws of all results.

use redline_traffic::Histogram;
use serde_json::Value;

/// The output of an engine, and how it ended.
#[derive(Debug)]
pub struct EngineOutput {
    pub code: Option<i32>,
    pub events: Vec<Value>,
    /// Its standard error.
    pub log: String,
}

impl EngineOutput {
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |event| event["event"] == kind)
    }

    /// The result, after checking that nothing was lost.
    pub fn result(&self) -> Outcome {
        let event = self.events.last().unwrap().clone();
        assert_eq!(event["event"], "result", "{event:#}");
        let result = Outcome { event };
        result.is_conserved();
        requests_add_up_to(&result.event);
        self.intervals_add_up_to(&result);
        result.has_reasons();
        assert!(!self.log.contains("failure"), "{}", self.log);
        result
    }

    fn intervals_add_up_to(&self, result: &Outcome) {
        let mut end = 0;
        let mut measured = Vec::new();
        for (index, interval) in self.of_kind("interval").enumerate() {
            assert_eq!(interval["index"], index);
            assert_eq!(interval["start_ns"], end);
            end = interval["end_ns"].as_u64().unwrap();
            assert!(interval["start_ns"].as_u64().unwrap() < end, "{interval}");
            ticks_add_up_to(interval);
            workers_add_up_to(interval);
            if interval["phase"] != "warmup" {
                measured.push(interval);
            }
        }
        for name in ["response", "service", "lateness"] {
            let mut sum = Histogram::new();
            for interval in &measured {
                sum.add(&histogram(interval, name));
            }
            assert_eq!(sum, result.histogram(name), "{name}");
        }
        for counter in
            ["due", "sent", "waited", "late", "retried", "resent", "reconnects", "handshakes", "saturated", "exhausted"]
        {
            let sum: u64 = measured.iter().map(|interval| interval["counts"][counter].as_u64().unwrap()).sum();
            assert_eq!(sum, result.count(counter), "{counter}");
        }
        let window = measured.iter().filter(|interval| interval["phase"] == "measure");
        let completed: u64 = window.map(|interval| interval["counts"]["completed"].as_u64().unwrap()).sum();
        assert_eq!(completed, result.count("completed"));
    }

    /// The only event of a job that could not run.
    pub fn error(&self) -> &Value {
        assert_eq!(self.events.len(), 1, "{:#?}", self.events);
        assert_eq!(self.events[0]["event"], "error");
        assert_ne!(self.events[0]["hint"], "");
        &self.events[0]
    }
}

/// Every right answer of an interval is in one of its ticks of 50 ms, if it has any.
fn ticks_add_up_to(interval: &Value) {
    if let Some(ticks) = interval["ticks"].as_array() {
        assert_eq!(interval["phase"], "measure");
        let sum: u64 = ticks.iter().map(|tick| tick.as_u64().unwrap()).sum();
        assert_eq!(sum, interval["counts"]["completed"].as_u64().unwrap(), "{interval}");
        let ns = interval["end_ns"].as_u64().unwrap() - interval["start_ns"].as_u64().unwrap();
        assert_eq!(ticks.len() as u64, ns.div_ceil(50_000_000), "{interval}");
    }
}

/// Every right answer of an interval is one of its workers', if it says them.
fn workers_add_up_to(interval: &Value) {
    if let Some(workers) = interval["workers"].as_array() {
        assert_eq!(interval["phase"], "measure");
        assert!(workers.len() > 1, "{interval}");
        let sum: u64 = workers.iter().map(|worker| worker.as_u64().unwrap()).sum();
        assert_eq!(sum, interval["counts"]["outcomes"]["ok"].as_u64().unwrap(), "{interval}");
    }
}

/// All outcomes but `ok`, in the order of the protocol.
const OUTCOMES: [&str; 11] = [
    "unexpected_status",
    "unexpected_body",
    "malformed",
    "connect",
    "tls",
    "reset",
    "closed",
    "refused",
    "timeout",
    "in_flight",
    "unsent",
];

/// A `result`.
pub struct Outcome {
    pub event: Value,
}

impl Outcome {
    pub fn count(&self, name: &str) -> u64 {
        self.event["counts"][name].as_u64().unwrap()
    }

    pub fn outcome(&self, name: &str) -> u64 {
        self.event["counts"]["outcomes"][name].as_u64().unwrap()
    }

    pub fn total(&self) -> u64 {
        self.event["counts"]["outcomes"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
    }

    pub fn histogram(&self, name: &str) -> Histogram {
        histogram(&self.event, name)
    }

    /// The slowest requests.
    pub fn slowest(&self) -> &[Value] {
        self.event["kept"]["slowest"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The first failure of each outcome.
    pub fn failures(&self) -> &[Value] {
        self.event["failures"].as_array().unwrap()
    }

    /// Why requests ended with this outcome.
    pub fn reason(&self, outcome: &str) -> &str {
        let failure = self.failures().iter().find(|failure| failure["outcome"] == outcome);
        failure.unwrap_or_else(|| panic!("{outcome}: {:?}", self.failures()))["reason"].as_str().unwrap()
    }

    /// Every outcome except ok has a reason on a single line, in the order of outcomes.
    fn has_reasons(&self) {
        let outcomes =
            OUTCOMES.iter().filter(|outcome| self.failures().iter().any(|known| known["outcome"] == **outcome));
        let named = self.failures().iter().map(|failure| failure["outcome"].as_str().unwrap());
        assert!(named.eq(outcomes.copied()), "{:?}", self.failures());
        for outcome in OUTCOMES.iter().filter(|outcome| self.outcome(outcome) > 0) {
            assert!(!self.reason(outcome).is_empty() && !self.reason(outcome).contains('\n'), "{:?}", self.failures());
        }
    }

    /// Every request that fell due is in the response histogram and has exactly one outcome.
    fn is_conserved(&self) {
        assert_eq!(self.total(), self.count("due"), "{:#}", self.event["counts"]);
        assert_eq!(self.histogram("response").count(), self.count("due"));
        assert_eq!(self.histogram("lateness").count(), self.count("due"));
        assert_eq!(self.histogram("service").count(), self.count("sent"));
        assert!(self.count("exhausted") <= self.outcome("connect"));
        // The slowest requests have the longest times of the histogram.
        let slowest = self.slowest();
        assert_eq!(slowest.len() as u64, self.count("due").min(10));
        let mut times = Histogram::new();
        for kept in slowest {
            times.record(kept["end_ns"].as_u64().unwrap() - kept["due_ns"].as_u64().unwrap());
        }
        let rank = |times: &Histogram, at: u64| {
            let count = times.count() as f64;
            times.quantile_ns((count - at as f64 - 0.5) / count)
        };
        for at in 0..slowest.len() as u64 {
            assert_eq!(rank(&times, at), rank(&self.histogram("response"), at), "{at}: {slowest:?}");
        }
    }

    /// All requests, at least one, ended with this outcome.
    pub fn are_all(&self, outcome: &str) {
        assert!(self.total() > 0);
        assert_eq!(self.outcome(outcome), self.total(), "{:#}", self.event["counts"]);
    }
}

/// What was counted by request, if there are several, adds up to what was counted of all.
pub fn requests_add_up_to(total: &Value) {
    let Some(requests) = total["requests"].as_array() else {
        return;
    };
    let mut response = Histogram::new();
    for request in requests {
        response.add(&histogram(request, "response"));
    }
    // The longest of a sum is known to the precision of its bucket, so the texts are compared.
    assert_eq!(response.encode(), histogram(total, "response").encode());
    let counts = &total["counts"];
    let of_all = |key: &str| requests.iter().map(|request| request[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(of_all("completed"), counts["completed"].as_u64().unwrap());
    for key in ["outcomes", "status"] {
        for (name, count) in counts[key].as_object().unwrap() {
            let sum: u64 = requests.iter().filter_map(|request| request[key][name].as_u64()).sum();
            assert_eq!(Some(sum), count.as_u64(), "{key} {name}");
        }
    }
}

pub fn histogram(event: &Value, name: &str) -> Histogram {
    Histogram::decode(event[name].as_str().unwrap()).unwrap()
}
