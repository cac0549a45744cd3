//! Measures what an echoed message costs a client's session, without sockets: `valgrind --tool=callgrind
//! target/release/examples/cost [BYTES [MESSAGES]]`, with two numbers of messages; the difference is what they cost.

use redline_websocket::{Event, Kind, Role, Session};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>().expect("a number"));
    let payload = vec![b'a'; arguments.next().unwrap_or(64)];
    let messages = arguments.next().unwrap_or(1_000_000);
    let (mut session, mut out, mut echo) = (Session::new(Role::Client, 1), Vec::new(), Vec::new());
    Session::new(Role::Server, 1).write(Kind::Text, &payload, &mut echo);
    for _ in 0..messages {
        out.clear();
        session.write(Kind::Text, &payload, &mut out);
        let mut rest = &echo[..];
        match session.next(&mut rest) {
            Ok(Some(Event::Message(Kind::Text, message))) => assert!(message == payload),
            other => panic!("{other:?}"),
        }
        assert_eq!(session.next(&mut rest), Ok(None));
    }
}
