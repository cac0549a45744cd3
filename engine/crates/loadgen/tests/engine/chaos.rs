//! Whatever a server does, in whatever order, every request that fell due is counted once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::server::{HELLO, Server};
use crate::support::{Engine, job, open_job, with};
use serde_json::{Value, json};

/// A server whose answers are drawn from all that can go wrong.
fn chaos(seed: u64) -> Server {
    let state = AtomicU64::new(seed);
    // SplitMix64 (Steele, Lea and Flood 2014).
    let draw = move || {
        let mut z = state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    Server::start(move |mut peer, _| {
        loop {
            let kind = draw() % 16;
            if kind == 0 {
                peer.begin_of_request()?;
                return peer.say("HTTP/1.1 200 OK\r\nContent-Le");
            }
            if peer.request()?.is_none() {
                return Ok(());
            }
            match kind {
                1 => return Ok(()),
                2 => return peer.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"),
                3 => return peer.say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"),
                4 => peer.say("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")?,
                5 => peer.say("nonsense\r\n\r\n")?,
                6 => peer.say("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhell")?,
                7 => {
                    peer.stall();
                    return Ok(());
                }
                8 => {
                    thread::sleep(Duration::from_millis(draw() % 30));
                    peer.say(HELLO)?;
                }
                9 => {
                    peer.say(&HELLO[..20])?;
                    thread::sleep(Duration::from_millis(1));
                    peer.say(&HELLO[20..])?;
                }
                // The server hangs up after this answer without having announced it.
                10 => return peer.say(HELLO),
                _ => peer.say(HELLO)?,
            }
        }
    })
}

fn survives(job: &Value, interrupt: bool) {
    let job = if interrupt { with(job.clone(), "/measure_ns", json!(50_000_000_000_u64)) } else { job.clone() };
    let mut engine = Engine::start(&job.to_string());
    if interrupt {
        // In the middle of the load, when some requests of the measurement have ended well, and some not.
        let (mut ok, mut other) = (0, 0);
        engine.wait_until(|event| {
            if event["phase"] == "measure" {
                let outcomes = event["counts"]["outcomes"].as_object().unwrap();
                ok += outcomes["ok"].as_u64().unwrap();
                other +=
                    outcomes.iter().filter(|(kind, _)| *kind != "ok").map(|(_, n)| n.as_u64().unwrap()).sum::<u64>();
            }
            ok > 0 && other > 0
        });
        engine.signal(libc::SIGINT);
    }
    let output = engine.finish();
    assert_eq!(output.code, Some(if interrupt { 130 } else { 0 }));
    let result = output.result();
    assert!(result.outcome("ok") > 0);
    assert!(result.total() > result.outcome("ok"));
}

#[test]
fn every_request_is_counted_once_whatever_happens() {
    for seed in 1..5 {
        let server = chaos(seed);
        let closed = with(job(server.port), "/load/closed/users", json!(12));
        for (i, load) in [closed, open_job(server.port, 800, 12)].into_iter().enumerate() {
            let job = with(with(load, "/timeout_ns", json!(40_000_000)), "/workers", json!(1 + seed % 3));
            let job = with(with(job, "/seed", json!(seed)), "/requests/0/expect/body_length", json!(5));
            survives(&with(job, "/drain_ns", json!(100_000_000)), (seed + i as u64).is_multiple_of(2));
        }
    }
}
