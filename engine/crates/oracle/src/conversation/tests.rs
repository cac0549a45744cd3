use super::{Conversation, Release, Respondent, add_decimal};
use proptest::prelude::*;

/// Answers with the name, as soon as the function allows it.
struct When<F>(F);

impl<F: FnMut(usize) -> Release> Respondent for When<F> {
    fn body<'a>(&'a mut self, name: &'a [u8]) -> &'a [u8] {
        name
    }

    fn resets(&mut self) -> bool {
        false
    }

    fn release(&mut self, head: usize, body: usize) -> Release {
        self.0(head + body)
    }
}

/// Answers everything immediately with this body; the n-th answer is a reset.
struct Filled(Vec<u8>, usize);

fn filled(bytes: usize, reset: usize) -> Filled {
    Filled(vec![b'x'; bytes], reset)
}

impl Respondent for &mut Filled {
    fn body<'a>(&'a mut self, _: &'a [u8]) -> &'a [u8] {
        &self.0
    }

    fn resets(&mut self) -> bool {
        self.1 = self.1.wrapping_sub(1);
        self.1 == 0
    }

    fn release(&mut self, _: usize, _: usize) -> Release {
        Release::Now
    }
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
    conversation.release(lengths[0]);
    assert_eq!(text(&conversation), &ANSWERS[..lengths[0]]);
    conversation.left(lengths[0]);
    assert!(!conversation.is_over());
    conversation.release(lengths[1] + lengths[2]);
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
    conversation.release(1000);
    conversation.left(conversation.outgoing().len());
    conversation.give_back(&mut buffer);
    assert_eq!(buffer.capacity(), 1000);
}
