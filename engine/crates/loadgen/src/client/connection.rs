//! One connection to the target: its requests in flight, its parser, and the bytes to write.

use redline_http2::code_name;
use redline_wire::{
    Answer, Heads, Malformed, MessageValues, ParsedAnswer, Parser, ReadOptions, Record, StreamSoFar, Unfit,
};

use super::activity::OpenError;
use super::continuing::HeldBody;
use super::glimpse::Glimpse;
use super::layers::Layers;
use super::outbox::{Next, Outbox, Tape};
use super::pending::PendingQueue;
use super::tunnel::Reply;
use crate::first_failures::Cause;
use crate::ids::{PendingId, TapeId};
use crate::job::Opening;

/// A server that closes a connection sooner than this after its last answer does not do so because it was idle.
const QUIET_NS: u64 = 100_000_000;

/// A connection's memory, kept from one socket to the next. It is small, for there may be hundreds of thousands.
#[expect(clippy::struct_excessive_bools, reason = "they are independent, and all combinations occur")]
pub struct Connection {
    /// The requests in flight on it.
    queue: PendingQueue,
    outbox: Outbox,
    /// The parser of HTTP/1.1.
    parser: Parser,
    /// The part of an HTTP/1.1 answer that has arrived, if it arrives in pieces.
    glimpse: Option<Box<Glimpse>>,
    /// The body of the request in flight, while it waits for an answer 100.
    held: Option<Box<HeldBody>>,
    /// The state of TLS and HTTP/2.
    layers: Option<Box<Layers>>,
    /// When the present socket began to be opened.
    opened_ns: u64,
    /// When the last answer arrived on the present socket, or else when it was opened.
    quiet_since_ns: u64,
    /// Requests put on the present socket so far.
    carried: u32,
    /// The kernel has not yet reported the end of a write.
    submitted: bool,
    /// The socket's send buffer is full.
    full: bool,
    /// The peer has reset the present socket, so nothing can be written.
    unwritable: bool,
    /// No more requests may be put on the present socket.
    closing: bool,
    /// The peer said by GOAWAY which requests on the present socket it processes, at least one of them; it ignores the rest.
    is_leaving: bool,
    /// An earlier socket of this connection was open, which the next socket replaces.
    was_open: bool,
    /// An answer arrived on the present socket.
    answered: bool,
    /// The present socket had been quiet for a while when the first of the requests in flight was put on it, and no part of an
    /// answer has arrived since.
    after_quiet: bool,
}

impl Connection {
    pub fn new() -> Self {
        Self {
            queue: PendingQueue::EMPTY,
            outbox: Outbox::default(),
            parser: Parser::new(),
            glimpse: None,
            held: None,
            layers: None,
            opened_ns: 0,
            quiet_since_ns: 0,
            carried: 0,
            submitted: false,
            full: false,
            unwritable: false,
            closing: false,
            is_leaving: false,
            was_open: false,
            answered: false,
            after_quiet: false,
        }
    }

    /// A new socket is being opened.
    pub fn begin(&mut self, now_ns: u64) {
        self.opened_ns = now_ns;
        self.answered = false;
    }

    /// When the present socket began to be opened.
    pub fn opened_ns(&self) -> u64 {
        self.opened_ns
    }

    /// The socket is open. Returns whether it replaces an earlier socket.
    pub fn opened(&mut self, now_ns: u64) -> bool {
        self.quiet_since_ns = now_ns;
        std::mem::replace(&mut self.was_open, true)
    }

    /// The socket was closed: drop everything that was received or was to be written on it.
    pub fn end(&mut self) {
        debug_assert!(self.queue.is_empty());
        self.parser.reset();
        self.glimpse = None;
        self.held = None;
        self.outbox.clear();
        self.layers = None;
        self.carried = 0;
        self.submitted = false;
        self.full = false;
        self.unwritable = false;
        self.closing = false;
        self.is_leaving = false;
        self.after_quiet = false;
    }

    /// How many requests are in flight.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.queue.len()
    }

    /// Whether no request is in flight.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    #[inline]
    pub fn first_pending(&self) -> Option<PendingId> {
        self.queue.first()
    }

    /// The requests in flight, for callers that add and remove them.
    #[inline]
    pub fn queue_mut(&mut self) -> &mut PendingQueue {
        &mut self.queue
    }

    /// A request is put on the present socket.
    #[inline]
    pub fn count_request(&mut self, now_ns: u64) {
        self.carried += 1;
        if self.queue.is_empty() {
            self.after_quiet = self.is_quiet(now_ns);
        }
    }

    /// Whether the present socket has been quiet for so long that the peer may close it (RFC 9112, section 9.5).
    #[inline]
    pub fn is_quiet(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.quiet_since_ns) >= QUIET_NS
    }

    /// Whether the peer may have closed the present socket before it received the requests in flight: it had been quiet, and no
    /// part of an answer has arrived.
    pub fn may_have_crossed(&self) -> bool {
        self.after_quiet
            && self.parser.is_between()
            && !self.is_websocket()
            && !self.http2().is_some_and(redline_http2::Session::is_answering)
    }

    /// How many requests were put on the present socket.
    #[inline]
    pub fn carried(&self) -> u32 {
        self.carried
    }

    /// No more requests may be put on the present socket.
    pub fn refuse_requests(&mut self) {
        self.closing = true;
    }

    #[inline]
    pub fn refuses_requests(&self) -> bool {
        self.closing
    }

    /// The peer accepts no more requests, and processes those up to this stream.
    pub fn go_away(&mut self, last: i32) {
        self.closing = true;
        // A server that processes nothing could do so for ever, so that this counts against the requests.
        self.is_leaving = last > 0;
    }

    pub fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// An answer arrived. Returns whether it is the first on the present socket.
    #[inline]
    pub fn answer_came(&mut self, now_ns: u64) -> bool {
        self.quiet_since_ns = now_ns;
        self.after_quiet = false;
        !std::mem::replace(&mut self.answered, true)
    }

    pub fn has_answered(&self) -> bool {
        self.answered
    }

    /// Read bytes up to the end of an HTTP/1.1 answer, as [`Parser::feed`] does.
    ///
    /// # Errors
    /// When the bytes are not a response.
    #[inline]
    pub fn parse(
        &mut self,
        bytes: &[u8],
        options: ReadOptions,
        heads: &mut Heads,
    ) -> Result<Option<ParsedAnswer>, Malformed> {
        self.parser.feed(bytes, options, heads)
    }

    /// Whether a part of an incomplete HTTP/1.1 answer has arrived.
    pub fn has_begun(&self) -> bool {
        self.parser.has_begun()
    }

    /// How much of the present HTTP/1.1 answer has arrived, if it is a stream whose events are counted.
    pub fn stream(&self) -> Option<StreamSoFar> {
        self.parser.stream()
    }

    /// The answer that is complete because the peer sends no more. Never an HTTP/2 answer.
    pub fn parse_end(&mut self, options: ReadOptions) -> Option<Answer> {
        if self.http2().is_none() { self.parser.end(options) } else { None }
    }

    /// Take what was read in messages of the present or the last HTTP/1.1 answer.
    pub fn take_values(&mut self) -> MessageValues {
        self.parser.take_values()
    }

    /// Record the next HTTP/1.1 answer, with up to `keeps` bytes of its body.
    pub fn record(&mut self, keeps: usize) {
        self.parser.record(keeps);
    }

    /// The record of the last HTTP/1.1 answer, if it was recorded.
    #[inline]
    pub fn take_record(&mut self) -> Option<Box<Record>> {
        self.parser.take_record()
    }

    /// The record of the present answer of any version, if it is recorded.
    pub fn take_any_record(&mut self) -> Option<Box<Record>> {
        match self.http2_mut() {
            Some(http2) => http2.take_record(),
            None => self.take_record(),
        }
    }

    /// A piece of an HTTP/1.1 answer arrived that does not complete it.
    pub fn glimpse(&mut self, piece: &[u8]) {
        self.glimpse.get_or_insert_default().add(piece);
    }

    /// The HTTP/1.1 answer is complete.
    #[inline]
    pub fn forget_glimpse(&mut self) {
        if let Some(glimpse) = &mut self.glimpse {
            glimpse.clear();
        }
    }

    /// How many bytes of an incomplete HTTP/1.1 answer have arrived.
    pub fn glimpsed(&self) -> u64 {
        self.glimpse.as_ref().map_or(0, |glimpse| glimpse.length())
    }

    /// Why the present HTTP/1.1 answer fails, with its bytes around a position. `piece` arrived last.
    pub fn cause(&self, reason: String, at: Option<u64>, piece: &[u8]) -> Cause {
        let shown = match &self.glimpse {
            Some(glimpse) => glimpse.around(piece, at),
            None => Glimpse::default().around(piece, at),
        };
        Cause { reason, at, shown, request: None }
    }

    /// The body of the last complete HTTP/1.1 answer, if it was kept.
    #[inline]
    pub fn body(&self) -> &[u8] {
        self.parser.body()
    }

    /// The head of the last complete HTTP/1.1 answer, if any of it was kept.
    #[inline]
    pub fn head(&self) -> &[u8] {
        self.parser.kept_head()
    }

    #[inline]
    pub fn forget_body(&mut self) {
        self.parser.forget_body();
    }

    /// Whether TLS or HTTP/2 is between the requests and the socket.
    #[inline]
    pub fn has_layers(&self) -> bool {
        self.layers.is_some()
    }

    pub fn set_layers(&mut self, layers: Box<Layers>) {
        self.layers = Some(layers);
    }

    /// Take the layers, which the caller puts back.
    pub fn take_layers(&mut self) -> Option<Box<Layers>> {
        self.layers.take()
    }

    /// Whether a proxy has not yet opened the tunnel.
    pub fn is_tunnelling(&self) -> bool {
        self.layers.as_deref().is_some_and(|layers| layers.tunnel.is_some())
    }

    /// A proxy sent these bytes.
    pub fn feed_tunnel(&mut self, bytes: &[u8]) {
        if let Some(tunnel) = self.layers.as_deref_mut().and_then(|layers| layers.tunnel.as_mut()) {
            tunnel.feed(bytes);
        }
    }

    /// What the proxy has said. The layers of an open tunnel are gone, so it opens only once the kernel has all of CONNECT.
    pub fn tunnel_reply(&mut self) -> Reply {
        let is_written = self.is_writable();
        let Some(Layers { tunnel: Some(tunnel), sealed, .. }) = self.layers.as_deref_mut() else {
            return Reply::Incomplete;
        };
        if !is_written || !sealed.is_empty() {
            return Reply::Incomplete;
        }
        let reply = tunnel.reply();
        if matches!(reply, Reply::Open(_)) {
            self.layers = None;
        }
        reply
    }

    pub fn is_tls(&self) -> bool {
        self.layers.as_deref().is_some_and(|layers| layers.tls.is_some())
    }

    #[inline]
    pub fn tls_mut(&mut self) -> Option<&mut redline_tls::Session> {
        self.layers.as_deref_mut()?.tls.as_mut()
    }

    /// Its HTTP/2 session; `None` for HTTP/1.1.
    #[inline]
    pub fn http2(&self) -> Option<&redline_http2::Session> {
        self.layers.as_deref()?.http2.as_ref()
    }

    #[inline]
    pub fn http2_mut(&mut self) -> Option<&mut redline_http2::Session> {
        self.layers.as_deref_mut()?.http2.as_mut()
    }

    /// Whether it is a WebSocket that is open.
    #[inline]
    pub fn is_websocket(&self) -> bool {
        self.layers.as_deref().is_some_and(|layers| layers.websocket.is_some())
    }

    /// The handshake of a WebSocket that the server has not answered.
    pub fn handshake(&self) -> Option<&redline_websocket::Handshake> {
        self.layers.as_deref()?.handshake.as_ref()
    }

    /// Whether it is a WebSocket that is open, or that the server was asked to open.
    #[inline]
    pub fn speaks_websocket(&self) -> bool {
        self.layers
            .as_deref()
            .is_some_and(|layers| layers.websocket.is_some() || layers.handshake.is_some() || layers.stream.is_some())
    }

    /// The stream of HTTP/2 that carries a WebSocket.
    #[inline]
    pub fn stream_mut(&mut self) -> Option<&mut redline_http2::Tunnel> {
        self.layers.as_deref_mut()?.stream.as_deref_mut()
    }

    /// Why a WebSocket ends without a close frame, with the connection.
    pub fn end_of_websocket(&self) -> String {
        let gone = self.layers.as_deref().and_then(|layers| layers.stream.as_ref()).and_then(|stream| stream.gone());
        match gone {
            Some(code) => format!("the server ended the connection after GOAWAY with {}", code_name(code)),
            None => "the connection ended without a close frame, before the answer".to_owned(),
        }
    }

    /// Ask for a WebSocket.
    ///
    /// # Errors
    /// When its stream cannot be opened.
    #[cold]
    pub fn ask_websocket(&mut self, opening: &Opening) -> Result<(), OpenError> {
        self.layers.get_or_insert_default().ask_websocket(opening, &mut self.outbox)
    }

    /// Append frames of a WebSocket.
    #[inline]
    pub fn stage_frames(&mut self, write: impl FnOnce(&mut redline_websocket::Session, &mut Vec<u8>)) {
        let Self { layers, outbox, .. } = self;
        if let Some(session) = layers.as_deref_mut().and_then(|layers| layers.websocket.as_mut()) {
            outbox.stage(|out| write(session, out));
        }
    }

    /// The bytes of requests, while the layers are taken.
    pub fn outbox_mut(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// The fields that are kept of the answer to a request, which is a stream that has not ended.
    pub fn fields_of(&self, pending: PendingId) -> &[u8] {
        match self.layers.as_deref() {
            Some(Layers { http2: Some(http2), .. }) => http2.fields(pending.0),
            Some(Layers { websocket: Some(_), head, .. }) => head,
            _ => self.head(),
        }
    }

    /// Cancel the stream of a request. Returns false when the connection has no streams.
    pub fn cancel_stream(&mut self, pending: PendingId) -> bool {
        let http2 = self.http2_mut();
        let has_streams = http2.is_some();
        if let Some(http2) = http2 {
            http2.cancel(pending.0);
        }
        has_streams
    }

    /// Keep the body of a request back. Unless it is released before the answer, that answer is the last on this socket
    /// (RFC 9110, section 10.1.1).
    pub fn hold(&mut self, body: HeldBody) {
        self.held = Some(Box::new(body));
        self.closing = true;
    }

    /// Bytes arrived that complete no final answer. Returns whether they let a body go, which is to be written.
    pub fn hear(&mut self, bytes: &[u8]) -> bool {
        let continues = self.held.as_deref_mut().is_some_and(|held| held.hear(bytes));
        continues && self.release()
    }

    /// The number of the body that is kept back and not refused.
    pub fn held(&self) -> Option<u64> {
        self.held.as_deref().filter(|held| held.waits()).map(|held| held.number)
    }

    /// Append the body that was kept back.
    pub fn release(&mut self) -> bool {
        let Some(held) = self.held.take() else {
            return false;
        };
        self.closing = self.unwritable;
        if !held.own.is_empty() {
            self.outbox.stage(|out| out.extend_from_slice(&held.own));
        }
        if let Some((tape, length)) = held.tape {
            self.outbox.push_tape(tape, length);
        }
        true
    }

    /// Append a request of a tape, or the rest of a request.
    #[inline]
    pub fn push_tape(&mut self, tape: TapeId, length: usize) {
        self.outbox.push_tape(tape, length);
    }

    /// Append bytes that are rendered for this connection.
    #[inline]
    pub fn stage(&mut self, render: impl FnOnce(&mut Vec<u8>) -> Result<(), Unfit>) -> Result<(), Unfit> {
        self.outbox.try_stage(render)
    }

    /// Whether requests wait for room in the socket, so that a later request would wait too. HTTP/2 streams do not wait for
    /// each other.
    pub fn is_blocked(&self) -> bool {
        match self.layers.as_deref() {
            Some(layers) => layers.http2.is_none() && (!self.outbox.is_empty() || layers.is_blocked()),
            None => !self.outbox.is_empty(),
        }
    }

    /// Whether the socket accepts another write now.
    #[inline]
    pub fn is_writable(&self) -> bool {
        !self.submitted && !self.full
    }

    /// The bytes to write next. The connection must be writable.
    ///
    /// # Errors
    /// When TLS cannot encrypt.
    #[inline]
    pub fn next_out<'a>(&'a mut self, tapes: &'a [Tape], plain: &mut Vec<u8>) -> Result<Option<Next<'a>>, String> {
        match &mut self.layers {
            None => Ok(self.outbox.next(tapes)),
            Some(layers) if layers.passes_bytes() => Ok(self.outbox.next(tapes)),
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
            Some(layers) if layers.passes_bytes() => self.outbox.consume(bytes),
            Some(layers) => layers.sealed.consume(bytes),
        }
    }

    /// The kernel has these bytes, and reports later how many of them it took.
    #[inline]
    pub fn submitted(&mut self) {
        self.submitted = true;
    }

    /// The socket's send buffer is full.
    #[inline]
    pub fn filled(&mut self) {
        self.full = true;
    }

    /// The kernel took this many bytes of the submitted write, and the socket has room.
    #[inline]
    pub fn sent(&mut self, bytes: usize) {
        self.submitted = false;
        self.full = false;
        if bytes > 0 {
            self.consume(bytes);
        }
    }

    /// Nothing can be written on the present socket any more.
    pub fn refuse_writes(&mut self) {
        self.closing = true;
        self.full = true;
        self.unwritable = true;
    }

    /// Whether nothing can be written on the present socket any more.
    pub fn refuses_writes(&self) -> bool {
        self.unwritable
    }
}
