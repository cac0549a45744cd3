//! Users who log in: answers that are right only with the cookie and the token of the user's last login.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use crate::random::Random;

/// The target that begins a session.
const LOGIN: &[u8] = b"login";
/// The cookie of a session.
const COOKIE: &[u8] = b"sid";

/// What is asked, as far as an answer depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The target without its leading slash; after a POST, with the length of the body.
    pub name: &'a [u8],
    /// Bytes of the body.
    pub length: u64,
    /// The body, where it is kept.
    pub body: &'a [u8],
    /// The value of `Cookie`.
    pub cookie: &'a [u8],
    /// The value of `X-Token`.
    pub token: &'a [u8],
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Its status.
    pub status: u16,
    /// Its Content-Type.
    pub content_type: &'static str,
    /// The value of `Set-Cookie`; empty without it.
    pub set_cookie: &'a [u8],
    /// Its body.
    pub body: &'a [u8],
    /// How many events of the same length the body is; 0 if it is no stream of them.
    pub events: usize,
    /// Whose request it was; empty if it was nobody's.
    pub user: &'a [u8],
}

/// The Content-Type of answers that are no streams of events.
const PLAIN: &str = "text/plain";

impl<'a> Reply<'a> {
    /// An answer of this status with a body, for nobody.
    pub const fn plain(status: u16, body: &'a [u8]) -> Self {
        Self { status, content_type: PLAIN, set_cookie: b"", body, events: 0, user: b"" }
    }
}

/// The sessions of all threads, and the texts of the last answer.
#[derive(Debug, Clone)]
pub struct Sessions {
    shared: Arc<Mutex<Table>>,
    set_cookie: Vec<u8>,
    body: Vec<u8>,
    user: Vec<u8>,
}

#[derive(Debug)]
struct Table {
    /// The requests of a session.
    most: u64,
    begun: u64,
    random: Random,
    sessions: HashMap<Vec<u8>, Session>,
}

#[derive(Debug)]
struct Session {
    user: Vec<u8>,
    token: String,
    left: u64,
}

impl Sessions {
    /// No session yet; each is good for `most` requests. The same seed gives the same tokens.
    pub fn new(most: u64, seed: u64) -> Self {
        let table = Table { most, begun: 0, random: Random::new(seed), sessions: HashMap::new() };
        Self { shared: Arc::new(Mutex::new(table)), set_cookie: Vec::new(), body: Vec::new(), user: Vec::new() }
    }

    /// The answer to a request. `POST /login` begins a session of the user whom the body names: its answer has a cookie and a
    /// token, new for each. Any other request is answered with its name if it has both, with 401 if it has the cookie of no
    /// session or of one that has ended, and with 403 if the token is another's.
    pub fn reply<'a>(&'a mut self, asked: Asked<'a>) -> Reply<'a> {
        let mut table = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        self.user.clear();
        self.body.clear();
        let target = asked.name.split(|&byte| byte == b' ').next().unwrap_or_default();
        // Writing to a vector does not fail.
        if target == LOGIN && target.len() < asked.name.len() {
            let Table { most, begun, random, sessions } = &mut *table;
            *begun += 1;
            let (name, token) = (format!("s{begun}"), format!("{:016x}", random.next()));
            self.user.extend_from_slice(asked.body);
            self.set_cookie.clear();
            let _ = write!(self.set_cookie, "sid={name}; Path=/; HttpOnly");
            let _ = write!(self.body, r#"{{"token":"{token}"}}"#);
            sessions.insert(name.into_bytes(), Session { user: asked.body.to_vec(), token, left: *most });
            return Reply { set_cookie: &self.set_cookie, user: &self.user, ..Reply::plain(200, &self.body) };
        }
        let session = cookie(asked.cookie).and_then(|name| table.sessions.get_mut(name)).filter(|known| known.left > 0);
        let Some(session) = session else {
            return Reply::plain(401, b"");
        };
        if session.token.as_bytes() != asked.token {
            return Reply::plain(403, b"");
        }
        session.left -= 1;
        self.user.extend_from_slice(&session.user);
        Reply { user: &self.user, ..Reply::plain(200, asked.name) }
    }
}

/// The name of the session in a `Cookie`.
fn cookie(value: &[u8]) -> Option<&[u8]> {
    value
        .split(|&byte| byte == b';')
        .map(<[u8]>::trim_ascii)
        .find_map(|pair| pair.strip_prefix(COOKIE)?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    use super::{Asked, Sessions};

    fn asked<'a>(name: &'a str, body: &'a str, cookie: &'a str, token: &'a str) -> Asked<'a> {
        let length = body.len() as u64;
        Asked {
            name: name.as_bytes(),
            length,
            body: body.as_bytes(),
            cookie: cookie.as_bytes(),
            token: token.as_bytes(),
        }
    }

    /// The cookie and the token of a new session.
    fn log_in(sessions: &mut Sessions, user: &str) -> (String, String) {
        let reply = sessions.reply(asked("login 3", user, "", ""));
        assert_eq!(reply.status, 200);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let (cookie, body) = (text(reply.set_cookie), text(reply.body));
        let token = body.strip_prefix(r#"{"token":""#).and_then(|rest| rest.strip_suffix(r#""}"#)).expect("a token");
        (cookie.split(';').next().expect("a pair").to_owned(), token.to_owned())
    }

    #[test]
    fn a_page_is_right_only_with_the_cookie_and_the_token_of_a_login() {
        let mut sessions = Sessions::new(2, 7);
        let (ann, token) = log_in(&mut sessions, "ann");
        let (bob, other) = log_in(&mut sessions, "bob");
        assert!(ann != bob && token != other);
        let mut status = |cookie: &str, token: &str| {
            let reply = sessions.reply(asked("page", "", cookie, token));
            (reply.status, String::from_utf8(reply.user.to_vec()).expect("text"))
        };
        assert_eq!(status("", &token), (401, String::new()));
        assert_eq!(status("sid=s9", &token), (401, String::new()));
        assert_eq!(status(&ann, &other), (403, String::new()));
        assert_eq!(status(&ann, &token), (200, "ann".into()));
        assert_eq!(status(&format!("a=b; {bob}"), &other), (200, "bob".into()));
        // The session of two requests has ended after two.
        assert_eq!(status(&ann, &token), (200, "ann".into()));
        assert_eq!(status(&ann, &token), (401, String::new()));
        // A GET of the same target is not a login.
        assert_eq!(sessions.reply(asked("login", "", "", "")).status, 401);
    }
}
