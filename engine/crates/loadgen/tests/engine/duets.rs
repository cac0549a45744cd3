//! Several targets in turn: their slices balance and are counted separately, and no load of a target reaches into another's
//! slice.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::clocks::served;
use crate::support::server::{HELLO, Server};
use crate::support::{Engine, EngineOutput, histogram, job, open_job, requests_add_up_to, run, with};

const SLICE_NS: u64 = 10_000_000;
const GUARD_NS: u64 = 2_000_000;
const LONGEST_WARMUP_NS: u64 = 30_000_000_000;

/// A job's target against others on these ports, with think time, so that cores have idle time.
fn duet(job: Value, others: &[u16]) -> Value {
    let targets: Vec<Value> = others.iter().map(|port| json!({"host": "127.0.0.1", "port": port})).collect();
    let job = with(job, "/duet", json!({"targets": targets, "slice_ns": SLICE_NS, "guard_ns": GUARD_NS}));
    if job["load"]["closed"].is_object() {
        return with(job, "/load/closed/think", json!({"fixed_ns": 500_000}));
    }
    job
}

/// The duet's end, after checking that each block has two slices of each target, the second ones in opposite order, and that
/// slices do not overlap.
fn balanced(output: &EngineOutput, targets: usize) -> &Value {
    assert_eq!(output.code, Some(0), "{:#?}\n{}", output.events.last(), output.log);
    let mut end_ns = 0;
    for block in output.of_kind("block") {
        let slices = block["slices"].as_array().unwrap();
        let order: Vec<u64> = slices.iter().map(|slice| slice["target"].as_u64().unwrap()).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..targets as u64).flat_map(|target| [target, target]).collect::<Vec<_>>());
        assert!(order.iter().eq(order.iter().rev()), "{order:?}");
        for slice in slices {
            let of = |key: &str| slice[key].as_u64().unwrap();
            assert!(end_ns < of("start_ns") && of("start_ns") + SLICE_NS <= of("end_ns"), "{slice}");
            assert!(of("measured_ns") >= SLICE_NS - GUARD_NS && of("measured") <= of("completed"), "{slice}");
            end_ns = of("end_ns");
        }
    }
    output.events.last().unwrap()
}

/// Runs a duet until no block was left out because a worker stood still, as it does where other tests take its core: what was
/// counted of such a block is in one target's total and may be missing from the other's.
pub fn run_undisturbed(job: &Value) -> EngineOutput {
    let mut output = run(job);
    for _ in 0..20 {
        if output.events.last().unwrap()["paused_blocks"].as_u64().unwrap_or(0) == 0 {
            break;
        }
        output = run(job);
    }
    output
}

/// The sum of a count over the slices of a target, in the measured blocks.
fn sum(output: &EngineOutput, target: u64, key: &str) -> u64 {
    let measured = output.of_kind("block").filter(|block| block["phase"] == "measure");
    let slices = measured.flat_map(|block| block["slices"].as_array().unwrap());
    slices.filter(|slice| slice["target"] == target).map(|slice| slice[key].as_u64().unwrap()).sum()
}

#[test]
fn targets_are_loaded_in_turn_and_counted_apart() {
    let right = Server::answering(HELLO);
    let wrong = Server::answering("HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno");
    let also_right = Server::answering(HELLO);
    for workers in [1, 2] {
        let job = with(duet(job(right.port), &[wrong.port, also_right.port]), "/workers", json!(workers));
        let output = run_undisturbed(&job);
        let end = balanced(&output, 3);
        assert_eq!((&end["event"], &end["ended"]), (&json!("duet"), &json!("complete")));
        assert_eq!(output.events[0]["connections"], 6);
        assert!(output.of_kind("block").next().unwrap()["phase"] == "warmup");
        let block_ns = output.of_kind("block").next().unwrap()["slices"][5]["end_ns"].as_u64();
        for (target, outcome) in [(0, "ok"), (1, "unexpected_status"), (2, "ok")] {
            let counts = &end["targets"][target as usize]["counts"];
            assert!(counts["due"].as_u64().unwrap() > 0);
            assert_eq!(counts["outcomes"][outcome], counts["due"], "{counts}");
            let failures = end["targets"][target as usize]["failures"].as_array().unwrap();
            let reasons: Vec<_> = failures.iter().map(|failure| failure["reason"].as_str().unwrap()).collect();
            assert_eq!(reasons, if outcome == "ok" { &[][..] } else { &["status 500 in place of 200"] });
            assert!(failures.iter().all(|failure| failure["time_ns"].as_u64() < block_ns), "{failures:?}");
            let failed = sum(&output, target, "failed");
            // A slice waits for its answers, so it received whole answers, however short it is.
            let received = sum(&output, target, "bytes_received");
            assert!(failed > 0 || received == HELLO.len() as u64 * sum(&output, target, "completed"), "{received}");
            assert_eq!((sum(&output, target, "completed") > 0, failed > 0), (outcome == "ok", outcome != "ok"));
        }
    }
}

#[test]
fn requests_of_a_mix_are_counted_for_each_target() {
    let (one, two) = (Server::answering(HELLO), Server::answering("HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno"));
    let get = |path: &str| json!({"method": "GET", "path": path, "expect": {"status": 200}});
    for parallel in [false, true] {
        let job = with(duet(job(one.port), &[two.port]), "/requests", json!([get("/a"), get("/b")]));
        let job = with(job, "/duet/parallel", json!(parallel));
        let output = run(&job);
        assert_eq!(output.code, Some(0), "{:#?}\n{}", output.events.last(), output.log);
        for target in output.events.last().unwrap()["targets"].as_array().unwrap() {
            requests_add_up_to(target);
            let due = |at: usize| histogram(&target["requests"][at], "response").count();
            assert!(due(0) > 0 && due(1) > 0, "{target}");
        }
    }
}

#[test]
fn slices_of_slow_targets_are_longer() {
    let delayed = |delay_ms| {
        Server::start(move |mut peer, _| {
            while peer.request()?.is_some() {
                thread::sleep(Duration::from_millis(delay_ms));
                peer.say(HELLO)?;
            }
            Ok(())
        })
    };
    let (quick, slow) = (delayed(0), delayed(6));
    for (others, at_least_ns) in [(quick.port, SLICE_NS), (slow.port, 30_000_000)] {
        let job = with(duet(job(quick.port), &[others]), "/duet/longest_slice_ns", json!(500_000_000));
        let output = run_undisturbed(&with(job, "/measure_ns", json!(300_000_000)));
        balanced(&output, 2);
        let measured: Vec<&Value> = output.of_kind("block").filter(|block| block["phase"] == "measure").collect();
        assert!(!measured.is_empty());
        for slice in measured.iter().flat_map(|block| block["slices"].as_array().unwrap()) {
            let lasts_ns = slice["end_ns"].as_u64().unwrap() - slice["start_ns"].as_u64().unwrap();
            assert!(lasts_ns >= at_least_ns, "{slice}");
        }
    }
}

#[test]
fn there_is_no_more_surplus_than_answers() {
    let server = || {
        Server::start(|mut peer, _| {
            while peer.request()?.is_some() {
                thread::sleep(Duration::from_millis(1));
                peer.say(&format!("{HELLO}surplus"))?;
            }
            Ok(())
        })
    };
    let (first, second) = (server(), server());
    let output = run(&duet(job(first.port), &[second.port]));
    for target in balanced(&output, 2)["targets"].as_array().unwrap() {
        let counts = &target["counts"];
        let of = |key: &str| counts[key].as_u64().unwrap();
        assert!(0 < of("surplus") && of("surplus") <= of("completed"), "{counts}");
    }
}

#[test]
fn targets_of_a_parallel_duet_are_loaded_at_the_same_time() {
    let servers = [Server::answering(HELLO), Server::answering(HELLO), Server::answering(HELLO)];
    let others = [servers[1].port, servers[2].port];
    for load in
        [job(servers[0].port), with(open_job(servers[0].port, 2000, 2), "/load/open/arrivals", json!("poisson"))]
    {
        let parallel = with(duet(with(load, "/workers", json!(2)), &others), "/duet/parallel", json!(true));
        // The servers run in this process.
        let output = run_undisturbed(&with(parallel, "/duet/pids", json!(vec![[std::process::id()]; 3])));
        assert_eq!(output.code, Some(0), "{:#?}\n{}", output.events.last(), output.log);
        assert_eq!((&output.events[0]["connections"], &output.events[0]["engine"]["workers"]), (&json!(6), &json!(6)));
        let mut last_start_ns = 0;
        for block in output.of_kind("block") {
            let slices = block["slices"].as_array().unwrap();
            assert_eq!(slices.len(), 6);
            for at_once in slices.chunks(3) {
                let mut targets: Vec<u64> = at_once.iter().map(|slice| slice["target"].as_u64().unwrap()).collect();
                targets.sort_unstable();
                assert_eq!(targets, [0, 1, 2]);
                let start_ns = at_once[0]["start_ns"].as_u64().unwrap();
                assert!(last_start_ns < start_ns);
                last_start_ns = start_ns;
                for slice in at_once {
                    assert_eq!(slice["start_ns"], start_ns);
                    // A slice has the CPU time of its own target only: the others have slices of their own.
                    let target = slice["target"].as_u64().unwrap();
                    let read: Vec<bool> =
                        slice["cpu_ns"].as_array().unwrap().iter().map(|cpu| !cpu.is_null()).collect();
                    assert_eq!(read, [target == 0, target == 1, target == 2]);
                }
            }
        }
        let end = output.events.last().unwrap();
        let counts = |target: usize| &end["targets"][target]["counts"];
        for target in 0..3 {
            assert!(counts(target)["outcomes"]["ok"].as_u64().unwrap() > 0);
            assert_eq!(counts(target)["outcomes"]["ok"], counts(target)["due"]);
            assert!(sum(&output, target as u64, "completed") > 0);
        }
    }
}

#[test]
fn an_open_load_is_due_at_the_same_times_for_each_target() {
    let servers = [Server::answering(HELLO), Server::answering(HELLO)];
    let poisson = with(open_job(servers[0].port, 2000, 4), "/load/open/arrivals", json!("poisson"));
    let in_turn = duet(poisson, &[servers[1].port]);
    let parallel = run_undisturbed(&with(in_turn.clone(), "/duet/parallel", json!(true)));
    let output = run_undisturbed(&in_turn);
    for end in [balanced(&output, 2), parallel.events.last().unwrap()] {
        let due = |target: usize| end["targets"][target]["counts"]["due"].as_u64().unwrap();
        assert!(due(0) > 0);
        assert_eq!(due(0), due(1));
    }
}

#[test]
fn the_clock_of_each_target_is_read_around_every_slice() {
    let servers = [Server::answering(HELLO), Server::answering(HELLO)];
    let job = duet(job(servers[0].port), &[servers[1].port]);
    // The servers run in this process; no process has the other number, which is the highest that a pid can be.
    let output = run(&with(job, "/duet/pids", json!([[std::process::id()], [4_194_304]])));
    balanced(&output, 2);
    let slices: Vec<&Value> = output.of_kind("block").flat_map(|block| block["slices"].as_array().unwrap()).collect();
    assert!(slices.iter().map(|slice| slice["cpu_ns"][0].as_u64().unwrap()).sum::<u64>() > 0);
    assert!(slices.iter().all(|slice| slice["cpu_ns"][1].is_null()));
}

#[test]
fn the_clocks_of_targets_on_another_host_are_read_around_every_slice() {
    let servers = [Server::answering(HELLO), Server::answering(HELLO)];
    let (mut child, clocks) = served(&json!([[std::process::id()], [4_194_304]]));
    let output = run(&with(duet(job(servers[0].port), &[servers[1].port]), "/clocks", clocks));
    balanced(&output, 2);
    let slices: Vec<&Value> = output.of_kind("block").flat_map(|block| block["slices"].as_array().unwrap()).collect();
    assert!(slices.iter().filter_map(|slice| slice["cpu_ns"][0].as_u64()).sum::<u64>() > 0);
    assert!(slices.iter().all(|slice| slice["cpu_ns"][1].is_null()));
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_target_that_does_not_answer_in_time_ends_the_duet() {
    let server = Server::answering(HELLO);
    let silent = Server::start(|mut peer, _| {
        while peer.request()?.is_some() {}
        Ok(())
    });
    let job = with(duet(job(server.port), &[silent.port]), "/drain_ns", json!(1_000_000_000));
    let output = run(&job);
    assert_eq!(output.code, Some(124));
    let end = output.events.last().unwrap();
    assert_eq!((&end["event"], &end["ended"]), (&json!("duet"), &json!("deadline")));
    assert_eq!(end["targets"][0]["failures"], json!([]));
    assert_eq!(end["targets"][1]["failures"][0]["outcome"], "in_flight");
}

/// Users send their first requests in the guard of a slice, which nothing is measured of: what fails of them is a failure, too.
#[test]
fn each_request_of_a_slice_ends_right_or_failed() {
    let server = Server::answering(HELLO);
    let broken = Server::start(|mut peer, _| {
        while peer.request()?.is_some() {
            thread::sleep(Duration::from_millis(5));
            peer.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\nhi\r\n0\r\n\r\n")?;
        }
        Ok(())
    });
    let output = run(&duet(job(server.port), &[broken.port]));
    let end = balanced(&output, 2);
    assert_eq!(end["targets"][1]["failures"][0]["outcome"], "malformed");
    for block in output.of_kind("block") {
        for slice in block["slices"].as_array().unwrap().iter().filter(|slice| slice["target"] == 1) {
            assert!(slice["failed"].as_u64().unwrap() > 0, "{slice}");
        }
    }
}

#[test]
fn a_target_that_cannot_be_reached_is_named() {
    let server = Server::answering(HELLO);
    let gone = Server::answering(HELLO);
    gone.kill();
    let output = run(&duet(job(server.port), &[gone.port]));
    assert_eq!(output.code, Some(1));
    assert!(output.error()["message"].as_str().unwrap().contains(&format!("127.0.0.1:{}", gone.port)));
}

#[test]
fn an_interrupt_ends_it_and_keeps_the_blocks_so_far() {
    let servers = [Server::answering(HELLO), Server::answering(HELLO)];
    let job = with(duet(job(servers[0].port), &[servers[1].port]), "/measure_ns", json!(30_000_000_000_u64));
    let mut engine = Engine::start(&job.to_string());
    engine.wait_until(|event| event["phase"] == "measure");
    thread::sleep(Duration::from_millis(5));
    engine.signal(libc::SIGINT);
    let output = engine.finish();
    assert_eq!(output.code, Some(130));
    let end = output.events.last().unwrap();
    assert_eq!((&end["event"], &end["ended"]), (&json!("duet"), &json!("interrupted")));
    assert!(end["targets"][0]["counts"]["outcomes"]["ok"].as_u64().unwrap() > 0);
}

#[test]
fn a_command_ends_its_warm_up_with_a_block() {
    let servers = [Server::answering(HELLO), Server::answering(HELLO)];
    let job = with(duet(job(servers[0].port), &[servers[1].port]), "/commands", json!(true));
    let job = with(with(job, "/warmup_ns", json!(LONGEST_WARMUP_NS)), "/measure_ns", json!(100_000_000));
    let mut engine = Engine::start_heeding(&format!("{job}\n"), |_| {});
    engine.wait_until(|event| event["index"] == 2);
    engine.say(r#"{"command":"measure"}"#);
    let output = engine.finish();
    let end = balanced(&output, 2);
    assert_eq!(end["ended"], "complete");
    let of = |phase| output.of_kind("block").filter(move |block| block["phase"] == phase);
    assert!(of("warmup").count() >= 3);
    let first = &of("measure").next().unwrap()["slices"][0];
    assert!(first["start_ns"].as_u64().unwrap() < LONGEST_WARMUP_NS);
    assert!(end["targets"][1]["counts"]["outcomes"]["ok"].as_u64().unwrap() > 0);
}

#[test]
fn what_is_wrong_with_it_is_named() {
    let correct = with(duet(job(1), &[2]), "/duet/last_is_first", json!(true));
    let cases = [
        ("/duet/targets", json!([]), "duet.targets"),
        ("/duet/targets/0/port", json!(0), "duet.targets[0].port"),
        ("/duet/longest_slice_ns", json!(SLICE_NS - 1), "duet.longest_slice_ns"),
        ("/duet/slice_ns", json!(999_999), "duet.slice_ns"),
        ("/duet/guard_ns", json!(SLICE_NS), "duet.guard_ns"),
        ("/duet/pids", json!([[1]]), "duet.pids"),
        ("/duet/fewest_blocks", json!(101), "duet.fewest_blocks"),
        ("/duet/longest_ns", json!(3_600_000_000_001_u64), "duet.fewest_blocks"),
        ("/duet/parallel", json!(true), "duet.last_is_first"),
        ("/pids", json!([1]), "pids"),
        ("/count", json!(5), "count"),
        ("/load/closed", json!({"users": 2, "stages": [{"to": 4, "over_ns": 0}]}), "duet"),
    ];
    for (place, value, field) in cases {
        let output = run(&with(correct.clone(), place, value));
        assert_eq!(output.code, Some(2), "{place}");
        let message = output.error()["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(&format!("{field}:")), "{place}: {message}");
    }
}
