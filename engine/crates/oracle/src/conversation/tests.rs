use super::{Conversation, Release, Respondent, add_decimal};
use crate::agenda::Due;
use crate::endings::{Ending, Endings};
use crate::sessions::{Asked, Reply};
use proptest::prelude::*;

/// Answers with the name, as soon as the function allows it.
struct When<F>(F);

impl<F: FnMut(usize) -> Release> Respondent for When<F> {
    fn reply<'a>(&'a mut self, asked: Asked<'a>) -> Reply<'a> {
        Reply::plain(200, asked.name)
    }

    fn keeps_bodies(&self) -> bool {
        false
    }

    fn resets(&mut self) -> bool {
        false
    }

    fn ending(&self, _: u64) -> Ending {
        Ending::Open
    }

    fn passed_over(&mut self, _: u64) {}

    fn release(&mut self, _: i32, head: usize, body: usize) -> Release {
        self.0(head + body)
    }
}

/// Answers everything immediately with this body; the n-th answer is a reset.
struct Filled(Vec<u8>, usize);

fn filled(bytes: usize, reset: usize) -> Filled {
    Filled(vec![b'x'; bytes], reset)
}

impl Respondent for &mut Filled {
    fn reply<'a>(&'a mut self, _: Asked<'a>) -> Reply<'a> {
        Reply::plain(200, &self.0)
    }

    fn keeps_bodies(&self) -> bool {
        false
    }

    fn ending(&self, _: u64) -> Ending {
        Ending::Open
    }

    fn passed_over(&mut self, _: u64) {}

    fn resets(&mut self) -> bool {
        self.1 = self.1.wrapping_sub(1);
        self.1 == 0
    }

    fn release(&mut self, _: i32, _: usize, _: usize) -> Release {
        Release::Now
    }
}

/// Answers with two events.
struct Events;

impl Respondent for &mut Events {
    fn reply<'a>(&'a mut self, _: Asked<'a>) -> Reply<'a> {
        Reply { events: 2, ..Reply::plain(200, b"one\n\ntwo\n\n") }
    }

    fn keeps_bodies(&self) -> bool {
        false
    }

    fn ending(&self, _: u64) -> Ending {
        Ending::Open
    }

    fn passed_over(&mut self, _: u64) {}

    fn resets(&mut self) -> bool {
        false
    }

    fn release(&mut self, _: i32, _: usize, body: usize) -> Release {
        assert_eq!(body, 2 * "5\r\none\n\n\r\n".len() + "0\r\n\r\n".len());
        Release::Now
    }
}

/// Answers with the body of the request, and ends connections.
#[derive(Default)]
struct Echo {
    endings: Endings,
    passed_over: u64,
}

impl Respondent for &mut Echo {
    fn reply<'a>(&'a mut self, asked: Asked<'a>) -> Reply<'a> {
        Reply { set_cookie: asked.cookie, ..Reply::plain(if asked.token.is_empty() { 200 } else { 401 }, asked.body) }
    }

    fn keeps_bodies(&self) -> bool {
        true
    }

    fn resets(&mut self) -> bool {
        false
    }

    fn ending(&self, nth: u64) -> Ending {
        self.endings.with(nth)
    }

    fn passed_over(&mut self, requests: u64) {
        self.passed_over += requests;
    }

    fn release(&mut self, _: i32, _: usize, _: usize) -> Release {
        Release::Now
    }
}

fn due(length: usize) -> Due {
    Due { at_ns: 0, arrival_ns: 0, token: 0, stream: 0, length, first: true, last: true }
}

const THREE: &[u8] = b"GET /path0 HTTP/1.1\r\nHost: a\r\n\r\n\
    POST /b HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloGET /last HTTP/1.1\r\nConnection: close\r\n\r\n";
const ANSWERS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\npath0\
    HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nb 5\
    HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlast";

fn text(conversation: &Conversation) -> &str {
    std::str::from_utf8(conversation.outgoing()).expect("answers are text")
}

proptest! {
    #[test]
    fn answers_do_not_depend_on_how_bytes_are_cut(
        cuts in prop::collection::vec(0..THREE.len(), 0..20), sends in prop::collection::vec(1..60_usize, 0..20),
    ) {
        let mut cuts = cuts;
        cuts.extend([0, THREE.len()]);
        cuts.sort_unstable();
        let (mut conversation, mut sent, mut lengths) = (Conversation::new(), Vec::new(), Vec::new());
        let mut sends = sends.into_iter();
        for pair in cuts.windows(2) {
            conversation.receive(&THREE[pair[0]..pair[1]], When(|length| {
                lengths.push(length);
                Release::Now
            }));
            let length = sends.next().unwrap_or(0).min(conversation.outgoing().len());
            sent.extend_from_slice(&conversation.outgoing()[..length]);
            conversation.left(length);
        }
        sent.extend_from_slice(conversation.outgoing());
        conversation.left(conversation.outgoing().len());
        prop_assert_eq!(std::str::from_utf8(&sent), Ok(ANSWERS));
        prop_assert_eq!(lengths.iter().sum::<usize>(), ANSWERS.len());
        prop_assert_eq!(lengths.len(), 3);
        prop_assert!(conversation.is_over());
    }
}

#[test]
fn numbers_are_written_as_they_are() {
    for number in [0, 9, 10, 1234, 1_000_000, usize::MAX] {
        let mut text = b"a".to_vec();
        add_decimal(&mut text, number);
        assert_eq!(text, format!("a{number}").into_bytes());
    }
}

#[test]
fn an_answer_waits_for_its_release() {
    let mut conversation = Conversation::new();
    let mut lengths = Vec::new();
    conversation.receive(
        THREE,
        When(|length| {
            lengths.push(length);
            Release::Later
        }),
    );
    assert_eq!(text(&conversation), "");
    conversation.release(&due(lengths[0]));
    assert_eq!(text(&conversation), &ANSWERS[..lengths[0]]);
    conversation.left(lengths[0]);
    assert!(!conversation.is_over());
    conversation.release(&due(lengths[1] + lengths[2]));
    assert_eq!(text(&conversation), &ANSWERS[lengths[0]..]);
}

#[test]
fn nothing_is_read_after_the_end() {
    let mut conversation = Conversation::new();
    let mut answered = 0;
    let mut count = |_| {
        answered += 1;
        Release::Now
    };
    conversation.receive(b"PATCH / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", When(&mut count));
    conversation.receive(b"GET / HTTP/1.1\r\n\r\n", When(&mut count));
    assert_eq!(answered, 1);
    assert!(text(&conversation).starts_with("HTTP/1.1 405 "));
    assert!(!conversation.listens());
}

#[test]
fn a_peer_that_does_not_read_is_not_read() {
    let mut conversation = Conversation::new();
    while conversation.listens() {
        conversation.receive(b"GET / HTTP/1.1\r\n\r\n", When(|_| Release::Now));
    }
    let backlog = conversation.outgoing().len();
    conversation.left(backlog);
    assert!(conversation.listens());
}
#[test]
fn large_answers_are_written_only_as_they_leave() {
    let (mut conversation, mut filled) = (Conversation::new(), filled(700_000, 0));
    conversation.receive(&b"GET / HTTP/1.1\r\n\r\n".repeat(9), &mut filled);
    let mut rounds = 0;
    while !conversation.outgoing().is_empty() {
        assert!(conversation.outgoing().len() < 1_500_000 && !conversation.can_resume());
        conversation.left(conversation.outgoing().len());
        if conversation.can_resume() {
            conversation.receive(b"", &mut filled);
        }
        rounds += 1;
    }
    assert_eq!(rounds, 5);
    assert!(conversation.listens());
}

#[test]
fn a_body_is_passed_over_but_for_its_last_byte() {
    let mut conversation = Conversation::new();
    assert_eq!(conversation.body_to_skip(), 0);
    conversation.receive(b"POST /b HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc", When(|_| Release::Now));
    assert_eq!(conversation.body_to_skip(), 6);
    conversation.skip(6);
    assert_eq!(conversation.body_to_skip(), 0);
    assert_eq!(text(&conversation), "");
    conversation.receive(b"!", When(|_| Release::Now));
    assert!(text(&conversation).ends_with("b 10"));
}

#[test]
fn a_body_in_chunks_is_counted_without_them() {
    let mut conversation = Conversation::new();
    let begin = b"POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1";
    conversation.receive(begin, When(|_| Release::Now));
    assert_eq!(conversation.body_to_skip(), 0);
    conversation.receive(b"0\r\n", When(|_| Release::Now));
    assert_eq!(conversation.body_to_skip(), 15);
    conversation.skip(15);
    conversation.receive(b"!\r\n0\r\nA: b\r\n\r", When(|_| Release::Now));
    assert_eq!(text(&conversation), "");
    conversation.receive(b"\nGET /c HTTP/1.1\r\n\r\n", When(|_| Release::Now));
    assert!(text(&conversation).contains("\r\n\r\nb 21HTTP/1.1 200 OK") && text(&conversation).ends_with('c'));
}

#[test]
fn chunks_that_are_wrong_end_the_connection() {
    let mut conversation = Conversation::new();
    let request = b"POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\nGET / HTTP/1.1\r\n\r\n";
    conversation.receive(request, When(|_| Release::Now));
    assert!(text(&conversation).starts_with("HTTP/1.1 400 ") && !conversation.listens());
    assert_eq!(text(&conversation).matches("HTTP/1.1").count(), 1);
}

#[test]
fn what_came_before_a_reset_still_leaves() {
    let (mut conversation, mut filled) = (Conversation::new(), filled(1, 3));
    conversation.receive(&b"GET / HTTP/1.1\r\n\r\n".repeat(5), &mut filled);
    assert_eq!(text(&conversation).matches("200 OK").count(), 2);
    assert!(!conversation.is_reset() && !conversation.listens());
    conversation.left(conversation.outgoing().len());
    assert!(conversation.is_reset() && !conversation.is_over());
}

#[test]
fn a_buffer_is_held_only_while_it_is_needed() {
    let (mut conversation, mut buffer) = (Conversation::new(), Vec::with_capacity(1000));
    conversation.lend(&mut buffer);
    conversation.receive(b"GET / HTTP/1.1\r\n\r\n", When(|_| Release::Later));
    conversation.give_back(&mut buffer);
    assert_eq!(buffer.capacity(), 0);
    conversation.release(&due(1000));
    conversation.left(conversation.outgoing().len());
    conversation.give_back(&mut buffer);
    assert_eq!(buffer.capacity(), 1000);
}

#[test]
fn an_answer_may_depend_on_the_body_the_cookie_and_the_token() {
    let (mut conversation, mut echo) = (Conversation::new(), Echo::default());
    conversation.receive(b"POST /a HTTP/1.1\r\nContent-Length: 5\r\nCookie: sid=1\r\n\r\nhe", &mut echo);
    assert_eq!(conversation.body_to_skip(), 0);
    conversation.receive(b"lloGET /b HTTP/1.1\r\nX-Token: t\r\n\r\n", &mut echo);
    let answers = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nSet-Cookie: sid=1\r\n\r\nhello\
        HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Session\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(text(&conversation), answers);
}

#[test]
fn a_body_that_is_too_long_to_be_kept_is_refused() {
    let (mut conversation, mut echo) = (Conversation::new(), Echo::default());
    conversation.receive(b"POST /a HTTP/1.1\r\nContent-Length: 65537\r\n\r\n", &mut echo);
    assert!(text(&conversation).starts_with("HTTP/1.1 413 Content Too Large\r\n"));
    let (mut conversation, mut echo) = (Conversation::new(), Echo::default());
    conversation.receive(b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n10001\r\n", &mut echo);
    conversation.receive(&b"x".repeat(0x10000), &mut echo);
    assert_eq!(text(&conversation), "");
    conversation.receive(b"x", &mut echo);
    assert!(text(&conversation).starts_with("HTTP/1.1 413 Content Too Large\r\n"));
}

#[test]
fn what_follows_the_last_answer_of_a_connection_is_counted_and_not_answered() {
    for silent in [false, true] {
        let mut echo = Echo { endings: Endings { after: Some(2), silent }, passed_over: 0 };
        let mut conversation = Conversation::new();
        conversation.receive(&b"GET / HTTP/1.1\r\n\r\n".repeat(4), &mut echo);
        let said = text(&conversation);
        assert_eq!((said.matches("200 OK").count(), said.contains("Connection: close")), (2, !silent));
        assert!(!conversation.has_finished() && conversation.listens());
        conversation.left(conversation.outgoing().len());
        assert!(conversation.has_finished() && !conversation.is_over());
        conversation.receive(b"POST / HTTP/1.1\r\nContent-Length: 70000\r\n\r\n", &mut echo);
        conversation.skip(conversation.body_to_skip());
        conversation.receive(b"x", &mut echo);
        assert_eq!(echo.passed_over, 3);
        conversation.end();
        assert!(conversation.is_over());
    }
}

#[test]
fn events_are_chunks() {
    let mut conversation = Conversation::new();
    conversation.receive(b"GET / HTTP/1.1\r\n\r\n", &mut Events);
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n\
        5\r\none\n\n\r\n5\r\ntwo\n\n\r\n0\r\n\r\n";
    assert_eq!(text(&conversation), answer);
}
