//! The faults of answers over real sockets.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::rig::{Oracle, bodies};

const GET: &[u8] = b"GET /name HTTP/1.1\r\n\r\n";

fn ask(oracle: &Oracle) -> TcpStream {
    let mut stream = oracle.connect();
    stream.write_all(GET).expect("it reads");
    stream
}

#[test]
fn a_first_byte_is_late_and_so_is_the_last_of_a_body() {
    let oracle = Oracle::start(&["null", "--first-byte-after", "60ms", "--body-over", "100ms", "--body-bytes", "500"]);
    let began = Instant::now();
    let mut stream = ask(&oracle);
    let mut first = [0; 1];
    stream.read_exact(&mut first).expect("a byte comes");
    assert!(began.elapsed() >= Duration::from_millis(60));
    let mut text = first.to_vec();
    while !text.ends_with(&[b'x'; 500]) {
        let mut more = [0; 1000];
        let length = stream.read(&mut more).expect("bytes come");
        assert!(length > 0);
        text.extend_from_slice(&more[..length]);
    }
    assert!(began.elapsed() >= Duration::from_millis(160));
    let (code, rest) = oracle.terminate();
    assert_eq!(code, Some(0));
    assert!(rest.starts_with(r#"{"answered":1,"#), "{rest}");
}

#[test]
fn pipelined_answers_keep_their_order_whatever_makes_them_late() {
    for arguments in [
        &["fixed", "--delay", "10ms", "--body-over", "5ms"][..],
        &["lognormal", "--median", "1ms", "--sigma", "1", "--servers", "8"],
        &["bimodal", "--fast", "0s", "--slow", "20ms", "--share", "0.3", "--servers", "5"],
        &["deterministic", "--service", "1ms", "--bytewise"],
        &["null", "--bytewise"],
    ] {
        let oracle = Oracle::start(arguments);
        let mut stream = oracle.connect();
        let names: Vec<String> = (0..20).map(|index| format!("name{index}")).collect();
        let text: Vec<String> = names.iter().map(|name| format!("GET /{name} HTTP/1.1\r\n\r\n")).collect();
        stream.write_all(text.concat().as_bytes()).expect("it reads");
        assert_eq!(bodies(stream, 20), names, "{arguments:?}");
    }
}

#[test]
fn every_byte_is_written_alone() {
    let oracle = Oracle::start(&["null", "--bytewise", "--body-bytes", "100"]);
    let stream = ask(&oracle);
    assert_eq!(bodies(stream.try_clone().expect("a socket can be cloned"), 1), ["x".repeat(100)]);
    // The kernel may join bytes that it cannot send yet, but an answer that is written at a time is always a single segment.
    assert!(data_segments_received(&stream) > 1);
    let oracle = Oracle::start(&["null", "--body-bytes", "100"]);
    let stream = ask(&oracle);
    bodies(stream.try_clone().expect("a socket can be cloned"), 1);
    assert_eq!(data_segments_received(&stream), 1);
}

/// `tcpi_data_segs_in` of linux/tcp.h.
fn data_segments_received(stream: &TcpStream) -> u32 {
    const AT: usize = 152;
    let mut info = [0_u8; AT + 4];
    let mut length = info.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    assert_eq!((result, length as usize), (0, info.len()));
    u32::from_ne_bytes(info[AT..].try_into().expect("four bytes"))
}

#[test]
fn connections_past_the_limit_are_closed_at_once() {
    let oracle = Oracle::start(&["null", "--connections-at-most", "2", "--threads", "2"]);
    let (first, second) = (ask(&oracle), ask(&oracle));
    assert_eq!(bodies(first.try_clone().expect("a socket can be cloned"), 1), ["name"]);
    assert_eq!(bodies(second.try_clone().expect("a socket can be cloned"), 1), ["name"]);
    let mut third = oracle.connect();
    assert_eq!(third.read(&mut [0; 1]).expect("it ends"), 0);
    drop(first);
    // Its place is free once the oracle has seen its end.
    for _ in 0..500 {
        let mut next = oracle.connect();
        let mut byte = [0; 1];
        if next.write_all(GET).is_ok() && matches!(next.read(&mut byte), Ok(1)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no place became free");
}

#[test]
fn some_answers_are_resets_the_same_for_the_same_seed() {
    let outcomes = |seed: &str| -> Vec<bool> {
        let oracle = Oracle::start(&["fixed", "--delay", "1ms", "--reset-share", "0.4", "--seed", seed]);
        let answered = || match ask(&oracle).read(&mut [0; 1]) {
            Ok(1) => false,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => true,
            other => panic!("neither an answer nor a reset: {other:?}"),
        };
        (0..40).map(|_| answered()).collect()
    };
    let first = outcomes("1");
    assert!(first.contains(&true) && first.contains(&false));
    assert_eq!(first, outcomes("1"));
    assert_ne!(first, outcomes("2"));
}

#[test]
fn the_clock_is_sent_with_its_skew() {
    let now_ms = || SystemTime::now().duration_since(UNIX_EPOCH).expect("it is past 1970").as_millis();
    let oracle = Oracle::start(&["null", "--server-time", "ms", "--skew", "-60s", "--server-time-json"]);
    let before_ms = now_ms();
    let body = bodies(ask(&oracle), 1).remove(0);
    let number = body.strip_prefix(r#"{"now":"#).and_then(|rest| rest.strip_suffix('}')).expect("an object");
    let server_ms = number.parse::<u128>().expect("a number") + 60_000;
    assert!((before_ms..=now_ms()).contains(&server_ms));
}

#[test]
fn large_bodies_are_taken_and_given() {
    let oracle = Oracle::start(&["fixed", "--delay", "5ms", "--body-bytes", "3000000"]);
    let mut stream = oracle.connect();
    let reader = stream.try_clone().expect("a socket can be cloned");
    let asking = std::thread::spawn(move || {
        for _ in 0..3 {
            stream.write_all(b"POST /b HTTP/1.1\r\nContent-Length: 5000000\r\n\r\n").expect("it reads");
            stream.write_all(&vec![b'y'; 5_000_000]).expect("it reads");
            stream.write_all(&GET.repeat(2)).expect("it reads");
        }
        stream.shutdown(std::net::Shutdown::Write).expect("half of it closes");
    });
    let answers = bodies(reader, 9);
    asking.join().expect("all was asked");
    assert!(answers.iter().all(|answer| answer.len() == 3_000_000));
}
