//! `redline-engine load`: a quick look from the command line.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::server::Server;

fn quick(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_redline-engine")).arg("load").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A server with a known answer; it is killed when this is dropped.
struct Oracle(Child, String);

impl Oracle {
    fn start(mode: &[&str]) -> Self {
        let mut oracle =
            Command::new(env!("CARGO_BIN_EXE_redline-oracle")).args(mode).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(oracle.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self(oracle, line.split_whitespace().last().unwrap().to_owned())
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The number before this word.
fn number_before(shown: &str, word: &str) -> u64 {
    let before = shown.split(word).next().unwrap().trim_end();
    before.rsplit([' ', '\n']).next().unwrap().replace(',', "").parse().unwrap()
}

#[test]
fn every_answer_of_a_fixed_delay_takes_at_least_that() {
    let oracle = Oracle::start(&["fixed", "--delay", "20ms"]);
    let done = quick(&[&oracle.1, "-c", "4", "-d", "60s", "--count", "1100", "-t", "2"]);
    let shown = text(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{shown}{}", text(&done.stderr));
    assert_eq!((number_before(&shown, " ok"), number_before(&shown, " measured")), (1100, 1100), "{shown}");
    let p50 = shown.lines().next().unwrap().split("p50 ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(p50.parse::<f64>().unwrap() >= 20.0 && shown.starts_with("throughput  "), "{shown}");
    assert!(shown.lines().count() <= 13 && shown.contains("closed, 4 users, 1,100 requests"), "{shown}");
}

#[test]
fn an_open_load_shows_lateness_too() {
    let oracle = Oracle::start(&["null"]);
    let done = quick(&[&oracle.1, "-R", "200", "--arrivals", "uniform", "-d", "1s", "--warmup", "100ms"]);
    let shown = text(&done.stdout);
    // A busy machine may make the engine late, which is said, and is exit code 1.
    assert!(shown.contains("engine lateness") && shown.contains("open, 200 /s uniform, 64 connections"), "{shown}");
    assert_eq!(done.status.code(), Some(shown.contains("invalid: ").into()), "{shown}");
}

#[test]
fn a_wrong_answer_before_the_load_is_the_end() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |mut peer, _| {
        while peer.request()?.is_some() {
            assert_eq!(asked.fetch_add(1, Ordering::Relaxed), 0, "it was loaded");
            peer.say("HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n")?;
        }
        Ok(())
    });
    let done = quick(&[&format!("http://127.0.0.1:{}/a", server.port), "-d", "1s"]);
    let said = text(&done.stderr);
    assert_eq!((done.status.code(), done.stdout.len()), (Some(1), 0), "{said}");
    assert!(said.contains("does not answer as expected: GET /a: status 302 in place of 200"), "{said}");
    assert!(said.contains("--status"), "{said}");
}

#[test]
fn what_nobody_listens_for_is_said_and_wrong_words_are_refused() {
    let nobody = quick(&["http://127.0.0.1:1/", "-d", "1s"]);
    assert_eq!(nobody.status.code(), Some(1));
    let said = text(&nobody.stderr);
    assert!(said.contains("nothing listens at 127.0.0.1:1: connection refused\n"), "{said}");
    assert!(!said.contains("--status"), "no status came: {said}");
    let wrong = quick(&["http://127.0.0.1:1/", "-d", "1"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("-d 1: not a duration"), "{}", text(&wrong.stderr));
    let help = quick(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).starts_with("Usage: redline-engine load"));
}

#[test]
fn an_interrupted_load_shows_what_was_measured() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let server = Server::start(move |mut peer, _| {
        while peer.request()?.is_some() {
            counted.fetch_add(1, Ordering::Relaxed);
            peer.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        }
        Ok(())
    });
    let running = Command::new(env!("CARGO_BIN_EXE_redline-engine"))
        .args(["load", &format!("127.0.0.1:{}", server.port), "-c", "2", "-d", "60s", "--warmup", "0s"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    while asked.load(Ordering::Relaxed) < 50 {
        thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: no memory is passed; the process is our child and has not been waited for.
    assert_eq!(unsafe { libc::kill(running.id().cast_signed(), libc::SIGTERM) }, 0);
    let done = running.wait_with_output().unwrap();
    let shown = text(&done.stdout);
    assert_eq!(done.status.code(), Some(130), "{shown}");
    assert!(shown.contains("(interrupted)") && number_before(&shown, " ok") > 0, "{shown}");
}
