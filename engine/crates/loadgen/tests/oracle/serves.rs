//! The binary over real sockets: its answers, their least times, and its exit.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::rig::{BINARY, Oracle, bodies};

fn refused(arguments: &[&str]) -> Output {
    Command::new(BINARY).args(arguments).output().expect("it runs")
}

#[test]
fn null_answers_pipelined_split_and_large_requests_on_all_threads() {
    let oracle = Oracle::start(&["null", "--threads", "2"]);
    for _ in 0..8 {
        let mut stream = oracle.connect();
        let mut text = b"GET /path0 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3);
        text.extend_from_slice(b"POST /bytes0 HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n");
        text.extend(std::iter::repeat_n(b'\r', 5_000_000));
        stream.write_all(&text).expect("it reads");
        for byte in b"GET /last HTTP/1.1\r\nHost: a\r\n\r\n" {
            stream.write_all(&[*byte]).expect("it reads");
        }
        assert_eq!(bodies(stream, 5), ["path0", "path0", "path0", "bytes0 5000000", "last"]);
    }
    assert_eq!(oracle.terminate(), (Some(0), String::new()));
}

#[test]
fn a_peer_that_ends_its_side_is_still_answered() {
    let oracle = Oracle::start(&["fixed", "--delay", "20ms"]);
    let mut stream = oracle.connect();
    stream.write_all(b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n").expect("it reads");
    stream.shutdown(std::net::Shutdown::Write).expect("half of it closes");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it closes after its answers");
    assert_eq!(text.matches("200 OK").count(), 2);
    assert!(text.ends_with("\r\n\r\nb"));
}

#[test]
fn no_answer_is_early_and_each_is_counted() {
    let oracle = Oracle::start(&["fixed", "--delay", "30ms"]);
    let began = Instant::now();
    let mut stream = oracle.connect();
    stream.write_all(&b"GET /a HTTP/1.1\r\n\r\n".repeat(10)).expect("it reads");
    assert_eq!(bodies(stream, 10), ["a"; 10]);
    assert!(began.elapsed() >= Duration::from_millis(30));
    let (code, rest) = oracle.terminate();
    assert_eq!(code, Some(0));
    assert!(rest.starts_with(r#"{"answered":10,"late_p50_ns":"#), "{rest}");
}

#[test]
fn one_worker_serves_in_turn() {
    // 20 at the same time: the last answer arrives after the sum of 20 services.
    let oracle = Oracle::start(&["exponential", "--rate", "400", "--seed", "5"]);
    let began = Instant::now();
    let mut stream = oracle.connect();
    stream.write_all(&b"GET /a HTTP/1.1\r\n\r\n".repeat(20)).expect("it reads");
    assert_eq!(bodies(stream, 20).len(), 20);
    // The mean sum is 50 ms; its 1e-6 quantile, of a gamma distribution of shape 20, lies above 12 ms.
    assert!(began.elapsed() >= Duration::from_millis(12));
}

#[test]
fn what_arrives_in_a_stall_is_held_to_its_end() {
    const STALL: Duration = Duration::from_millis(500);
    // The stall begins after `began`. A request that was written within it, counted from there, arrived in the stall; if
    // starting took longer than that, nothing was tested.
    for _ in 0..20 {
        let began = Instant::now();
        let oracle = Oracle::start(&["stall", "--every", "600s", "--for", "500ms"]);
        let mut stream = oracle.connect();
        stream.write_all(b"GET /a HTTP/1.1\r\n\r\n").expect("it reads");
        let written = began.elapsed();
        assert_eq!(bodies(stream.try_clone().expect("a socket can be cloned"), 1), ["a"]);
        if written >= STALL {
            continue;
        }
        assert!(began.elapsed() >= STALL);
        // After the stall no answer is held back.
        stream.write_all(b"GET /b HTTP/1.1\r\n\r\n").expect("it reads");
        assert_eq!(bodies(stream, 1), ["b"]);
        assert!(began.elapsed() < Duration::from_secs(600));
        return;
    }
    panic!("no request could be written within {STALL:?} of the start");
}

#[test]
fn without_descriptors_connections_wait_for_those_that_end() {
    let limited = format!("ulimit -n 30 && exec {BINARY} null");
    let oracle = Oracle::run(Command::new("sh").args(["-c", &limited]).stderr(Stdio::null()));
    let mut streams: Vec<TcpStream> = (0..60).map(|_| oracle.connect()).collect();
    for stream in &mut streams {
        stream.write_all(b"GET /a HTTP/1.1\r\n\r\n").expect("the kernel takes it");
    }
    // In the order of connecting: a connection that ends makes room for one that waits.
    for stream in streams {
        assert_eq!(bodies(stream, 1), ["a"]);
    }
}

#[test]
fn bad_arguments_are_one_message_with_a_hint() {
    let output = refused(&["fixed"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8(output.stderr).expect("text");
    assert_eq!(errors, "fixed needs --delay D\n  hint: redline-oracle --help\n");
}

#[test]
fn a_port_in_use_is_an_error_with_one_thread_or_many() {
    let oracle = Oracle::start(&["null", "--threads", "2"]);
    let port = oracle.address.rsplit(':').next().expect("a port");
    for threads in ["1", "2"] {
        let output = refused(&["null", "--port", port, "--threads", threads]);
        assert_eq!(output.status.code(), Some(1));
        let errors = String::from_utf8(output.stderr).expect("text");
        assert!(errors.contains("cannot listen on") && errors.contains("hint:"), "{errors}");
    }
}
