//! Which messages of a conversation count, what they hold, and how conversations end.

use std::thread::sleep;
use std::time::Duration;

use crate::support::output::histogram;
use crate::support::server::Server;
use crate::support::{Outcome, complete, job, run, with};
use serde_json::{Value, json};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const GAP: Duration = Duration::from_millis(10);
const ROLE: &str = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
const TOKEN: &str = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7}}"#;

fn chunk(event: &str) -> String {
    format!("{:x}\r\n{event}\r\n", event.len())
}

/// A server that sends each of these messages after the gap, with a comment before the first. `ends`: and then the end.
fn talking(messages: &'static [&'static str], ends: bool) -> Server {
    Server::start(move |mut peer, _| {
        while peer.request()?.is_some() {
            peer.say(HEAD)?;
            peer.say(&chunk(": ping\n\n"))?;
            for message in messages {
                sleep(GAP);
                peer.say(&chunk(&format!(
                    "event: {}\ndata: {message}\n\n",
                    if *message == TOKEN { "token" } else { "other" }
                )))?;
            }
            if !ends {
                peer.stall();
                return Ok(());
            }
            peer.say("0\r\n\r\n")?;
        }
        Ok(())
    })
}

/// One user who has so many conversations of this kind, however long a busy machine takes for them.
fn conversing(port: u16, conversations: u64, stream: Value) -> Value {
    let job = with(with(job(port), "/load", json!({"closed": {"users": 1}})), "/warmup_ns", json!(0));
    let job = with(with(job, "/measure_ns", json!(20_000_000_000_u64)), "/drain_ns", json!(10_000_000_000_u64));
    with(with(job, "/count", json!(conversations)), "/requests/0/stream", stream)
}

fn tokens(good: &Value) -> Value {
    json!({
        "events": "sse", "message": {"json": ["/choices/0/delta/content"]},
        "amount": {"total": ["/usage/completion_tokens"]}, "last": {"data": ["[DONE]"]}, "good": good,
    })
}

/// What was counted: messages of all conversations that began, and, of those but the last, which is issued as the measurement
/// ends, other messages and amounts; then how many conversations ended early, and were good.
fn counted(result: &Outcome) -> [u64; 5] {
    ["counted", "aside", "amount", "early", "good"].map(|name| result.event["streams"][name].as_u64().unwrap())
}

fn in_ms(result: &Outcome, name: &str) -> (u64, f64) {
    let times = histogram(&result.event["streams"], name);
    (times.count(), times.quantile_ns(0.5) as f64 / 1e6)
}

#[test]
fn the_messages_that_count_are_timed_and_the_others_counted_apart() {
    let server = talking(&[ROLE, TOKEN, TOKEN, TOKEN, USAGE, "[DONE]"], true);
    let result = complete(&conversing(server.port, 4, tokens(&json!({"first_message_ns": 10_000_000_000_u64}))));
    result.are_all("ok");
    // The comment, the role, the usage and the end.
    assert_eq!(counted(&result), [12, 12, 21, 0, 4]);
    // The role came one gap before the first token, and is none.
    let (first, first_ms) = in_ms(&result, "first_event");
    assert!(first == 4 && first_ms > 19.0, "{first} {first_ms}");
    assert_eq!((in_ms(&result, "gaps").0, in_ms(&result, "slowest_gap").0, in_ms(&result, "per_message").0), (8, 4, 4));
    assert!(in_ms(&result, "per_message").1 > 5.0);
}

#[test]
fn a_conversation_is_good_if_it_is_below_all_its_limits() {
    let server = talking(&[TOKEN, TOKEN, "[DONE]"], true);
    for (good, many) in [
        (json!({"first_message_ns": 9_000_000}), 0),
        (json!({"gap_ns": 5_000_000}), 0),
        (json!({"per_message_ns": 5_000_000}), 0),
        (json!({"response_ns": 29_000_000}), 0),
        (json!({"response_ns": 9_000_000_000_u64, "gap_ns": 9_000_000_000_u64}), 2),
    ] {
        let result = complete(&conversing(server.port, 2, tokens(&good)));
        assert_eq!(counted(&result)[4], many);
    }
}

#[test]
fn a_conversation_without_its_last_message_ended_early() {
    let server = talking(&[TOKEN, TOKEN], true);
    let result = complete(&conversing(server.port, 2, tokens(&json!({}))));
    result.are_all("ok");
    assert_eq!(counted(&result), [4, 1, 0, 2, 0]);
}

#[test]
fn messages_of_which_none_counts_are_wrong_and_the_first_is_shown() {
    let server = talking(&[ROLE, USAGE], true);
    let result = complete(&conversing(server.port, 2, tokens(&json!({}))));
    result.are_all("unexpected_body");
    let reason = result.event["failures"][0]["reason"].as_str().unwrap();
    let expected = r#"none of 3 messages had a value at "/choices/0/delta/content"; the first was {"choices""#;
    assert!(reason.starts_with(expected), "{reason}");
    // No message came in all this time.
    assert_eq!(in_ms(&result, "first_event").0, 2);
    let endless = talking(&[ROLE], false);
    let job = with(with(conversing(endless.port, 1, tokens(&json!({}))), "/drain_ns", json!(0)), "/count", json!(null));
    let job = with(job, "/measure_ns", json!(300_000_000));
    let result = complete(&with(job, "/timeout_ns", json!(80_000_000)));
    let reason = result.event["failures"][0]["reason"].as_str().unwrap();
    let expected = r#"after 0 events; none of 2 messages had a value at "/choices/0/delta/content""#;
    assert!(reason.ends_with(expected), "{reason}");
}

#[test]
fn a_message_that_reports_an_error_makes_its_conversation_wrong() {
    let server = talking(&[TOKEN, r#"{"error":{"message":"out of memory"}}"#, "[DONE]"], true);
    let job = conversing(server.port, 2, tokens(&json!({})));
    let errors = json!({"json": ["/error"], "event": ["error"]});
    let result = complete(&with(job, "/requests/0/stream/errors", errors));
    result.are_all("unexpected_body");
    let reason = result.event["failures"][0]["reason"].as_str().unwrap();
    assert_eq!(reason, r#"a message reports an error: {"error":{"message":"out of memory"}}"#);
}

/// Its first message has its age, as its response has.
#[test]
fn a_conversation_that_never_begins_has_waited_for_its_first_message() {
    let busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy";
    let silent = Server::start(|mut peer, _| {
        peer.request()?;
        peer.stall();
        Ok(())
    });
    for (server, outcome) in [(Server::answering(busy), "unexpected_status"), (silent, "timeout")] {
        let job = with(conversing(server.port, 2, tokens(&json!({}))), "/timeout_ns", json!(50_000_000));
        let result = complete(&job);
        result.are_all(outcome);
        assert_eq!(result.event["streams"]["begun"], 0);
        let (first, response) =
            (histogram(&result.event["streams"], "first_event"), histogram(&result.event, "response"));
        assert_eq!((first.count(), first.max_ns()), (2, response.max_ns()));
    }
}

#[test]
fn json_in_place_of_a_stream_is_shown() {
    let server = Server::answering(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 19\r\n\r\n{\"error\": \"no key\"}",
    );
    let result = complete(&conversing(server.port, 2, tokens(&json!({}))));
    let reason = result.event["failures"][0]["reason"].as_str().unwrap();
    assert!(reason.ends_with(r#"; it began with {"error": "no key"}"#), "{reason}");
}

#[test]
fn messages_count_by_type_and_by_expression_and_hold_their_bytes() {
    let server = talking(&[ROLE, TOKEN, TOKEN, "[DONE]"], true);
    let rules = [json!({"event": ["token"]}), json!({"regex": r#""content":"[^"]"#})];
    for message in rules {
        let stream = json!({"events": "sse", "message": message, "amount": {"bytes": true}});
        let result = complete(&conversing(server.port, 2, stream));
        result.are_all("ok");
        assert_eq!(counted(&result), [4, 3, 2 * TOKEN.len() as u64, 0, 0]);
    }
    let stream = json!({"events": "sse", "amount": {"each": ["/usage/completion_tokens"]}, "until": 2});
    let result = complete(&conversing(talking(&[USAGE, USAGE, USAGE], false).port, 2, stream));
    assert_eq!(counted(&result)[..3], [4, 1, 14]);
}

#[test]
fn wrong_rules_are_refused_by_name() {
    for (key, rule, field) in [
        ("message", json!({"json": ["x"]}), "message.json[0]"),
        ("message", json!({"regex": "("}), "message.regex"),
        ("message", json!({"xml": 1}), "message"),
        ("amount", json!({"total": ["x"]}), "amount.total[0]"),
        ("good", json!({"p99": 1}), "good"),
    ] {
        let output = run(&conversing(1, 1, json!({"events": "sse", key: rule})));
        let message = output.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!("requests[0].stream.{field}")), "{message}");
    }
}
