//! The laws of merging, of events, and of saturation.

use proptest::prelude::*;
use redline_traffic::{
    Clocks, Connected, Counts, ENGINE_FORMAT, Ended, Engine, EngineError, ErrorKind, Event, Failure, Failures,
    HIGHEST_NS, Histogram, Interval, JourneyEnd, JourneyTally, KeptRequest, KeptRequests, Outcome, OwnedEvent, Phase,
    Reach, RequestTally, Signed, Slice, SparseHistogram, Started, StatusClasses, Summary, TlsInfo,
};
use serde_json::{Value, json};

const OUTCOMES: [Outcome; 12] = [
    Outcome::Ok,
    Outcome::UnexpectedStatus,
    Outcome::UnexpectedBody,
    Outcome::Malformed,
    Outcome::Connect,
    Outcome::Tls,
    Outcome::Reset,
    Outcome::Closed,
    Outcome::Refused,
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
    let requests = prop::collection::vec((0_usize..12, 100_u16..600), 0..40);
    let handshakes = prop::option::of(durations());
    let one_way = prop::option::of(prop::collection::vec(any::<i64>(), 0..20));
    (durations(), requests, 0_u64..1000, handshakes, one_way).prop_map(
        |(durations, requests, number, handshakes, one_way)| {
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
            for handshake in handshakes.into_iter().flatten() {
                slice.record_handshake(handshake);
                slice.counts.handshakes += 1;
            }
            for difference in one_way.into_iter().flatten() {
                slice.one_way_mut().to_server.record(difference.into());
                slice.one_way_mut().from_server.record(-i128::from(difference));
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
        let handshakes = |slice: &Slice| slice.handshake.as_ref().map_or(0, |histogram| histogram.count());
        prop_assert_eq!(handshakes(&merged), a.counts.handshakes + b.counts.handshakes);
        let one_way = |slice: &Slice| slice.one_way.as_ref().map_or(0, |times| times.from_server.count());
        prop_assert_eq!(one_way(&merged), one_way(&a) + one_way(&b));
    }

    /// Merging histograms is the same as recording everything in a single histogram.
    #[test]
    fn a_sum_is_what_one_would_have_seen(a in durations(), b in durations()) {
        let mut merged = histogram(&a);
        merged.add(&histogram(&b));
        prop_assert_eq!(merged, histogram(&[a, b].concat()));
    }

    /// A sparse histogram has the counts of a whole one, also when merged, and is written as it.
    #[test]
    fn a_sparse_histogram_is_as_fine(a in durations(), b in durations()) {
        let (mut sum, mut other) = (SparseHistogram::default(), SparseHistogram::default());
        for ns in &a {
            sum.record(*ns);
        }
        for ns in &b {
            other.record(*ns);
        }
        sum.add(&other);
        prop_assert_eq!(sum.count(), (a.len() + b.len()) as u64);
        let whole = histogram(&[a, b].concat());
        prop_assert_eq!(sum.to_histogram().encode(), whole.encode());
        let read: SparseHistogram = serde_json::from_value(serde_json::to_value(&sum).unwrap()).unwrap();
        prop_assert_eq!(read, sum);
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

    #[test]
    fn what_is_written_is_read_back(slice in slice(), times in any::<[u64; 3]>(), ticks in any::<Vec<u32>>()) {
        let [index, start_ns, end_ns] = times;
        let interval = Interval { phase: Phase::Measure, index, start_ns, end_ns, ticks: ticks.clone(), workers: vec![index], slice: &slice };
        let read = read(&Event::Interval(interval));
        let boxed = || Box::new(slice.clone());
        let expected = Interval { phase: Phase::Measure, index, start_ns, end_ns, ticks, workers: vec![index], slice: boxed() };
        prop_assert_eq!(read, OwnedEvent::Interval(expected));
        let (measure_start_ns, measure_end_ns) = (start_ns, end_ns);
        let clocks = Some(Clocks { start_ns, end_ns, server_cpu_ns: Some(index), steal_ns: None });
        let mut failures = Failures::default();
        let bytes_base64 = Some("YQ==".to_owned());
        let reason = "a".to_owned();
        failures.add(Failure { outcome: Outcome::InFlight, reason, at: None, from: Some(index), bytes_base64, request: None, time_ns: 1 });
        let mut tally = RequestTally { completed: index, ..RequestTally::default() };
        tally.record(Some(end_ns), start_ns);
        let requests = vec![tally, RequestTally::default()];
        let request = KeptRequest { request: Some(1), due_ns: start_ns, written_ns: None, first_ns: Some(index), end_ns, outcome: Outcome::Ok, status: Some(200), traceparent: Some("00".to_owned()) };
        let kept = KeptRequests { slowest: vec![request.clone()], sampled: vec![request] };
        let summary = Summary {
            ended: Ended::Deadline, measure_start_ns, measure_end_ns, clocks, failures: failures.clone(), requests: requests.clone(), journeys: Some(journeys()), reach: REACH, kept: kept.clone(), slice: &slice,
        };
        let expected =
            Summary { ended: Ended::Deadline, measure_start_ns, measure_end_ns, clocks, failures, requests, journeys: Some(journeys()), reach: REACH, kept, slice: boxed() };
        prop_assert_eq!(self::read(&Event::Result(summary)), OwnedEvent::Result(expected));
    }

    #[test]
    fn what_is_cleared_is_as_new_but_for_its_memory(slice in slice()) {
        let mut cleared = slice.clone();
        cleared.clear();
        prop_assert_eq!(cleared.handshake.is_some(), slice.handshake.is_some());
        prop_assert_eq!(cleared.one_way.is_some(), slice.one_way.is_some());
        prop_assert_eq!(Slice { handshake: None, one_way: None, ..cleared }, Slice::default());
    }

    #[test]
    fn a_signed_duration_keeps_its_sign_and_size(ns in any::<i64>()) {
        let mut signed = Signed::default();
        signed.record(ns.into());
        let (of_its_sign, other) =
            if ns < 0 { (&signed.negative, &signed.positive) } else { (&signed.positive, &signed.negative) };
        prop_assert!(other.is_empty());
        prop_assert_eq!(of_its_sign, &histogram(&[ns.unsigned_abs()]));
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
        json!({"ok": 1, "unexpected_status": 2, "unexpected_body": 3, "malformed": 4, "connect": 5, "tls": 6, "reset": 7,
               "closed": 8, "refused": 9, "timeout": 10, "in_flight": 11, "unsent": 12})
    );
    assert_eq!(counts.outcomes.total(), 78);
}

#[test]
fn status_classes_are_written_when_they_occurred() {
    let mut status = StatusClasses::default();
    for code in [200, 204, 503, 999, 101] {
        status.count(code);
    }
    assert_eq!(serde_json::to_value(status).unwrap(), json!({"1xx": 1, "2xx": 2, "5xx": 1, "9xx": 1}));
    assert_eq!((status.of(2), status.of(4), status.of(99)), (2, 0, 0));
}

/// An event as a reader of its line gets it.
fn read(event: &Event<'_>) -> OwnedEvent {
    serde_json::from_str(&serde_json::to_string(event).unwrap()).unwrap()
}

#[test]
fn what_is_not_a_distribution_is_read_back_too() {
    let tls = TlsInfo { version: "1.3".into(), cipher: "TLS13_AES_128_GCM_SHA256".into(), alpn: None, insecure: true };
    let error = EngineError { kind: ErrorKind::BadJob, message: "a".into(), hint: "b".into() };
    let connected = Connected {
        connections: 7,
        connect_ns: 8,
        backend: "epoll".into(),
        tls: Some(tls.clone()),
        addresses: vec!["127.0.0.1:80".into()],
        error: Some(error.clone()),
    };
    assert_eq!(read(&Event::Connected(connected.clone())), OwnedEvent::Connected(connected));
    let engine = Engine {
        name: "redline-engine".into(),
        version: "0.1.0".into(),
        backend: "io_uring".into(),
        workers: 13,
        cpus: vec![0, 1],
        processes: 13,
    };
    for tls in [Some(tls), None] {
        let started = Started {
            format: ENGINE_FORMAT.into(),
            engine: engine.clone(),
            connections: 1,
            connect_ns: 2,
            epoch_unix_ns: 1_790_000_000_000_000_001,
            tls,
            addresses: vec!["unix:/run/a.sock".into()],
        };
        assert_eq!(read(&Event::Started(started.clone())), OwnedEvent::Started(started));
    }
    assert_eq!(read(&Event::Error(&error)), OwnedEvent::Error(error.clone()));
}

#[test]
fn what_is_not_an_event_is_refused() {
    let slice = Slice::default();
    let interval = Interval {
        phase: Phase::Warmup,
        index: 0,
        start_ns: 0,
        end_ns: 5,
        ticks: Vec::new(),
        workers: Vec::new(),
        slice: &slice,
    };
    let good = serde_json::to_value(Event::Interval(interval)).unwrap();
    for (key, wrong) in
        [("event", json!("else")), ("response", json!("HIST")), ("counts", json!({})), ("index", json!(-1))]
    {
        let mut bad = good.clone();
        bad[key] = wrong;
        assert!(serde_json::from_value::<OwnedEvent>(bad).is_err(), "{key}");
    }
    let unknown = json!({"10xx": 1});
    assert!(serde_json::from_value::<StatusClasses>(unknown).is_err());
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn events_have_the_keys_of_the_protocol() {
    let slice = Slice::default();
    let interval = Interval {
        phase: Phase::Warmup,
        index: 0,
        start_ns: 0,
        end_ns: 5,
        ticks: Vec::new(),
        workers: Vec::new(),
        slice: &slice,
    };
    let interval = serde_json::to_value(Event::Interval(interval)).unwrap();
    assert_eq!(interval["event"], "interval");
    assert_eq!(interval["phase"], "warmup");
    assert_eq!(
        keys(&interval),
        [
            "counts",
            "end_ns",
            "engine_cpu_ns",
            "event",
            "first_byte",
            "index",
            "lateness",
            "phase",
            "response",
            "service",
            "start_ns"
        ]
    );
    assert_eq!(
        keys(&interval["counts"]),
        [
            "bytes_received",
            "bytes_sent",
            "completed",
            "due",
            "exhausted",
            "handshakes",
            "late",
            "outcomes",
            "reconnects",
            "resent",
            "resumed",
            "retried",
            "saturated",
            "sent",
            "status",
            "waited"
        ]
    );
    let summary = Summary {
        ended: Ended::Interrupted,
        measure_start_ns: 1,
        measure_end_ns: 2,
        clocks: None,
        failures: Failures::default(),
        requests: Vec::new(),
        journeys: Some(journeys()),
        reach: REACH.and(REACH),
        kept: KeptRequests::default(),
        slice: &slice,
    };
    let result = serde_json::to_value(Event::Result(summary)).unwrap();
    let counts = json!({"due": 4, "completed": 1, "abandoned": [0, 1], "skipped": [0, 1], "unfinished": 2, "again": 1});
    for (key, count) in counts.as_object().unwrap() {
        assert_eq!(&result["journeys"][key], count, "{key}");
    }
    assert_eq!(result["journeys"].get("rows_used_up"), None);
    assert_eq!((result.get("requests"), result.get("kept")), (None, None));
    assert_eq!(result["reach"], json!({"opened": 6, "asked": 4, "answered": 2}));
    assert_eq!((&result["event"], &result["ended"]), (&json!("result"), &json!("interrupted")));
}

const REACH: Reach = Reach { opened: 3, asked: 2, answered: 1 };

/// Journeys that ended in all ways.
fn journeys() -> JourneyTally {
    let mut all = JourneyTally { due: 3, again: 1, ..JourneyTally::new(2) };
    for end in [JourneyEnd::Completed(1_000_000), JourneyEnd::Abandoned(1), JourneyEnd::Unfinished] {
        all.end(end);
    }
    all.skipped[1] += 1;
    let mut sum = None;
    JourneyTally::add_to(&mut sum, Some(&all));
    JourneyTally::add_to(&mut sum, None);
    JourneyTally::add_to(&mut sum, Some(&JourneyTally { due: 1, unfinished: 1, ..JourneyTally::default() }));
    sum.unwrap()
}

/// Of the requests of two workers, those of one came in one piece; one of the other's had no answer.
#[test]
fn the_first_byte_of_a_request_is_that_of_complete_answers() {
    let mut whole = RequestTally::default();
    whole.record(Some(500), 500);
    assert_eq!(whole.first_byte, None);
    let mut pieces = whole.clone();
    pieces.record(Some(100), 900);
    pieces.record(None, 2000);
    let [mut sum, mut other_way] = [whole.clone(), pieces.clone()];
    sum.add(&pieces);
    other_way.add(&whole);
    assert_eq!(sum, other_way);
    let counts = |histogram: &SparseHistogram| {
        let histogram: Histogram = serde_json::from_value(serde_json::to_value(histogram).unwrap()).unwrap();
        (histogram.count(), histogram.min_ns(), histogram.max_ns())
    };
    assert_eq!(counts(&sum.response), (4, 500, 2000));
    assert_eq!(counts(sum.first_byte.as_ref().unwrap()), (3, 100, 500));
    let whole = whole.complete();
    assert_eq!(whole.first_byte.as_ref(), Some(&whole.response));
}
