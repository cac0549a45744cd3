//! The laws of merging, what is told, and what saturates.

use proptest::prelude::*;
use redline_traffic::{
    Counts, Ended, Event, HIGHEST_NS, Histogram, Interval, Outcome, Phase, Slice, StatusClasses, Summary,
};
use serde_json::{Value, json};

const OUTCOMES: [Outcome; 10] = [
    Outcome::Ok,
    Outcome::UnexpectedStatus,
    Outcome::UnexpectedBody,
    Outcome::Malformed,
    Outcome::Connect,
    Outcome::Reset,
    Outcome::Closed,
    Outcome::Timeout,
    Outcome::InFlight,
    Outcome::Unsent,
];

fn histogram(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for value in values {
        histogram.record(*value);
    }
    histogram
}

fn sum(slices: &[&Slice]) -> Slice {
    let mut total = Slice::default();
    for slice in slices {
        total.add(slice);
    }
    total
}

fn durations() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(prop_oneof![0_u64..2000, 0_u64..1_000_000_000, any::<u64>()], 0..60)
}

fn slice() -> impl Strategy<Value = Slice> {
    (durations(), prop::collection::vec((0_usize..10, 100_u16..600), 0..40), 0_u64..1000).prop_map(
        |(durations, requests, number)| {
            let mut slice = Slice::default();
            for duration in durations {
                slice.counts.saturated += u64::from(slice.response.record(duration));
                slice.service.record(duration / 2);
                slice.lateness.record(duration / 1000);
            }
            for (outcome, status) in requests {
                slice.counts.due += 1;
                slice.counts.outcomes.count(OUTCOMES[outcome]);
                slice.counts.status.count(status);
            }
            slice.counts.bytes_received = number;
            slice.engine_cpu_ns = number * 7;
            slice
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn merging_is_associative_and_commutative(a in slice(), b in slice(), c in slice()) {
        prop_assert_eq!(sum(&[&sum(&[&a, &b]), &c]), sum(&[&a, &sum(&[&b, &c])]));
        prop_assert_eq!(sum(&[&a, &b]), sum(&[&b, &a]));
        prop_assert_eq!(sum(&[&a, &Slice::default()]), a);
    }

    #[test]
    fn merging_keeps_counts(a in slice(), b in slice()) {
        let merged = sum(&[&a, &b]);
        prop_assert_eq!(merged.response.count(), a.response.count() + b.response.count());
        prop_assert_eq!(merged.counts.outcomes.total(), a.counts.outcomes.total() + b.counts.outcomes.total());
        prop_assert_eq!(merged.counts.outcomes.total(), merged.counts.due);
        prop_assert_eq!(merged.counts.saturated, a.counts.saturated + b.counts.saturated);
    }

    /// Merging histograms is the same as recording everything in one.
    #[test]
    fn a_sum_is_what_one_would_have_seen(a in durations(), b in durations()) {
        let mut merged = histogram(&a);
        merged.add(&histogram(&b));
        prop_assert_eq!(merged, histogram(&[a, b].concat()));
    }

    #[test]
    fn what_is_encoded_is_read_back(durations in durations()) {
        let histogram = histogram(&durations);
        prop_assert_eq!(Histogram::decode(&histogram.encode()), Some(histogram));
    }

    #[test]
    fn quantiles_keep_three_digits(duration in 1_u64..HIGHEST_NS) {
        let read = histogram(&[duration]).quantile_ns(0.5);
        prop_assert!(read.abs_diff(duration) as f64 <= duration as f64 / 1000.0, "{} {}", duration, read);
    }

    #[test]
    fn the_drain_adds_requests_and_no_rates(a in slice(), b in slice()) {
        let mut total = a.clone();
        total.add_drained(&b);
        prop_assert_eq!(total.response.count(), a.response.count() + b.response.count());
        prop_assert_eq!(total.counts.outcomes.total(), a.counts.outcomes.total() + b.counts.outcomes.total());
        prop_assert_eq!(total.counts.bytes_received, a.counts.bytes_received);
        prop_assert_eq!(total.engine_cpu_ns, a.engine_cpu_ns);
    }
}

#[test]
fn what_is_past_the_range_is_recorded_at_its_end_and_said() {
    let mut histogram = Histogram::new();
    assert!(!histogram.record(0));
    assert!(!histogram.record(HIGHEST_NS));
    assert!(histogram.record(HIGHEST_NS + 1));
    assert!(histogram.record(u64::MAX));
    assert_eq!(histogram.count(), 4);
    assert_eq!(histogram.min_ns(), 1);
    let end = histogram.max_ns();
    assert!(end >= HIGHEST_NS && end - HIGHEST_NS < HIGHEST_NS / 1000);
    histogram.clear();
    assert_eq!(histogram, Histogram::new());
}

#[test]
fn what_is_not_a_histogram_is_refused() {
    for text in ["", "not base64!", "AAAA", "HISTFAAA"] {
        assert_eq!(Histogram::decode(text), None, "{text:?}");
    }
}

#[test]
fn each_outcome_has_its_own_counter() {
    let mut counts = Counts::default();
    for (times, outcome) in (1..).zip(OUTCOMES) {
        for _ in 0..times {
            counts.outcomes.count(outcome);
        }
    }
    assert_eq!(
        serde_json::to_value(counts.outcomes).unwrap(),
        json!({"ok": 1, "unexpected_status": 2, "unexpected_body": 3, "malformed": 4, "connect": 5, "reset": 6,
               "closed": 7, "timeout": 8, "in_flight": 9, "unsent": 10})
    );
    assert_eq!(counts.outcomes.total(), 55);
}

#[test]
fn status_classes_are_told_when_they_occurred() {
    let mut status = StatusClasses::default();
    for code in [200, 204, 503, 999, 101] {
        status.count(code);
    }
    assert_eq!(serde_json::to_value(status).unwrap(), json!({"1xx": 1, "2xx": 2, "5xx": 1, "9xx": 1}));
    assert_eq!((status.of(2), status.of(4), status.of(99)), (2, 0, 0));
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn events_have_the_keys_of_the_protocol() {
    let slice = Slice::default();
    let interval = Interval { phase: Phase::Warmup, index: 0, start_ns: 0, end_ns: 5, slice: &slice };
    let interval = serde_json::to_value(Event::Interval(interval)).unwrap();
    assert_eq!(interval["event"], "interval");
    assert_eq!(interval["phase"], "warmup");
    assert_eq!(
        keys(&interval),
        ["counts", "end_ns", "engine_cpu_ns", "event", "index", "lateness", "phase", "response", "service", "start_ns"]
    );
    assert_eq!(
        keys(&interval["counts"]),
        [
            "bytes_received",
            "bytes_sent",
            "completed",
            "due",
            "exhausted",
            "late",
            "outcomes",
            "reconnects",
            "saturated",
            "sent",
            "status",
            "waited"
        ]
    );
    let summary = Summary { ended: Ended::Interrupted, measure_start_ns: 1, measure_end_ns: 2, slice: &slice };
    let result = serde_json::to_value(Event::Result(summary)).unwrap();
    assert_eq!((&result["event"], &result["ended"]), (&json!("result"), &json!("interrupted")));
}
