//! An HTTP/2 connection whose only stream carries another protocol: an extended CONNECT (RFC 8441).

use std::fmt;

use redline_wire::KeptFields;

use crate::event::{BodyOptions, Error, Event};
use crate::rule::code_name;
use crate::session::Session;

/// The request of the only stream.
const TOKEN: u32 = 0;
/// How much is kept of the body of a refusal.
const SHOWN: usize = 200;
/// An error code (RFC 9113, section 7).
const REFUSED_STREAM: u32 = 7;

/// The client side of a connection that carries another protocol on a stream.
///
/// Once it [`Tunnel::may_connect`], call [`Tunnel::connect`]. From an answer 200 to 299 on, what [`Tunnel::feed`] receives is the
/// other protocol's, and so is what [`Tunnel::send`] is given.
pub struct Tunnel {
    session: Session,
    has_asked: bool,
    answer: Option<Answer>,
    /// The error code of the peer's GOAWAY.
    gone: Option<u32>,
    events: Vec<Event>,
}

/// The answer to the CONNECT.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// 200 to 999.
    pub status: u16,
    /// Its fields, a line each.
    pub fields: Box<[u8]>,
    /// The beginning of the body of a refusal, as far as it has arrived.
    pub body: Vec<u8>,
    /// Nothing follows.
    pub is_complete: bool,
}

impl Answer {
    /// Whether the stream carries the other protocol.
    #[must_use]
    pub fn connects(&self) -> bool {
        matches!(self.status, 200..=299)
    }
}

/// Why nothing more comes.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The peer's SETTINGS do not allow extended CONNECT.
    NotAllowed,
    /// The peer has ended the stream.
    Ended,
    /// The peer has reset the stream, with this error code.
    Reset(u32),
    /// The peer accepts no stream any more, by a GOAWAY with this error code.
    GoneAway(u32),
    /// The answer breaks a rule: this is wrong.
    Malformed(String),
    /// The connection is of no use.
    Broken(Error),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed => f.write_str(
                "the server's SETTINGS do not enable it over HTTP/2 (SETTINGS_ENABLE_CONNECT_PROTOCOL, RFC 8441, 3)",
            ),
            Self::Ended => f.write_str("the server ended the stream"),
            Self::Reset(code) => write!(f, "the server reset the stream with {}", code_name(*code)),
            Self::GoneAway(code) => write!(f, "the server sent GOAWAY with {}", code_name(*code)),
            Self::Malformed(why) => f.write_str(why),
            Self::Broken(why) => why.fmt(f),
        }
    }
}

impl Tunnel {
    /// A fresh connection; the preface and SETTINGS wait in its output.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn new() -> Result<Self, Error> {
        Ok(Self { session: Session::new()?, has_asked: false, answer: None, gone: None, events: Vec::new() })
    }

    /// Whether the peer's SETTINGS have arrived and allow extended CONNECT.
    ///
    /// # Errors
    /// Why it will never be allowed.
    pub fn may_connect(&self) -> Result<bool, End> {
        match (self.gone, self.session.allows_connect()) {
            (Some(code), _) => Err(End::GoneAway(code)),
            (None, Some(false)) => Err(End::NotAllowed),
            (None, allows) => Ok(allows.is_some()),
        }
    }

    /// Send the CONNECT. The names of its fields are in lower case, and pseudo-fields come first.
    ///
    /// # Errors
    /// Why it cannot be sent.
    pub fn connect(&mut self, fields: &[(&[u8], &[u8])]) -> Result<(), End> {
        self.has_asked = true;
        let options = BodyOptions { fields: KeptFields::All, ..BodyOptions::default() };
        self.session.open(fields, None, options, TOKEN).map_err(End::Broken)
    }

    /// Whether the CONNECT was sent.
    #[must_use]
    pub fn has_asked(&self) -> bool {
        self.has_asked
    }

    /// Process received bytes, and append what they carry to `received`. What came before an end is appended too.
    ///
    /// # Errors
    /// Why nothing more comes.
    pub fn feed(&mut self, bytes: &[u8], received: &mut Vec<u8>) -> Result<(), End> {
        let begin = received.len();
        let fed = self.session.feed(bytes, &mut self.events);
        self.session.take_received(received);
        let mut end = Ok(());
        for event in std::mem::take(&mut self.events) {
            match event {
                Event::Begun { .. } => {
                    let fields = self.session.fields(TOKEN).into();
                    let status = self.session.status(TOKEN);
                    self.answer = Some(Answer { status, fields, body: Vec::new(), is_complete: false });
                }
                Event::Answer { status, fields, .. } => {
                    let fields = fields.unwrap_or_default();
                    let answer =
                        self.answer.get_or_insert(Answer { status, fields, body: Vec::new(), is_complete: false });
                    answer.is_complete = true;
                    if answer.connects() {
                        end = Err(End::Ended);
                    }
                }
                Event::Refused { code, .. } => end = Err(End::Reset(code)),
                Event::Unprocessed { .. } => end = Err(self.gone.map_or(End::Reset(REFUSED_STREAM), End::GoneAway)),
                Event::Malformed { rule, field, .. } => {
                    end = Err(End::Malformed(match field {
                        Some(field) => format!("the field {field}: {rule}"),
                        None => rule.to_string(),
                    }));
                }
                Event::GoAway { code, .. } => self.gone = Some(code),
                Event::Stream { .. } => {}
            }
        }
        if let Some(answer) = self.answer.as_mut().filter(|answer| !answer.connects()) {
            let came = &received[begin..];
            answer.body.extend_from_slice(&came[..came.len().min(SHOWN - answer.body.len())]);
            received.truncate(begin);
        }
        end?;
        fed.map_err(End::Broken)
    }

    /// The answer to the CONNECT, once its head has arrived.
    #[must_use]
    pub fn answer(&self) -> Option<&Answer> {
        self.answer.as_ref()
    }

    /// The peer has announced by GOAWAY, with this error code, that it ends the connection.
    #[must_use]
    pub fn gone(&self) -> Option<u32> {
        self.gone
    }

    /// Append bytes of the other protocol, which are sent as the peer's windows allow; `last`: nothing follows them.
    pub fn send(&mut self, bytes: &[u8], last: bool) {
        self.session.send(bytes, last);
    }

    /// How many bytes of the other protocol wait for the peer's windows, or to be taken by [`Tunnel::output`].
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.session.unsent()
    }

    /// Append bytes to be written, about `most` (up to a frame more).
    pub fn output(&mut self, out: &mut Vec<u8>, most: usize) {
        self.session.output(out, most);
    }
}
