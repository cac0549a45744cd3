//! An engine that stands still reports it, whatever its load, and blames no server for it.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::shards::{shards, signal};
use crate::support::engine::{is_stopped, limit_open_files};
use crate::support::http2::Http2Server;
use crate::support::server::{HELLO, Server};
use crate::support::tls::{TlsServer, certificates};
use crate::support::{Engine, EngineOutput, Outcome, job, open_job, run, with};

const PAUSE: Duration = Duration::from_millis(700);
/// The part of a pause that is surely seen: it begins between two heartbeats, 20 ms apart.
const SEEN_NS: u64 = 600_000_000;
const MEASURE_NS: u64 = 1_500_000_000;
/// Longer than a test, which ends it: a busy machine may report late how far the engine is.
const LONG_NS: u64 = 50_000_000_000;

fn closed(port: u16, load: &Value) -> Value {
    with(with(job(port), "/load", json!({"closed": load})), "/measure_ns", json!(MEASURE_NS))
}

fn stop_for_a_while(pid: libc::pid_t) {
    signal(pid, libc::SIGSTOP);
    // Not for ever, because it may have ended before.
    for _ in 0..5_000 {
        if is_stopped(pid) {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(PAUSE);
    signal(pid, libc::SIGCONT);
}

/// Run a job, and stop the engine for a while once an interval of the measurement is over.
fn stopped_once(job: &Value) -> Outcome {
    let mut engine = Engine::start(&job.to_string());
    engine.wait_until(|event| event["phase"] == "measure");
    stop_for_a_while(engine.pid());
    let output = engine.finish();
    assert_eq!(output.code, Some(0), "{:#?}\n{}", output.events.last(), output.log);
    output.result()
}

/// End an engine when all its workers have reported the pause, whose parts may stand in several intervals.
fn told(mut engine: Engine, workers: u64) -> EngineOutput {
    let mut sum_ns = 0;
    engine.wait_until(|event| {
        sum_ns += paused_ns(event);
        sum_ns > workers * SEEN_NS
    });
    engine.signal(libc::SIGINT);
    let output = engine.finish();
    assert!(matches!(output.code, Some(0 | 130)), "{:#?}\n{}", output.events.last(), output.log);
    output
}

fn paused_ns(event: &Value) -> u64 {
    event["paused_ns"].as_u64().unwrap_or(0)
}

/// Every worker saw the pause, and its intervals contain their parts of it.
fn is_seen(job: &Value) {
    let mut engine = Engine::start(&with(job.clone(), "/measure_ns", json!(LONG_NS)).to_string());
    engine.wait_until(|event| event["phase"] == "measure");
    stop_for_a_while(engine.pid());
    let workers = job["workers"].as_u64().unwrap();
    let output = told(engine, workers);
    let result = output.result();
    assert!(paused_ns(&result.event) > workers * SEEN_NS, "{}: {}", job["load"], result.event["paused_ns"]);
    let measured = output.of_kind("interval").filter(|interval| interval["phase"] != "warmup");
    let mut sum_ns = 0;
    for interval in measured {
        let lasts_ns = interval["end_ns"].as_u64().unwrap() - interval["start_ns"].as_u64().unwrap();
        assert!(paused_ns(interval) <= workers * lasts_ns, "{interval}");
        sum_ns += paused_ns(interval);
    }
    assert_eq!(sum_ns, paused_ns(&result.event));
}

#[test]
fn a_pause_is_seen_in_every_kind_of_load() {
    let server = Server::answering(HELLO);
    let port = server.port;
    let open =
        |arrivals: &str, rate: f64| json!({"open": {"rate_per_s": rate, "arrivals": arrivals, "connections": 4}});
    let loads = [
        closed(port, &json!({"users": 2})),
        closed(port, &json!({"users": 2, "depth": 4})),
        closed(port, &json!({"users": 1, "think": {"exponential_ns": 400_000_000}})),
        closed(port, &json!({"users": 2, "pace_per_s": 50.0})),
        closed(port, &json!({"users": 1, "stages": [{"to": 4, "over_ns": MEASURE_NS}]})),
        with(closed(port, &json!({})), "/load", open("uniform", 500.0)),
        with(closed(port, &json!({})), "/load", open("poisson", 2.0)),
        with(closed(port, &json!({"users": 4})), "/workers", json!(2)),
        with(closed(port, &json!({"users": 1})), "/spin", json!(true)),
        with(closed(port, &json!({"users": 2})), "/backend", json!("epoll")),
    ];
    for job in loads {
        is_seen(&job);
    }
}

#[test]
fn a_pause_is_seen_over_tls_and_http2() {
    let certificates = certificates("127.0.0.1");
    let config = certificates.config(&[&rustls::version::TLS13], &[]);
    let secure = TlsServer::answering(config, HELLO);
    let job = closed(secure.port, &json!({"users": 2, "think": {"fixed_ns": 1_000_000}}));
    is_seen(&with(job, "/target/tls", json!({"ca_pem": certificates.ca_pem})));

    let http2 = Http2Server::hello();
    let job = closed(http2.port, &json!({"users": 1, "depth": 4, "think": {"fixed_ns": 1_000_000}}));
    is_seen(&with(job, "/target/http", json!("2")));
}

#[test]
fn a_pause_of_the_warm_up_is_told_and_is_not_measured() {
    let server = Server::answering(HELLO);
    let job = with(with(job(server.port), "/warmup_ns", json!(LONG_NS)), "/commands", json!(true));
    let mut engine = Engine::start_heeding(&format!("{job}\n"), |_| {});
    engine.wait_until(|event| event["phase"] == "warmup");
    stop_for_a_while(engine.pid());
    engine.say(r#"{"command":"measure"}"#);
    let output = engine.finish();
    let result = output.result();
    assert!(result.outcome("ok") > 0);
    let warm_up = output.of_kind("interval").filter(|interval| interval["phase"] == "warmup");
    assert!(warm_up.map(paused_ns).sum::<u64>() > SEEN_NS);
    assert!(paused_ns(&result.event) < SEEN_NS);
}

/// Users who always wait: at any time most of their requests are in flight.
fn slow_answers(timeout_ns: u64) -> (Server, Value) {
    let server = Server::start(|mut peer, _| {
        while peer.request()?.is_some() {
            thread::sleep(Duration::from_millis(40));
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let job = closed(server.port, &json!({"users": 4}));
    let job = with(with(job, "/timeout_ns", json!(timeout_ns)), "/drain_ns", json!(timeout_ns));
    (server, job)
}

#[test]
fn answers_that_came_during_a_pause_are_no_timeouts() {
    let (_server, job) = slow_answers(500_000_000);
    stopped_once(&job).are_all("ok");
}

#[test]
fn answers_that_came_during_a_pause_over_the_end_are_counted() {
    let (_server, job) = slow_answers(500_000_000);
    let job = with(job, "/measure_ns", json!(600_000_000));
    // A busy machine may stop the engine only after the measurement.
    let seen = (0..5).any(|_| {
        let result = stopped_once(&job);
        result.are_all("ok");
        paused_ns(&result.event) > SEEN_NS
    });
    assert!(seen);
}

#[test]
fn a_server_that_does_not_answer_still_times_out_after_a_pause() {
    let server = Server::start(|mut peer, _| {
        peer.request()?;
        peer.stall();
        Ok(())
    });
    let job = closed(server.port, &json!({"users": 2}));
    let job = with(with(job, "/timeout_ns", json!(300_000_000)), "/measure_ns", json!(2_000_000_000_u64));
    let result = stopped_once(&job);
    assert!(result.outcome("timeout") > 0 && result.outcome("ok") == 0, "{:#}", result.event["counts"]);
}

#[test]
fn a_server_that_stands_still_is_no_pause_of_the_engine() {
    let server = Server::start(|mut peer, _| {
        for number in 0.. {
            if peer.request()?.is_none() {
                break;
            }
            if number == 20 {
                thread::sleep(PAUSE);
            }
            peer.say(HELLO)?;
        }
        Ok(())
    });
    let job = closed(server.port, &json!({"users": 2, "think": {"fixed_ns": 1_000_000}}));
    let result = run(&with(job, "/warmup_ns", json!(0))).result();
    result.are_all("ok");
    assert!(result.histogram("response").max_ns() > SEEN_NS);
    assert!(paused_ns(&result.event) < SEEN_NS);
}

#[test]
fn a_process_of_several_that_stood_still_is_seen() {
    let server = Server::answering(HELLO);
    let job = with(open_job(server.port, 200, 100), "/measure_ns", json!(LONG_NS));
    let mut engine = Engine::start_with(&job.to_string(), |command| {
        limit_open_files(command, 60);
    });
    engine.wait_for_measured("/outcomes/ok");
    stop_for_a_while(shards(&engine)[0]);
    assert!(paused_ns(&told(engine, 1).result().event) > SEEN_NS);
}

#[test]
fn blocks_of_a_duet_with_a_pause_are_left_out() {
    let (first, second) = (Server::answering(HELLO), Server::answering(HELLO));
    let duet = json!({
        "targets": [{"host": "127.0.0.1", "port": second.port}],
        "slice_ns": 100_000_000, "guard_ns": 2_000_000,
    });
    let job = with(closed(first.port, &json!({"users": 2, "think": {"fixed_ns": 1_000_000}})), "/duet", duet);
    let mut engine = Engine::start(&with(job, "/measure_ns", json!(LONG_NS)).to_string());
    engine.wait_until(|event| event["event"] == "block" && event["phase"] == "measure");
    // Nothing is measured between two slices, so a pause there excludes nothing.
    for within_ms in [30, 60, 90] {
        thread::sleep(Duration::from_millis(within_ms));
        stop_for_a_while(engine.pid());
    }
    thread::sleep(PAUSE);
    engine.signal(libc::SIGINT);
    let output = engine.finish();
    assert_eq!(output.code, Some(130), "{:#?}\n{}", output.events.last(), output.log);
    let end = output.events.last().unwrap();
    assert!(end["paused_blocks"].as_u64().unwrap() > 0, "{end}");
    let mut failed = 0;
    for slice in output.of_kind("block").flat_map(|block| block["slices"].as_array().unwrap()) {
        assert!(slice["end_ns"].as_u64().unwrap() - slice["start_ns"].as_u64().unwrap() < SEEN_NS, "{slice}");
        failed += slice["failed"].as_u64().unwrap();
    }
    assert_eq!(failed, 0);
}
