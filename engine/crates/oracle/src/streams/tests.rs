use redline_http2::{BodyOptions, End, Event, KeptBody, Session, Tunnel};
use redline_websocket::{Event as WebSocketEvent, Kind, Role, Session as WebSocketSession};

use crate::agenda::Due;
use crate::conversation::{Conversation, Release, Respondent};
use crate::endings::{Ending, Endings};
use crate::sessions::{Asked, Reply};

/// Answers with what was asked, later unless `now`.
#[derive(Default)]
struct Mirror {
    now: bool,
    keeps: bool,
    resets: bool,
    endings: Endings,
    passed_over: u64,
    /// The streams of answers, and the lengths of their bodies.
    answers: Vec<(i32, usize)>,
    text: Vec<u8>,
}

impl Respondent for &mut Mirror {
    fn reply<'a>(&'a mut self, asked: Asked<'a>) -> Reply<'a> {
        self.text = [asked.name, b"|", asked.body, b"|", asked.cookie, b"|", asked.token].concat();
        Reply::plain(200, &self.text)
    }

    fn keeps_bodies(&self) -> bool {
        self.keeps
    }

    fn resets(&mut self) -> bool {
        self.resets
    }

    fn ending(&self, nth: u64) -> Ending {
        self.endings.with(nth)
    }

    fn passed_over(&mut self, requests: u64) {
        self.passed_over += requests;
    }

    fn release(&mut self, stream: i32, head: usize, body: usize) -> Release {
        // The echo of a message is a head.
        assert_eq!(head > 0, stream == 0);
        self.answers.push((stream, body));
        if self.now { Release::Now } else { Release::Later }
    }
}

struct Pair {
    client: Session,
    server: Conversation,
    mirror: Mirror,
    events: Vec<Event>,
}

impl Pair {
    fn new(mirror: Mirror) -> Self {
        let client = Session::new().expect("a session");
        Self { client, server: Conversation::new(), mirror, events: Vec::new() }
    }

    fn open(&mut self, token: u32, method: &str, path: &str, body: Option<&[u8]>) {
        let fields: [(&[u8], &[u8]); 7] = [
            (b":method", method.as_bytes()),
            (b":scheme", b"http"),
            (b":authority", b"127.0.0.1"),
            (b":path", path.as_bytes()),
            (b"cookie", b"a=b"),
            (b"cookie", b"sid=s1"),
            (b"x-token", b"t"),
        ];
        let options = BodyOptions { keep: KeptBody::Whole, ..BodyOptions::default() };
        self.client.open(&fields, body.map(Into::into), options, token).expect("there is room");
    }

    /// Carries bytes until neither side has any; the client's come in pieces of `most`.
    fn talk(&mut self, most: usize) {
        loop {
            let mut bytes = Vec::new();
            self.client.output(&mut bytes, usize::MAX >> 1);
            for piece in bytes.chunks(most) {
                self.server.receive(piece, &mut self.mirror);
                self.server.refill();
            }
            self.server.refill();
            let answer = self.server.outgoing().to_vec();
            if bytes.is_empty() && answer.is_empty() {
                return;
            }
            self.server.left(answer.len());
            self.client.feed(&answer, &mut self.events).expect("the server keeps the rules");
        }
    }

    /// The texts of complete answers, by token.
    fn answers(&self) -> Vec<(u32, String)> {
        let text =
            |body: &Option<Box<[u8]>>| String::from_utf8(body.as_deref().unwrap_or_default().to_vec()).expect("text");
        let answers = self.events.iter().filter_map(|event| match event {
            Event::Answer { token, status: 200, body, .. } => Some((*token, text(body))),
            _ => None,
        });
        answers.collect()
    }
}

fn due(stream: i32, length: usize, last: bool) -> Due {
    Due { at_ns: 0, arrival_ns: 0, token: 0, stream, length, first: false, last }
}

#[test]
fn requests_of_streams_are_answered_however_their_bytes_are_cut() {
    for most in [1, 7, 1000] {
        let mut pair = Pair::new(Mirror { now: true, keeps: true, ..Mirror::default() });
        pair.open(0, "GET", "/a?b", None);
        pair.open(1, "POST", "/login", Some(b"ann"));
        pair.talk(most);
        let expected = [(0, "a?b||a=b; sid=s1|t".to_owned()), (1, "login 3|ann|a=b; sid=s1|t".to_owned())];
        assert_eq!(pair.answers(), expected);
    }
}

#[test]
fn an_answer_is_sent_as_it_is_released() {
    let mut pair = Pair::new(Mirror::default());
    pair.open(0, "GET", "/abcdef", None);
    pair.open(1, "GET", "/b", None);
    pair.talk(1000);
    assert_eq!((pair.events.len(), pair.mirror.answers.len()), (0, 2));
    let [(first, length), (second, short)] = pair.mirror.answers[..] else { panic!("two answers") };
    pair.server.release(&due(first, 0, false));
    pair.talk(1000);
    assert_eq!(pair.events, [Event::Begun { token: 0 }]);
    pair.server.release(&due(first, 4, false));
    pair.server.release(&due(second, short, true));
    pair.talk(1000);
    assert_eq!(pair.answers(), [(1, "b||a=b; sid=s1|t".to_owned())]);
    pair.server.release(&due(first, length - 4, true));
    pair.talk(1000);
    assert_eq!(pair.answers().last(), Some(&(0, "abcdef||a=b; sid=s1|t".to_owned())));
}

#[test]
fn a_connection_ends_after_its_answers_and_counts_the_rest() {
    for (silent, most) in [(false, 10), (false, usize::MAX), (true, 10), (true, usize::MAX)] {
        let endings = Endings { after: Some(2), silent };
        let mut pair = Pair::new(Mirror { now: true, endings, ..Mirror::default() });
        for token in 0..5 {
            pair.open(token, "GET", "/a", None);
        }
        pair.talk(most);
        assert_eq!(pair.answers().iter().map(|(token, _)| *token).collect::<Vec<u32>>(), [0, 1]);
        let unprocessed = pair.events.iter().filter(|event| matches!(event, Event::Unprocessed { .. })).count();
        assert_eq!((pair.mirror.passed_over, unprocessed), (3, if silent { 0 } else { 3 }));
        assert!(pair.server.has_finished());
        if silent {
            pair.open(5, "GET", "/late", None);
            pair.talk(usize::MAX);
            assert_eq!(pair.mirror.passed_over, 4);
        }
        pair.server.end();
        assert!(pair.server.is_over());
    }
}

#[test]
fn what_was_answered_before_an_older_stream_is_not_passed_over() {
    let endings = Endings { after: Some(2), silent: false };
    let mut pair = Pair::new(Mirror { endings, ..Mirror::default() });
    pair.open(0, "POST", "/late", Some(&b"x".repeat(50_000)));
    pair.open(1, "GET", "/early", None);
    pair.talk(1000);
    let [(early, short), (late, length)] = pair.mirror.answers[..] else { panic!("two answers") };
    assert!(early > late);
    pair.server.release(&due(early, short, true));
    pair.server.release(&due(late, length, true));
    pair.talk(1000);
    assert_eq!((pair.answers().len(), pair.mirror.passed_over), (2, 0));
}

#[test]
fn a_reset_comes_when_the_answer_would_be_complete() {
    let mut pair = Pair::new(Mirror { resets: true, ..Mirror::default() });
    pair.open(0, "GET", "/a", None);
    pair.talk(1000);
    let (stream, length) = pair.mirror.answers[0];
    pair.server.release(&due(stream, 0, false));
    assert!(!pair.server.is_reset());
    pair.server.release(&due(stream, length, true));
    assert!(pair.server.is_reset());
}

#[test]
fn bytes_that_are_not_http_2_end_the_connection() {
    let mut server = Conversation::new();
    let mut mirror = Mirror::default();
    server.receive(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &mut mirror);
    assert!(!server.is_reset() && server.listens());
    server.receive(&[0xff; 200], &mut mirror);
    server.refill();
    assert!(!server.has_finished());
    server.left(server.outgoing().len());
    assert!(server.has_finished());
}

/// A client that opens a WebSocket on a stream, and what it received on it.
struct Listener {
    tunnel: Tunnel,
    session: WebSocketSession,
    server: Conversation,
    mirror: Mirror,
    received: Vec<u8>,
    end: Result<(), End>,
}

impl Listener {
    fn new(mirror: Mirror) -> Self {
        let mut listener = Self {
            tunnel: Tunnel::new().expect("a session"),
            session: WebSocketSession::new(Role::Client, 1),
            server: Conversation::new(),
            mirror,
            received: Vec::new(),
            end: Ok(()),
        };
        listener.talk();
        assert_eq!(listener.tunnel.may_connect(), Ok(true));
        let fields: [(&[u8], &[u8]); 6] = [
            (b":method", b"CONNECT"),
            (b":protocol", b"websocket"),
            (b":scheme", b"http"),
            (b":authority", b"127.0.0.1"),
            (b":path", b"/chat"),
            (b"sec-websocket-protocol", b"v2, v1"),
        ];
        listener.tunnel.connect(&fields).expect("there is room");
        listener.talk();
        let answer = listener.tunnel.answer().expect("an answer");
        assert_eq!((answer.status, &answer.fields[..]), (200, &b"sec-websocket-protocol: v2\n"[..]));
        listener
    }

    fn talk(&mut self) {
        loop {
            let mut bytes = Vec::new();
            self.tunnel.output(&mut bytes, usize::MAX >> 1);
            self.server.receive(&bytes, &mut self.mirror);
            self.server.refill();
            let answer = self.server.outgoing().to_vec();
            if bytes.is_empty() && answer.is_empty() {
                return;
            }
            self.server.left(answer.len());
            if self.end.is_ok() {
                self.end = self.tunnel.feed(&answer, &mut self.received);
            }
        }
    }

    fn send(&mut self, text: &str) {
        let mut bytes = Vec::new();
        self.session.write(Kind::Text, text.as_bytes(), &mut bytes);
        self.tunnel.send(&bytes, false);
        self.talk();
    }

    /// The texts that came; a close frame is its code.
    fn texts(&mut self) -> Vec<String> {
        let (received, mut texts) = (std::mem::take(&mut self.received), Vec::new());
        let mut rest = &received[..];
        while let Some(event) = self.session.next(&mut rest).expect("the server keeps the rules") {
            match event {
                WebSocketEvent::Message(_, text) => texts.push(String::from_utf8(text.to_vec()).expect("text")),
                WebSocketEvent::Close(close) => texts.push(format!("{:?}", close.code)),
                WebSocketEvent::Ping | WebSocketEvent::Pong => {}
            }
        }
        texts
    }
}

#[test]
fn messages_on_a_stream_are_echoed_as_they_are_released() {
    let mut listener = Listener::new(Mirror::default());
    listener.send("one");
    listener.send("two");
    assert_eq!(listener.texts(), [""; 0]);
    let [(0, first), (0, second)] = listener.mirror.answers[..] else { panic!("{:?}", listener.mirror.answers) };
    assert_eq!((first, second), (0, 0), "an echo is a head");
    let echo = "xone".len() + 1;
    for expected in ["one", "two"] {
        listener.server.release(&due(0, echo, true));
        listener.talk();
        assert_eq!(listener.texts(), [expected]);
    }
    let mut bytes = Vec::new();
    listener.session.write_close(Some(1000), &mut bytes);
    listener.tunnel.send(&bytes, true);
    listener.talk();
    assert_eq!((listener.texts(), &listener.end), (vec!["Some(1000)".to_owned()], &Err(End::Ended)));
    assert!(listener.server.has_finished());
}

#[test]
fn a_websocket_on_a_stream_ends_after_its_messages() {
    for (silent, last) in [(false, vec!["b".to_owned(), "Some(1001)".to_owned()]), (true, vec!["b".to_owned()])] {
        let endings = Endings { after: Some(2), silent };
        let mut listener = Listener::new(Mirror { now: true, endings, ..Mirror::default() });
        listener.send("a");
        assert_eq!((listener.texts(), &listener.end), (vec!["a".to_owned()], &Ok(())));
        listener.send("b");
        assert_eq!((listener.texts(), &listener.end), (last, &Err(End::Ended)));
        assert!(listener.server.has_finished());
    }
}

#[test]
fn a_reset_of_a_websocket_on_a_stream_ends_the_connection() {
    let mut listener = Listener::new(Mirror { now: true, resets: true, ..Mirror::default() });
    assert!(!listener.server.is_reset());
    listener.send("a");
    assert!(listener.server.is_reset());
}
