//! What the server saw and did, for comparison with what a client says of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::lateness::Lateness;

/// The most targets, and users, that are counted apart.
const MOST_NAMES: usize = 10_000;
/// The name of the others.
const OTHERS: &str = "(others)";

/// Counters and times. A request is counted when it is complete, so before its answer is sent.
#[derive(Debug, Default)]
pub struct Report {
    /// Connections that were accepted.
    pub connections: u64,
    /// Requests that arrived after the last answer of their connection was decided, and were not looked at.
    pub passed_over: u64,
    /// Requests whose answer was to be a reset.
    pub reset: u64,
    /// Bytes of the bodies of requests.
    body_bytes: u64,
    /// Messages, and their bytes.
    messages: u64,
    message_bytes: u64,
    /// Close frames of clients, by their codes.
    closes: BTreeMap<u16, u64>,
    targets: BTreeMap<String, u64>,
    statuses: BTreeMap<u16, u64>,
    users: BTreeMap<String, u64>,
    first_byte: Lateness,
    answer: Lateness,
}

impl Report {
    /// Counts a request with a body of this many bytes, which is answered with this status.
    pub fn asked(&mut self, target: &[u8], body_bytes: u64, status: u16) {
        self.body_bytes += body_bytes;
        count(&mut self.targets, target);
        *self.statuses.entry(status).or_default() += 1;
    }

    /// Counts a message on a WebSocket, of this many bytes.
    pub fn message(&mut self, bytes: u64) {
        self.messages += 1;
        self.message_bytes += bytes;
    }

    /// Counts a close frame of a client.
    pub fn closed(&mut self, code: u16) {
        *self.closes.entry(code).or_default() += 1;
    }

    /// Counts a request of a user, which was answered as that user's.
    pub fn asked_by(&mut self, user: &[u8]) {
        count(&mut self.users, user);
    }

    /// The first byte of an answer is sent now, so long after its request arrived.
    pub fn began(&mut self, after_ns: u64) {
        self.first_byte.record(after_ns);
    }

    /// The last byte of an answer is sent now, so long after its request arrived.
    pub fn ended(&mut self, after_ns: u64) {
        self.answer.record(after_ns);
    }

    /// A line of JSON, which also says how late the server was.
    pub fn summary(&self, lateness: &Lateness) -> String {
        let requests: u64 = self.targets.values().sum();
        let by_code = |counts: &BTreeMap<u16, u64>| {
            object(&counts.iter().map(|(code, count)| (code.to_string(), *count)).collect())
        };
        format!(
            concat!(
                r#"{{"lateness":{},"connections":{},"requests":{},"passed_over":{},"reset":{},"body_bytes":{},"#,
                r#""messages":{},"message_bytes":{},"closes":{},"targets":{},"statuses":{},"users":{},"first_byte":{},"answer":{}}}"#
            ),
            lateness.summary(),
            self.connections,
            requests,
            self.passed_over,
            self.reset,
            self.body_bytes,
            self.messages,
            self.message_bytes,
            by_code(&self.closes),
            object(&self.targets),
            by_code(&self.statuses),
            object(&self.users),
            self.first_byte.quantiles(),
            self.answer.quantiles(),
        )
    }
}

fn count(counts: &mut BTreeMap<String, u64>, name: &[u8]) {
    let name = String::from_utf8_lossy(name);
    if let Some(count) = counts.get_mut(name.as_ref()) {
        *count += 1;
    } else {
        let name = if counts.len() < MOST_NAMES { name.into_owned() } else { OTHERS.into() };
        *counts.entry(name).or_default() += 1;
    }
}

fn object(counts: &BTreeMap<String, u64>) -> String {
    let mut text = String::from("{");
    for (index, (name, count)) in counts.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push('"');
        for character in name.chars() {
            // Writing to a string does not fail.
            let _ = match character {
                '"' | '\\' => write!(text, "\\{character}"),
                '\0'..='\x1f' => write!(text, "\\u{:04x}", u32::from(character)),
                _ => write!(text, "{character}"),
            };
        }
        let _ = write!(text, "\":{count}");
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::{MOST_NAMES, Report};
    use crate::lateness::Lateness;

    #[test]
    fn what_was_counted_is_said_in_json() {
        let mut report = Report { connections: 2, passed_over: 1, ..Report::default() };
        report.asked(b"a\"b\n", 3, 200);
        report.asked(b"a\"b\n", 4, 401);
        report.asked(b"c", 0, 200);
        report.asked_by(b"ann");
        report.message(5);
        report.message(6);
        report.closed(1000);
        report.began(20);
        report.ended(30);
        let said = report.summary(&Lateness::default());
        for part in [
            r#""connections":2,"requests":3,"passed_over":1,"reset":0,"body_bytes":7,"messages":2,"#,
            r#""message_bytes":11,"closes":{"1000":1},"targets":{"a\"b\u000a":2,"c":1}"#,
            r#""statuses":{"200":2,"401":1},"users":{"ann":1},"first_byte":{"count":1,"p50_ns":20,"#,
            r#""answer":{"count":1,"p50_ns":30,"#,
            r#"{"lateness":{"answered":0,"#,
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
    }

    #[test]
    fn names_without_end_are_counted_together() {
        let mut report = Report::default();
        for index in 0..MOST_NAMES + 5 {
            report.asked(index.to_string().as_bytes(), 0, 200);
        }
        let said = report.summary(&Lateness::default());
        assert!(said.contains(r#""(others)":5"#) && said.contains(&format!(r#""requests":{}"#, MOST_NAMES + 5)));
    }
}
