//! Loads through an HTTP proxy, which opens a tunnel for each connection.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::server::{HELLO, Server};
use crate::support::{complete, job, run, with};

const OPEN: &str = "HTTP/1.1 200 Connection established\r\nVia: 1.1 between\r\n\r\n";
/// Nobody listens there: only the proxy, which answers for the target itself, is reached.
const TARGET: u16 = 1;

/// A load through the proxy at this port.
fn through(port: u16, authorization: Option<&str>) -> Value {
    let proxy = json!({"host": "127.0.0.1", "port": port, "authorization": authorization});
    with(job(TARGET), "/target/proxy", proxy)
}

/// A proxy that gives this answer to CONNECT, and answers what comes through the tunnel itself.
fn proxy(answer: &'static str, after: Duration) -> Server {
    Server::start(move |mut peer, _| {
        let Some((first, _)) = peer.request()? else { return Ok(()) };
        assert_eq!(first, "CONNECT 127.0.0.1:1 HTTP/1.1\r\n");
        thread::sleep(after);
        peer.say(answer)?;
        while peer.request()?.is_some() {
            peer.say(HELLO)?;
        }
        Ok(())
    })
}

#[test]
fn requests_pass_the_tunnel_of_a_proxy() {
    let server = proxy(OPEN, Duration::ZERO);
    let result = complete(&through(server.port, None));
    result.are_all("ok");
    assert!(result.total() > 100);
}

#[test]
fn a_tunnel_is_opened_for_each_connection_and_the_time_for_it_is_waited() {
    let server = proxy(OPEN, Duration::from_millis(50));
    let load = json!({"closed": {"users": 1, "requests_per_connection": 1}});
    let result = complete(&with(through(server.port, None), "/load", load));
    result.are_all("ok");
    assert!(server.accepted.load(SeqCst) as u64 >= result.total());
    assert!(result.histogram("response").quantile_ns(0.5) >= 45_000_000, "the tunnel is part of the wait");
    assert!(result.histogram("service").quantile_ns(0.5) < 45_000_000, "and not of the request");
}

#[test]
fn the_proxy_is_told_who_asks_and_no_server_is() {
    let told = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&told);
    let server = Server::start(move |mut peer, _| {
        let Some(connect) = peer.whole_request()? else { return Ok(()) };
        counted.fetch_add(usize::from(connect.header("proxy-authorization") == Some("Basic bWU6c2VjcmV0")), SeqCst);
        peer.say(OPEN)?;
        while let Some(request) = peer.whole_request()? {
            assert_eq!(request.header("proxy-authorization"), None);
            peer.say(HELLO)?;
        }
        Ok(())
    });
    complete(&through(server.port, Some("Basic bWU6c2VjcmV0"))).are_all("ok");
    assert_eq!(told.load(SeqCst), server.accepted.load(SeqCst));
}

#[test]
fn a_proxy_that_opens_no_tunnel_is_an_error_with_its_answer() {
    for (answer, says) in [
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "the proxy answered 407 Proxy Authentication Required"),
        ("SSH-2.0-OpenSSH\r\n", "the proxy does not answer in HTTP"),
        ("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n", "it spoke before a request came"),
    ] {
        let output = run(&through(proxy(answer, Duration::ZERO).port, None));
        assert_eq!((output.code, &output.error()["kind"]), (Some(1), &json!("connect")));
        let message = output.error()["message"].as_str().unwrap();
        assert!(
            message.starts_with("not one connection to the proxy 127.0.0.1:") && message.contains(says),
            "{message}"
        );
    }
}

#[test]
fn a_proxy_that_refuses_later_fails_requests_with_its_reason() {
    let server = Server::start(move |mut peer, number| {
        peer.request()?;
        if number >= 20 {
            return peer.say("HTTP/1.1 502 Bad Gateway\r\n\r\n");
        }
        peer.say(OPEN)?;
        peer.request()?;
        peer.say(HELLO)
    });
    let load =
        json!({"open": {"rate_per_s": 100, "arrivals": "uniform", "connections": 2, "requests_per_connection": 1}});
    let result = complete(&with(through(server.port, None), "/load", load));
    assert!(result.outcome("ok") > 0 && result.outcome("connect") > 0);
    assert_eq!(result.reason("connect"), "the proxy answered 502 Bad Gateway");
}

#[test]
fn a_tunnel_leads_to_one_place() {
    for (field, value) in [
        ("/target/connect", json!([{"unix": "/run/app.sock"}])),
        ("/target/addresses", json!("all")),
        ("/target/connect", json!([{"tcp": {"host": "a", "port": 1}}, {"tcp": {"host": "b", "port": 1}}])),
    ] {
        let output = run(&with(through(1, None), field, value));
        assert!(output.error()["message"].as_str().unwrap().contains("a tunnel leads to a single host and port"));
    }
}
