//! One connection to the target: its requests in flight, its parser, and the bytes to write.

use redline_wire::Parser;

use super::flights::FlightQueue;
use super::outbox::{Next, Outbox, Tape};

/// Bytes that are encrypted or framed at once.
const SEALED_AT_ONCE: usize = 64 * 1024;

/// A connection's memory, kept from one socket to the next. It is small, for there may be hundreds of thousands.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and all their combinations occur")]
pub struct Connection {
    /// The requests in flight on it.
    pub queue: FlightQueue,
    pub outbox: Outbox,
    /// The parser of HTTP/1.1.
    pub parser: Parser,
    /// The state of TLS and HTTP/2.
    pub layers: Option<Box<Layers>>,
    /// When the present socket began to be opened.
    pub opened_ns: u64,
    /// Bytes of a write whose end the kernel has not reported.
    pub submitted: usize,
    /// Requests put on the present socket so far.
    pub carried: u32,
    /// The socket takes no more for now.
    pub full: bool,
    /// No more requests may be put on the present socket.
    pub closing: bool,
    /// The peer said by GOAWAY which requests on the present socket it processes, one at least: the rest it does not.
    pub is_leaving: bool,
    /// An earlier socket of it was open: the next one replaces it.
    pub was_open: bool,
    /// An answer came on the present socket.
    pub answered: bool,
}

/// The layers between the requests and the socket.
#[derive(Default)]
pub struct Layers {
    pub tls: Option<redline_tls::Session>,
    pub http2: Option<redline_http2::Session>,
    /// When the TLS handshake began.
    pub handshake_since_ns: u64,
    /// The bytes for the socket.
    sealed: Outbox,
}

impl Connection {
    pub fn new() -> Self {
        Self {
            queue: FlightQueue::EMPTY,
            outbox: Outbox::default(),
            parser: Parser::new(),
            layers: None,
            opened_ns: 0,
            submitted: 0,
            carried: 0,
            full: false,
            closing: false,
            is_leaving: false,
            was_open: false,
            answered: false,
        }
    }

    /// A new socket is being opened.
    pub fn begin(&mut self, now_ns: u64) {
        self.opened_ns = now_ns;
        self.answered = false;
    }

    /// The socket was closed: drop all that arrived or was to be written on it.
    pub fn end(&mut self) {
        self.parser.reset();
        self.outbox.clear();
        self.layers = None;
        self.submitted = 0;
        self.carried = 0;
        self.full = false;
        self.closing = false;
        self.is_leaving = false;
    }

    pub fn is_tls(&self) -> bool {
        self.layers.as_deref().is_some_and(|layers| layers.tls.is_some())
    }

    /// Its HTTP/2 session; none in HTTP/1.1.
    #[inline]
    pub fn http2(&self) -> Option<&redline_http2::Session> {
        self.layers.as_deref()?.http2.as_ref()
    }

    #[inline]
    pub fn http2_mut(&mut self) -> Option<&mut redline_http2::Session> {
        self.layers.as_deref_mut()?.http2.as_mut()
    }

    /// Whether the requests on it wait for the socket to take them, so that a later one would wait too. Streams of HTTP/2 do
    /// not wait for each other.
    pub fn is_blocked(&self) -> bool {
        match self.layers.as_deref() {
            Some(layers) => layers.http2.is_none() && !(self.outbox.is_empty() && layers.sealed.is_empty()),
            None => !self.outbox.is_empty(),
        }
    }

    /// The bytes to write next. No earlier write may be submitted and not ended.
    ///
    /// # Errors
    /// When TLS cannot encrypt.
    #[inline]
    pub fn next_out<'a>(&'a mut self, tapes: &'a [Tape], plain: &mut Vec<u8>) -> Result<Option<Next<'a>>, String> {
        match &mut self.layers {
            None => Ok(self.outbox.next(tapes)),
            Some(layers) => {
                if layers.sealed.is_empty() {
                    layers.fill(&mut self.outbox, tapes, plain)?;
                }
                Ok(layers.sealed.next(&[]))
            }
        }
    }

    /// The kernel took this many of the bytes of [`Self::next_out`].
    #[inline]
    pub fn consume(&mut self, bytes: usize) {
        match &mut self.layers {
            None => self.outbox.consume(bytes),
            Some(layers) => layers.sealed.consume(bytes),
        }
    }
}

impl Layers {
    /// Frame and encrypt more bytes for the socket.
    fn fill(&mut self, requests: &mut Outbox, tapes: &[Tape], plain: &mut Vec<u8>) -> Result<(), String> {
        let before = self.sealed.staged.len();
        let out = &mut self.sealed.staged;
        if let Some(tls) = &mut self.tls {
            tls.output(out);
            if !tls.is_handshaking() {
                if let Some(http2) = &mut self.http2 {
                    plain.clear();
                    http2.output(plain, SEALED_AT_ONCE);
                    if !plain.is_empty() {
                        tls.seal(plain, out).map_err(|error| error.to_string())?;
                    }
                } else {
                    seal_requests(tls, requests, tapes, out).map_err(|error| error.to_string())?;
                }
            }
        } else if let Some(http2) = &mut self.http2 {
            http2.output(out, SEALED_AT_ONCE);
        }
        let length = out.len() - before;
        self.sealed.push_staged(length);
        Ok(())
    }
}

fn seal_requests(
    tls: &mut redline_tls::Session,
    requests: &mut Outbox,
    tapes: &[Tape],
    out: &mut Vec<u8>,
) -> Result<(), redline_tls::Error> {
    let mut sealed = 0;
    while sealed < SEALED_AT_ONCE {
        let Some(next) = requests.next(tapes) else {
            break;
        };
        let length = next.bytes.len().min(SEALED_AT_ONCE);
        tls.seal(&next.bytes[..length], out)?;
        requests.consume(length);
        sealed += length;
    }
    Ok(())
}
