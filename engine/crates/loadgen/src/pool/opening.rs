//! Opening connections: the socket, and what comes on it before a request can.

use std::fmt;
use std::io::{self, ErrorKind};

use redline_traffic::TlsInfo;

use super::Pool;
use crate::connection::Layers;
use crate::io::{Event, Io};
use crate::job::Http;
use crate::states::State;
use crate::stop::Stop;
use crate::sys::time::now_ns;

/// How many connections are being opened at once, so that a server's backlog does not overflow.
pub const OPENING_AT_ONCE: usize = 128;

/// How the first connecting went.
pub struct Opened {
    pub open: usize,
    /// The last reason why one could not be opened.
    pub why: Option<Failure>,
    /// What the first handshake agreed on.
    pub tls: Option<TlsInfo>,
}

/// Why a connection could not be opened.
#[derive(Debug)]
pub enum Failure {
    Connect(io::Error),
    /// It was open, and the handshake failed.
    Tls(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => error.fmt(f),
            Self::Tls(why) => write!(f, "the TLS handshake failed: {why}"),
        }
    }
}

/// A handshake that has ended well.
#[derive(Clone, Copy)]
pub struct Handshake {
    pub ns: u64,
    pub resumed: bool,
}

/// How far an opening has come.
pub enum Opening {
    Going,
    /// It can carry requests.
    Done,
    Failed(Failure),
}

impl<I: Io> Pool<I> {
    /// Try each connection that is wanted once, for at most `limit_ns`. Those still being opened then go on.
    pub fn open_all(&mut self, limit_ns: u64, stop: &Stop) -> io::Result<Opened> {
        let end_ns = now_ns().saturating_add(limit_ns);
        let mut untried = self.roster.length(State::Down);
        let mut why = None;
        while stop.code().is_none() {
            while untried > 0 && self.roster.length(State::Opening) < OPENING_AT_ONCE {
                untried -= 1;
                why = self.begin_next(now_ns()).err().map(|(_, error)| Failure::Connect(error)).or(why);
            }
            if self.roster.length(State::Opening) == 0 && untried == 0 || now_ns() >= end_ns {
                break;
            }
            self.io.wait(end_ns)?;
            while let Some(event) = self.io.next() {
                why = self.settle_first(event).or(why);
            }
        }
        Ok(Opened { open: self.open(), why, tls: self.tls_told.clone() })
    }

    /// During the first connecting: a socket is open, or was lost.
    fn settle_first(&mut self, event: Event) -> Option<Failure> {
        let connection = event.connection()?;
        match self.advance(event, now_ns()) {
            Opening::Done if self.roster.state(connection) == State::Opening => {
                self.opened(connection, now_ns());
                None
            }
            Opening::Failed(why) => {
                self.drop_socket(connection, false);
                Some(why)
            }
            _ => None,
        }
    }

    /// Something happened to a connection that is being opened, or was opened before the load began.
    pub fn advance(&mut self, event: Event, now_ns: u64) -> Opening {
        match event {
            Event::Woken => Opening::Going,
            Event::Opened(connection) => self.connected(connection, now_ns),
            Event::Refused(_, error) => Opening::Failed(Failure::Connect(error)),
            Event::Broken(connection, error) | Event::Unwritable(connection, error) => {
                Opening::Failed(self.broke(connection, error))
            }
            Event::Ended(connection) => {
                Opening::Failed(self.broke(connection, io::Error::new(ErrorKind::UnexpectedEof, "the peer closed it")))
            }
            Event::Taken(connection, bytes) => match self.taken(connection, bytes) {
                Ok(sent) => {
                    self.opening_bytes.0 += sent;
                    if self.is_open(connection) {
                        // Its handshake was done, but not all of it written.
                        self.settle(connection);
                    }
                    Opening::Going
                }
                Err(error) => Opening::Failed(self.broke(connection, error)),
            },
            Event::Received { connection, chunk, .. } => {
                let opening = self.shake(connection, chunk.bytes(), now_ns);
                self.io.release(chunk);
                opening
            }
        }
    }

    /// Why a connection that ended while it was being opened is of no use.
    fn broke(&self, connection: u32, error: io::Error) -> Failure {
        let shakes = self.connections[connection as usize].layers.as_deref().is_some_and(|layers| layers.tls.is_some());
        if shakes { Failure::Tls(error.to_string()) } else { Failure::Connect(error) }
    }

    /// The socket is connected: what comes before requests begins.
    fn connected(&mut self, connection: u32, now_ns: u64) -> Opening {
        let mut layers = Layers::default();
        layers.shaking_since_ns = now_ns;
        if let Some(tls) = &self.target.tls {
            match tls.client.connect() {
                Ok(session) => layers.tls = Some(session),
                Err(error) => return Opening::Failed(Failure::Tls(error.to_string())),
            }
        }
        if self.target.http == Http::V2 {
            match redline_http2::Session::new() {
                Ok(session) => layers.http2 = Some(session),
                Err(error) => return Opening::Failed(Failure::Connect(io::Error::other(error.to_string()))),
            }
        }
        let shakes = layers.tls.is_some();
        if shakes || layers.http2.is_some() {
            self.connections[connection as usize].layers = Some(Box::new(layers));
            match self.flush(connection) {
                Ok(sent) => self.opening_bytes.0 += sent,
                Err(error) => return Opening::Failed(Failure::Connect(error)),
            }
        }
        if shakes { Opening::Going } else { Opening::Done }
    }

    /// Bytes came on a connection that is being opened.
    fn shake(&mut self, connection: u32, bytes: &[u8], now_ns: u64) -> Opening {
        self.opening_bytes.1 += bytes.len();
        match self.connections[connection as usize].layers.take() {
            // It speaks before it was asked: of no use.
            None => Opening::Failed(Failure::Connect(io::Error::other("it spoke before a request came"))),
            Some(mut layers) => {
                let shaken = self.feed(&mut layers, bytes, now_ns);
                self.connections[connection as usize].layers = Some(layers);
                // Also after a failure: the peer is told why.
                let flushed = self.flush(connection).map_err(Failure::Connect);
                self.opening_bytes.0 += flushed.as_ref().unwrap_or(&0);
                match shaken.and_then(|done| flushed.map(|_| done)) {
                    Ok(true) => Opening::Done,
                    Ok(false) => Opening::Going,
                    Err(why) => Opening::Failed(why),
                }
            }
        }
    }

    /// Whether the handshake has ended with these bytes.
    fn feed(&mut self, layers: &mut Layers, bytes: &[u8], now_ns: u64) -> Result<bool, Failure> {
        let malformed = |why: redline_http2::Error| Failure::Connect(io::Error::other(why.to_string()));
        let Some(tls) = &mut layers.tls else {
            // HTTP/2 says its SETTINGS unasked.
            let fed = layers.http2.as_mut().map_or(Ok(()), |http2| http2.feed(bytes, &mut Vec::new()));
            return fed.map(|()| false).map_err(malformed);
        };
        self.plain.clear();
        let fed = tls.feed(bytes, &mut self.plain).map_err(|why| Failure::Tls(why.to_string()))?;
        if fed.closed {
            return Err(Failure::Tls("the peer closed it".to_owned()));
        }
        if fed.handshake_done_now {
            if self.target.http == Http::V2 && tls.alpn() != Some(b"h2") {
                return Err(Failure::Tls("the server does not choose h2 by ALPN".to_owned()));
            }
            let insecure = self.target.tls.as_ref().is_some_and(|tls| tls.insecure);
            self.tls_told.get_or_insert_with(|| TlsInfo {
                version: tls.version().to_owned(),
                cipher: tls.cipher(),
                alpn: tls.alpn().map(|name| String::from_utf8_lossy(name).into_owned()),
                insecure,
            });
            self.shaken.push(Handshake { ns: now_ns.saturating_sub(layers.shaking_since_ns), resumed: tls.resumed() });
        }
        // SETTINGS may come with the last bytes of the handshake.
        if let Some(http2) = &mut layers.http2 {
            http2.feed(&self.plain, &mut Vec::new()).map_err(malformed)?;
        }
        Ok(fed.handshake_done_now)
    }
}
