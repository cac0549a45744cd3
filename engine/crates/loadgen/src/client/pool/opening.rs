//! Opening connections: the socket, and the TLS and HTTP/2 handshakes before the first request.

use std::io::{self, ErrorKind};

use redline_traffic::{Outcome, TlsInfo};
use redline_websocket::{Event as WebSocketEvent, Handshake as WebSocketHandshake, Refusal, Role};

use super::Pool;
use super::states::ConnectionState;
use crate::client::activity::{Activity, ClientEvent, Handshake, OpenError};
use crate::client::layers::Layers;
use crate::client::tunnel::Reply;
use crate::ids::ConnectionId;
use crate::io::{Event, Io};
use crate::job::Http;
use crate::stop::Stop;
use crate::sys::random::random_number;
use crate::sys::time::now_ns;

/// How many connections are opened concurrently, so that a server's backlog does not overflow.
pub const MOST_OPENING: usize = 128;

/// The result of connecting before the load.
#[derive(Default)]
pub struct ConnectResult {
    /// Connections that are open.
    pub open: usize,
    /// The last reason why a connection could not be opened.
    pub error: Option<OpenError>,
    /// The result of the first TLS handshake.
    pub tls: Option<TlsInfo>,
}

impl ConnectResult {
    /// Add the result of another worker, or of the connections to another target.
    pub fn add(&mut self, other: Self) {
        self.open += other.open;
        self.error = other.error.or(self.error.take());
        self.tls = self.tls.take().or(other.tls);
    }
}

/// The progress of opening a connection.
pub enum OpeningProgress {
    Pending,
    /// The connection can carry requests.
    Done,
    Failed(OpenError),
}

impl<I: Io> Pool<I> {
    /// Try each connection that is down once, for at most `limit_ns`. Connections that are still being opened then continue.
    pub fn open_all(&mut self, limit_ns: u64, stop: &Stop, activity: &mut Activity) -> io::Result<ConnectResult> {
        let end_ns = now_ns().saturating_add(limit_ns);
        let mut untried = self.states.count(ConnectionState::Down);
        let mut last = None;
        while stop.code().is_none() {
            while untried > 0 && self.states.count(ConnectionState::Opening) < MOST_OPENING {
                untried -= 1;
                last = self.begin_next(now_ns()).err().map(|(_, error)| OpenError::Connect(error)).or(last);
            }
            if self.states.count(ConnectionState::Opening) == 0 && untried == 0 || now_ns() >= end_ns {
                break;
            }
            self.io.wait(end_ns)?;
            while let Some(event) = self.io.next() {
                last = self.first_progress(event, activity).or(last);
            }
        }
        let slow = self.oldest_opening().map(|(connection, _)| self.too_slow(connection));
        Ok(ConnectResult { open: self.open(), error: last.or(slow), tls: self.tls.clone() })
    }

    /// The error of a connection that was not open in time.
    pub fn too_slow(&self, connection: ConnectionId) -> OpenError {
        if self.connection(connection).is_tunnelling() {
            OpenError::Proxy("the proxy did not open the tunnel in time".to_owned())
        } else if let Some(handshake) = self.connection(connection).handshake() {
            no_websocket(handshake, Outcome::Timeout, "the server did not answer it in time")
        } else if self.connection(connection).has_layers() {
            OpenError::Tls("the server did not complete it in time".to_owned())
        } else {
            OpenError::Connect(io::Error::new(ErrorKind::TimedOut, "no answer in time"))
        }
    }

    /// Handle an event while connecting before the load. Returns why a connection could not be opened.
    fn first_progress(&mut self, event: Event, activity: &mut Activity) -> Option<OpenError> {
        let connection = event.connection()?;
        match self.advance(connection, event, now_ns(), activity) {
            OpeningProgress::Done if self.states.state(connection) == ConnectionState::Opening => {
                self.opened(connection, now_ns());
                None
            }
            OpeningProgress::Failed(why) => {
                self.drop_socket(connection, false);
                Some(why)
            }
            _ => None,
        }
    }

    /// Handle an event of a connection that is being opened, or was opened before the load began.
    pub fn advance(
        &mut self,
        connection: ConnectionId,
        event: Event,
        now_ns: u64,
        activity: &mut Activity,
    ) -> OpeningProgress {
        match event {
            Event::Woken => OpeningProgress::Pending,
            Event::Opened(_) => self.connected(connection, now_ns, activity),
            Event::Refused(_, error) => OpeningProgress::Failed(OpenError::Connect(error)),
            Event::Broken(_, error) | Event::Unwritable(_, error) => {
                OpeningProgress::Failed(self.broke(connection, error))
            }
            Event::Ended(_) => OpeningProgress::Failed(
                self.broke(connection, io::Error::new(ErrorKind::UnexpectedEof, "the peer closed it")),
            ),
            Event::Sent(_, bytes) => match self.sent(connection, bytes) {
                Ok(sent) => {
                    activity.bytes_sent += sent;
                    if self.is_open(connection) {
                        // Its handshake is complete, and its last bytes are now written.
                        self.settle(connection);
                    }
                    // The proxy may have answered before the kernel reported that it took the request.
                    self.pass_tunnel(connection, now_ns, activity)
                }
                Err(error) => OpeningProgress::Failed(self.broke(connection, error)),
            },
            Event::Received { chunk, .. } => {
                activity.bytes_received += chunk.bytes().len();
                let progress = if self.connection(connection).is_tunnelling() {
                    self.connection_mut(connection).feed_tunnel(chunk.bytes());
                    self.pass_tunnel(connection, now_ns, activity)
                } else {
                    self.receive_handshake(connection, chunk.bytes(), now_ns, activity)
                };
                self.io.release(chunk);
                progress
            }
        }
    }

    /// The error of a connection that ended while it was being opened.
    fn broke(&self, connection: ConnectionId, error: io::Error) -> OpenError {
        if self.connection(connection).is_tunnelling() {
            OpenError::Proxy(format!("the proxy opened no tunnel: {error}"))
        } else if let Some(handshake) = self.connection(connection).handshake() {
            let outcome = if error.kind() == ErrorKind::UnexpectedEof { Outcome::Closed } else { Outcome::Reset };
            no_websocket(handshake, outcome, &format!("the server did not answer it: {error}"))
        } else if self.connection(connection).is_tls() {
            OpenError::Tls(error.to_string())
        } else {
            OpenError::Connect(error)
        }
    }

    /// The socket is connected: ask the proxy for a tunnel if there is one, or start the handshakes.
    fn connected(&mut self, connection: ConnectionId, now_ns: u64, activity: &mut Activity) -> OpeningProgress {
        let Some(proxy) = &self.target.proxy else {
            return self.start_handshakes(connection, now_ns, activity);
        };
        let layers = Layers::tunnel(&proxy.connect);
        self.connection_mut(connection).set_layers(Box::new(layers));
        match self.flush(connection) {
            Ok(sent) => activity.bytes_sent += sent,
            Err(error) => return OpeningProgress::Failed(self.broke(connection, error)),
        }
        OpeningProgress::Pending
    }

    /// Start the handshakes once the proxy has opened the tunnel.
    fn pass_tunnel(&mut self, connection: ConnectionId, now_ns: u64, activity: &mut Activity) -> OpeningProgress {
        match self.connection_mut(connection).tunnel_reply() {
            Reply::Incomplete => OpeningProgress::Pending,
            Reply::Refused(why) => OpeningProgress::Failed(OpenError::Proxy(why)),
            Reply::Open(early) => {
                let progress = self.start_handshakes(connection, now_ns, activity);
                if early.is_empty() || matches!(progress, OpeningProgress::Failed(_)) {
                    return progress;
                }
                match self.receive_handshake(connection, &early, now_ns, activity) {
                    OpeningProgress::Pending => progress,
                    further => further,
                }
            }
        }
    }

    /// Nothing but handshakes is between the socket and the first request.
    fn start_handshakes(&mut self, connection: ConnectionId, now_ns: u64, activity: &mut Activity) -> OpeningProgress {
        let mut layers = Layers { handshake_since_ns: now_ns, ..Layers::default() };
        if let Some(tls) = &self.target.tls {
            match tls.client.connect() {
                Ok(session) => layers.tls = Some(session),
                Err(error) => return OpeningProgress::Failed(OpenError::Tls(error.to_string())),
            }
        }
        if self.target.http == Http::V2 && self.has_websockets {
            match redline_http2::Tunnel::new() {
                Ok(stream) => layers.stream = Some(Box::new(stream)),
                Err(error) => return OpeningProgress::Failed(OpenError::Connect(io::Error::other(error.to_string()))),
            }
        } else if self.target.http == Http::V2 {
            match redline_http2::Session::new() {
                Ok(mut session) => {
                    if let Some(keeps) = self.records {
                        session.record(keeps);
                    }
                    layers.http2 = Some(session);
                }
                Err(error) => return OpeningProgress::Failed(OpenError::Connect(io::Error::other(error.to_string()))),
            }
        }
        let has_tls = layers.tls.is_some();
        let asks_websocket = self.opens_websocket() && !has_tls;
        if asks_websocket && let Err(why) = self.ask_websocket(connection, &mut layers, now_ns) {
            return OpeningProgress::Failed(why);
        }
        if has_tls || asks_websocket || layers.http2.is_some() {
            self.connection_mut(connection).set_layers(Box::new(layers));
            match self.flush(connection) {
                Ok(sent) => activity.bytes_sent += sent,
                Err(error) => return OpeningProgress::Failed(OpenError::Connect(error)),
            }
        }
        if has_tls || asks_websocket { OpeningProgress::Pending } else { OpeningProgress::Done }
    }

    /// Whether each connection becomes a WebSocket before its first request, or could over HTTP/2.
    fn opens_websocket(&self) -> bool {
        self.websocket.is_some() || self.has_websockets && self.target.http == Http::V2
    }

    /// Ask for a WebSocket. Over HTTP/2 this waits for the server's SETTINGS, which have to allow it. Returns whether nothing is
    /// left to ask: a user who listens asks later.
    fn ask_websocket(&mut self, connection: ConnectionId, layers: &mut Layers, now_ns: u64) -> Result<bool, OpenError> {
        if let Some(stream) = &layers.stream
            && !stream.may_connect()?
        {
            layers.handshake = Some(WebSocketHandshake::over_http2());
            return Ok(false);
        }
        let Some(opening) = self.websocket.as_ref().and_then(|websocket| websocket.opening.clone()) else {
            layers.handshake = None;
            return Ok(true);
        };
        layers.handshake_since_ns = now_ns;
        layers.ask_websocket(&opening, self.connection_mut(connection).outbox_mut())?;
        Ok(false)
    }

    /// The server answers the handshake of a WebSocket. Returns whether it is open.
    fn open_websocket(
        &mut self,
        connection: ConnectionId,
        layers: &mut Layers,
        bytes: &[u8],
        now_ns: u64,
        activity: &mut Activity,
    ) -> Result<bool, OpenError> {
        if let Some(stream) = layers.stream.as_mut().filter(|stream| !stream.has_asked()) {
            stream.feed(bytes, &mut Vec::new())?;
            return self.ask_websocket(connection, layers, now_ns);
        }
        let Some(websocket) = &self.websocket else {
            return Ok(false);
        };
        if let Some(session) = &mut layers.websocket {
            let (left, handshake) = (&mut layers.greeting_left, &mut layers.handshake);
            let Some(stream) = &mut layers.stream else {
                return greeted(session, left, handshake, bytes);
            };
            let mut payload = Vec::new();
            let end = stream.feed(bytes, &mut payload);
            let is_open = greeted(session, left, handshake, &payload)?;
            return Ok(end.map(|()| is_open)?);
        }
        let Some((opened, end)) = layers.feed_handshake(bytes, websocket)? else {
            return Ok(false);
        };
        if let Some(end) = end {
            return Err(end.into());
        }
        let ns = now_ns.saturating_sub(layers.handshake_since_ns);
        activity.events.push(ClientEvent::Upgraded(ns));
        layers.greeting_left = websocket.greeting;
        layers.record = self.record_of(&opened.head);
        let session = layers
            .websocket
            .insert(redline_websocket::Session::new(Role::Client, random_number()).compressing(opened.deflate));
        greeted(session, &mut layers.greeting_left, &mut layers.handshake, &opened.rest)
    }

    /// Bytes arrived on a connection that is being opened.
    fn receive_handshake(
        &mut self,
        connection: ConnectionId,
        bytes: &[u8],
        now_ns: u64,
        activity: &mut Activity,
    ) -> OpeningProgress {
        match self.connection_mut(connection).take_layers() {
            None => OpeningProgress::Failed(OpenError::Connect(io::Error::other("it spoke before a request came"))),
            Some(mut layers) => {
                let fed = self.feed(connection, &mut layers, bytes, now_ns, activity);
                self.connection_mut(connection).set_layers(layers);
                // Flush also after a failure, because an alert may be queued for the peer.
                let flushed = self.flush(connection).map_err(OpenError::Connect);
                activity.bytes_sent += flushed.as_ref().unwrap_or(&0);
                match fed.and_then(|done| flushed.map(|_| done)) {
                    Ok(true) => OpeningProgress::Done,
                    Ok(false) => OpeningProgress::Pending,
                    Err(why) => OpeningProgress::Failed(why),
                }
            }
        }
    }

    /// Whether these bytes complete the handshake.
    fn feed(
        &mut self,
        connection: ConnectionId,
        layers: &mut Layers,
        bytes: &[u8],
        now_ns: u64,
        activity: &mut Activity,
    ) -> Result<bool, OpenError> {
        let malformed = |why: redline_http2::Error| OpenError::Connect(io::Error::other(why.to_string()));
        let Some(tls) = &mut layers.tls else {
            if layers.handshake.is_some() {
                return self.open_websocket(connection, layers, bytes, now_ns, activity);
            }
            // The SETTINGS of HTTP/2 may arrive before the first request.
            let fed = layers.http2.as_mut().map_or(Ok(()), |http2| http2.feed(bytes, &mut Vec::new()));
            return fed.map(|()| false).map_err(malformed);
        };
        self.plain.clear();
        let fed = tls.feed(bytes, &mut self.plain).map_err(|why| OpenError::Tls(why.to_string()))?;
        if fed.closed && layers.handshake.is_none() {
            return Err(OpenError::Tls("the peer closed it".to_owned()));
        }
        if layers.handshake.is_some() {
            let plain = std::mem::take(&mut self.plain);
            let opened = self.open_websocket(connection, layers, &plain, now_ns, activity);
            self.plain = plain;
            return match (opened, &layers.handshake) {
                (Ok(false), Some(handshake)) if fed.closed => {
                    Err(no_websocket(handshake, Outcome::Closed, "the server closed the connection"))
                }
                (opened, _) => opened,
            };
        }
        if fed.handshake_done_now {
            if self.target.http == Http::V2 && tls.alpn() != Some(b"h2") {
                return Err(OpenError::Tls("the server does not choose h2 by ALPN".to_owned()));
            }
            let insecure = self.target.tls.as_ref().is_some_and(|tls| tls.insecure);
            self.tls.get_or_insert_with(|| TlsInfo {
                version: tls.version().to_owned(),
                cipher: tls.cipher(),
                alpn: tls.alpn().map(|name| String::from_utf8_lossy(name).into_owned()),
                insecure,
            });
            let ns = now_ns.saturating_sub(layers.handshake_since_ns);
            activity.events.push(ClientEvent::Handshake(Handshake { ns, resumed: tls.resumed() }));
        }
        if fed.handshake_done_now && self.opens_websocket() {
            let has_asked = self.ask_websocket(connection, layers, now_ns)?;
            // SETTINGS may arrive with the last bytes of the handshake.
            let plain = std::mem::take(&mut self.plain);
            let opened = if layers.stream.is_some() && !plain.is_empty() {
                self.open_websocket(connection, layers, &plain, now_ns, activity)
            } else {
                Ok(has_asked)
            };
            self.plain = plain;
            return opened;
        }
        // SETTINGS may arrive with the last bytes of the handshake.
        if let Some(http2) = &mut layers.http2 {
            http2.feed(&self.plain, &mut Vec::new()).map_err(malformed)?;
        }
        Ok(fed.handshake_done_now)
    }
}

/// Read the greeting on a WebSocket. Returns whether it is complete, so that the WebSocket is open.
fn greeted(
    session: &mut redline_websocket::Session,
    left: &mut u32,
    handshake: &mut Option<WebSocketHandshake>,
    mut bytes: &[u8],
) -> Result<bool, OpenError> {
    let failed = |outcome, why: String| Err(OpenError::WebSocket(outcome, why));
    while *left > 0 {
        match session.next(&mut bytes) {
            Ok(None) => return Ok(false),
            Ok(Some(WebSocketEvent::Message(..))) => *left -= 1,
            Ok(Some(WebSocketEvent::Ping | WebSocketEvent::Pong)) => {}
            Ok(Some(WebSocketEvent::Close(_))) => {
                return failed(Outcome::Closed, "the server closed the WebSocket before its greeting".to_owned());
            }
            Err(rule) => return failed(Outcome::Malformed, rule.to_string()),
        }
    }
    if !bytes.is_empty() {
        let why = "the server sent a message before it was asked: `greeting` is how many it sends".to_owned();
        return failed(Outcome::UnexpectedBody, why);
    }
    *handshake = None;
    Ok(true)
}

/// The error of a server that refuses to open a WebSocket.
pub fn refused(refusal: Refusal) -> OpenError {
    match refusal {
        Refusal::Status(why) => OpenError::WebSocket(Outcome::UnexpectedStatus, why),
        Refusal::Invalid(why) | Refusal::Subprotocol(why) | Refusal::Compression(why) => {
            OpenError::WebSocket(Outcome::Malformed, why)
        }
    }
}

/// The error of a server that says no more: its refusal, if it said one, or else this reason.
pub fn no_websocket(handshake: &WebSocketHandshake, outcome: Outcome, why: &str) -> OpenError {
    handshake.refusal().map_or_else(|| OpenError::WebSocket(outcome, why.to_owned()), refused)
}
