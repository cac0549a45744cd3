//! Journeys whose steps are conversations: the text of one is sent by the next.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::journeys::walked;
use crate::support::server::Server;
use crate::support::{Outcome, complete, job, run, with};

const POINTER: &str = "/delta/text";
const LONGEST: usize = 1024 * 1024;

/// What was said on this server, and what was sent to `/again`.
#[derive(Clone, Default)]
struct Heard {
    said: Arc<Mutex<Vec<String>>>,
    again: Arc<Mutex<Vec<String>>>,
}

fn chunk(data: &str) -> String {
    let event = format!("data: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len())
}

fn token(text: &str) -> String {
    chunk(&json!({"delta": {"text": text}}).to_string())
}

/// A server that answers with these parts of a text, of which the first is numbered, after a role and before a number of tokens.
/// `ends`: and with the end. All of it comes at once.
fn talking(parts: &'static [&'static str], ends: bool) -> (Server, Heard) {
    let heard = Heard::default();
    let known = heard.clone();
    let server = Server::start(move |mut peer, _| {
        while let Some(request) = peer.whole_request()? {
            if request.path == "/again" {
                known.again.lock().unwrap().push(String::from_utf8_lossy(&request.body).into());
                peer.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
                continue;
            }
            let mut said = known.said.lock().unwrap();
            let first = format!("{}: ", said.len());
            said.push(first.clone() + &parts.concat());
            drop(said);
            let tokens: String = [&*first].iter().chain(parts).map(|part| token(part)).collect();
            let (role, number) = (chunk(r#"{"delta": {"text": null}}"#), chunk(r#"{"tokens": 3}"#));
            let opening = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Turn: 1\r\nSet-Cookie: sid=7\r\n\
                        Transfer-Encoding: chunked\r\n\r\n";
            peer.say(&format!("{opening}{role}{tokens}{number}"))?;
            if !ends {
                peer.stall();
                return Ok(());
            }
            peer.say("0\r\n\r\n")?;
        }
        Ok(())
    });
    (server, heard)
}

fn asking(stream: &Value, take: &Value) -> (Value, Value) {
    let requests = json!([
        {"method": "POST", "path": "/chat", "body_text": "{}", "expect": {"status": 200}, "stream": stream},
        {"method": "POST", "path": "/again", "expect": {"status": 200}, "body_escape": "json",
         "headers": [["X-Turn", "{take:turn}"]],
         "body_text": r#"{"messages": ["{take:answer}"]}"#},
    ]);
    let turn = json!({"name": "turn", "from": {"header": "X-Turn"}});
    let steps = json!([{"request": 0, "take": [{"name": "answer", "from": take}, turn]}, {"request": 1}]);
    (requests, json!({"steps": steps, "cookies": true}))
}

/// One user who talks twice, so many times.
fn twice(port: u16, journeys: u64, stream: &Value, take: &Value) -> Value {
    let (requests, journey) = asking(stream, take);
    let job = with(with(job(port), "/requests", requests), "/journey", journey);
    let job = with(with(job, "/load", json!({"closed": {"users": 1}})), "/warmup_ns", json!(0));
    with(with(job, "/measure_ns", json!(20_000_000_000_u64)), "/count", json!(journeys))
}

fn text() -> Value {
    json!({"text": POINTER})
}

fn sent(heard: &Heard) -> Vec<String> {
    let bodies = heard.again.lock().unwrap();
    bodies
        .iter()
        .map(|body| serde_json::from_str::<Value>(body).unwrap()["messages"][0].as_str().unwrap().into())
        .collect()
}

fn reason(result: &Outcome) -> String {
    result.event["failures"][0]["reason"].as_str().unwrap().to_owned()
}

#[test]
fn the_next_step_sends_all_of_the_text() {
    for (stream, ends) in [
        (json!({"events": "sse"}), true),
        (json!({"events": "sse", "message": {"json": [POINTER]}}), true),
        // The last but one ends it, and the tokens after it come in the same piece.
        (json!({"events": "sse", "message": {"json": [POINTER]}, "until": 5}), false),
        (json!({"events": "sse", "for_ns": 60_000_000}), false),
    ] {
        let (server, heard) = talking(&["one ", "\"two\"\n", "th\\ree", " é \u{1f642}\u{1}"], ends);
        let result = complete(&twice(server.port, 5, &stream, &text()));
        result.are_all("ok");
        assert_eq!(result.event["journeys"]["completed"], 5, "{:#}", result.event["failures"]);
        let said = heard.said.lock().unwrap().clone();
        assert_eq!((said.len(), said), (5, sent(&heard)));
    }
}

#[test]
fn messages_after_the_last_that_counts_are_no_part_of_the_text() {
    let (server, heard) = talking(&["b", "c", "d"], false);
    let stream = json!({"events": "sse", "message": {"json": [POINTER]}, "until": 2});
    complete(&twice(server.port, 2, &stream, &text())).are_all("ok");
    assert_eq!(sent(&heard), ["0: b", "1: b"]);
}

#[test]
fn a_text_that_is_not_there_ends_the_journey_and_the_first_message_is_shown() {
    let (server, heard) = talking(&["a"], true);
    let result = complete(&twice(server.port, 2, &json!({"events": "sse"}), &json!({"text": "/delta/none"})));
    assert_eq!(result.outcome("unexpected_body"), 2);
    let expected =
        r#"none of 4 messages had a text at "/delta/none" for `answer`; the first was {"delta": {"text": null}}"#;
    assert_eq!(reason(&result), expected);
    assert!(sent(&heard).is_empty());
    // A number is no text.
    let result = complete(&twice(server.port, 1, &json!({"events": "sse"}), &json!({"text": "/tokens"})));
    assert!(reason(&result).starts_with(r#"none of 4 messages had a text at "/tokens""#), "{}", reason(&result));
}

#[test]
fn a_text_is_bounded() {
    static PART: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "x".repeat(LONGEST / 2 - 2));
    static TWO: std::sync::LazyLock<[&str; 2]> = std::sync::LazyLock::new(|| [&PART, &PART]);
    static MORE: std::sync::LazyLock<[&str; 3]> = std::sync::LazyLock::new(|| [&PART, &PART, "yy"]);
    let (server, heard) = talking(TWO.as_slice(), true);
    complete(&twice(server.port, 2, &json!({"events": "sse"}), &text())).are_all("ok");
    assert_eq!(sent(&heard).iter().map(String::len).collect::<Vec<_>>(), [LONGEST - 1; 2]);
    let (server, heard) = talking(MORE.as_slice(), true);
    let result = complete(&twice(server.port, 2, &json!({"events": "sse"}), &text()));
    assert_eq!(reason(&result), r#"the text at "/delta/text" for `answer` is longer than 1048576 bytes"#);
    assert!(sent(&heard).is_empty());
}

#[test]
fn a_check_carries_the_whole_text_on() {
    let (server, heard) = talking(&["a", "b", "c"], true);
    let (requests, journey) = asking(&json!({"events": "sse"}), &text());
    let check = json!({
        "format": "redline.check/1", "target": {"host": "127.0.0.1", "port": server.port},
        "requests": requests, "journey": journey, "timeout_ns": 5_000_000_000_u64, "keep_bytes": 100,
    });
    let seen = walked(&check);
    assert_eq!(seen.last().unwrap()["complete"], true, "{seen:#?}");
    assert_eq!((&seen[0]["taken"]["answer"], &seen[0]["taken"]["turn"]), (&json!("0: abc"), &json!("1")));
    assert_eq!(sent(&heard), ["0: abc"]);
}

#[test]
fn what_a_stream_does_not_keep_is_refused_by_name() {
    for (stream, take, words) in [
        (json!({"events": "sse"}), json!({"json": "/a"}), "the body of a stream is not kept"),
        (Value::Null, text(), "this is no stream"),
        (json!({"events": "sse"}), json!({"text": "a"}), "not a JSON Pointer"),
    ] {
        let output = run(&twice(1, 1, &stream, &take));
        let message = output.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(words), "{message}");
    }
    let mut job = twice(1, 1, &json!({"events": "sse"}), &text());
    job["journey"]["steps"][0]["take"][1] = json!({"name": "turn", "from": {"text": "/other"}});
    let message = run(&job).error()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("one text is gathered"), "{message}");
}
