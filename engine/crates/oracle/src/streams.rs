//! The server's side of an HTTP/2 connection, without its socket: frames become requests, answers become frames (RFC 9113).
//!
//! nghttp2 frames, compresses and keeps the windows. The engine has it too, so that is not judged by these answers; when and with
//! what requests are answered is decided by the [`Respondent`], as for HTTP/1.1.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::slice;

use libnghttp2_sys as ng;

use crate::agenda::Due;
use crate::conversation::{Conversation, MOST_KEPT_BYTES, Release, Respondent, agreed};
use crate::endings::Ending;
use crate::sessions::{Asked, Reply};
use crate::websocket::first_of;

/// The window of a stream and of the connection, 16 MiB: bytes are consumed at once.
const WINDOW: i32 = 16 << 20;
const OK: u16 = 200;
/// Streams at the same time.
const MOST_STREAMS: u32 = 10_000;

/// The connection broke the rules of HTTP/2, or memory ran out.
#[derive(Debug)]
pub struct Broken;

/// The streams of a connection.
#[derive(Debug)]
pub struct Streams {
    session: NonNull<ng::nghttp2_session>,
    /// From `Box::into_raw`; also nghttp2's user data. No reference to it lives across a call that runs callbacks.
    state: NonNull<State>,
}

// SAFETY: only this value owns the pointers, and nghttp2 ties a session to no thread.
unsafe impl Send for Streams {}

#[derive(Debug, Default)]
struct State {
    streams: HashMap<i32, Stream>,
    /// Complete requests that are not yet answered, in their order.
    complete: Vec<i32>,
    /// The stream that is a WebSocket, once it is asked for.
    websocket: Option<Box<WebSocketStream>>,
    keeps_bodies: bool,
    answered: u64,
    /// The newest stream that was answered.
    newest: i32,
    /// The last stream that is answered, once it is known.
    last: Option<i32>,
    /// Whether GOAWAY is still to be written.
    goes_away: bool,
    /// Requests past the last stream.
    passed_over: u64,
}

/// A request, and then its answer.
#[derive(Debug, Default)]
struct Stream {
    name: Vec<u8>,
    post: bool,
    length: u64,
    kept: Vec<u8>,
    cookie: Vec<u8>,
    token: Vec<u8>,
    /// The protocol of an extended CONNECT (RFC 8441), with the subprotocols and extensions that it offers.
    protocol: Vec<u8>,
    subprotocols: Vec<u8>,
    extensions: Vec<u8>,
    answer: Option<Answer>,
}

/// A stream that is a WebSocket (RFC 8441): one for each connection.
#[derive(Debug)]
struct WebSocketStream {
    id: i32,
    /// What was received and not yet taken.
    received: Vec<u8>,
    /// The client has ended its side.
    hears_end: bool,
    /// The messages, once it is open.
    conversation: Option<Conversation>,
    /// All was sent, the end of the stream too.
    is_sent: bool,
}

impl WebSocketStream {
    fn of(id: i32) -> Self {
        Self { id, received: Vec::new(), hears_end: false, conversation: None, is_sent: false }
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    content_type: &'static str,
    set_cookie: Vec<u8>,
    body: Vec<u8>,
    released: usize,
    sent: usize,
    begun: bool,
    resets: bool,
}

impl Streams {
    /// No streams yet; `None` when memory ran out.
    pub fn new(keeps_bodies: bool) -> Option<Self> {
        let state = NonNull::from(Box::leak(Box::new(State { keeps_bodies, ..State::default() })));
        let mut session = ptr::null_mut();
        let settings = [
            (ng::NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, MOST_STREAMS),
            (ng::NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW as u32),
            (ng::NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1),
        ]
        .map(|(id, value)| ng::nghttp2_settings_entry { settings_id: id as i32, value });
        // SAFETY: the callbacks are alive until they are deleted, and are copied; the callbacks keep the contracts of their types;
        // the state outlives the session.
        let made = unsafe {
            let mut callbacks = ptr::null_mut();
            let mut made = ng::nghttp2_session_callbacks_new(&raw mut callbacks);
            if made == 0 {
                ng::nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, Some(on_begin_frame));
                ng::nghttp2_session_callbacks_set_on_header_callback(callbacks, Some(on_header));
                ng::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Some(on_data));
                ng::nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Some(on_frame));
                ng::nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Some(on_close));
                made = ng::nghttp2_session_server_new(&raw mut session, callbacks, state.as_ptr().cast());
                ng::nghttp2_session_callbacks_del(callbacks);
            }
            made
        };
        let streams = NonNull::new(session).filter(|_| made == 0).map(|session| Self { session, state });
        let Some(streams) = streams else {
            // SAFETY: it came from a box just now, and nothing else has it.
            drop(unsafe { Box::from_raw(state.as_ptr()) });
            return None;
        };
        // SAFETY: the session is alive; the settings are copied.
        let introduced = unsafe {
            ng::nghttp2_submit_settings(streams.raw(), 0, settings.as_ptr(), settings.len())
                | ng::nghttp2_session_set_local_window_size(streams.raw(), 0, 0, WINDOW)
        };
        (introduced == 0).then_some(streams)
    }

    fn raw(&self) -> *mut ng::nghttp2_session {
        self.session.as_ptr()
    }

    fn state(&self) -> &State {
        // SAFETY: alive as long as `self`; callbacks, the only other users, run only inside methods that take `&mut self`.
        unsafe { self.state.as_ref() }
    }

    fn state_mut(&mut self) -> &mut State {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { self.state.as_mut() }
    }

    /// Takes received bytes. Asks `respondent` for an answer when a request is complete.
    pub fn receive(&mut self, bytes: &[u8], respondent: &mut impl Respondent) -> Result<(), Broken> {
        // SAFETY: the session is alive, and the bytes are.
        let taken = unsafe { ng::nghttp2_session_mem_recv2(self.raw(), bytes.as_ptr(), bytes.len()) };
        if taken < 0 {
            return Err(Broken);
        }
        for id in std::mem::take(&mut self.state_mut().complete) {
            self.answer(id, respondent)?;
        }
        self.converse(respondent)?;
        let passed_over = std::mem::take(&mut self.state_mut().passed_over);
        if passed_over > 0 {
            respondent.passed_over(passed_over);
        }
        Ok(())
    }

    /// Opens the WebSocket if it is asked for, and takes what was received on it.
    fn converse(&mut self, respondent: &mut impl Respondent) -> Result<(), Broken> {
        let raw = self.raw();
        let State { websocket: Some(websocket), streams, .. } = self.state_mut() else {
            return Ok(());
        };
        if websocket.conversation.is_none() {
            let Some(stream) = streams.remove(&websocket.id) else {
                return Ok(());
            };
            respondent.upgraded(&stream.name, OK);
            let deflate = agreed(&stream.extensions, respondent);
            websocket.conversation = Some(Conversation::websocket(deflate, respondent));
            let (subprotocol, extensions) = (first_of(&stream.subprotocols), deflate.map(|it| it.to_string()));
            let mut fields = vec![field(b":status", b"200")];
            if !subprotocol.is_empty() {
                fields.push(field(b"sec-websocket-protocol", subprotocol));
            }
            if let Some(extensions) = &extensions {
                fields.push(field(b"sec-websocket-extensions", extensions.as_bytes()));
            }
            let source = ng::nghttp2_data_source { ptr: ptr::null_mut() };
            let data = ng::nghttp2_data_provider2 { source, read_callback: Some(read_messages) };
            // SAFETY: the session is alive; nghttp2 copies the fields and the provider, and runs no callback.
            let opened = unsafe {
                ng::nghttp2_submit_response2(raw, websocket.id, fields.as_ptr(), fields.len(), &raw const data)
            };
            if opened != 0 {
                return Err(Broken);
            }
        }
        if let Some(conversation) = &mut websocket.conversation {
            conversation.receive_from(&std::mem::take(&mut websocket.received), respondent);
            if websocket.hears_end {
                conversation.end();
            }
        }
        self.resume();
        Ok(())
    }

    /// There may be more to send on the WebSocket.
    fn resume(&mut self) {
        if let Some(id) = self.state().websocket.as_ref().map(|websocket| websocket.id) {
            // SAFETY: the session is alive. It fails if nothing was deferred.
            unsafe { ng::nghttp2_session_resume_data(self.raw(), id) };
        }
    }

    /// Allows the next bytes of the WebSocket to be sent.
    pub fn release_message(&mut self, due: &Due) {
        let websocket = self.state_mut().websocket.as_mut();
        if let Some(conversation) = websocket.and_then(|websocket| websocket.conversation.as_mut()) {
            conversation.release(due);
            self.resume();
        }
    }

    /// The messages of the WebSocket, once it is open.
    pub fn messages(&self) -> Option<&Conversation> {
        self.state().websocket.as_ref().and_then(|websocket| websocket.conversation.as_ref())
    }

    fn answer(&mut self, id: i32, respondent: &mut impl Respondent) -> Result<(), Broken> {
        let state = self.state_mut();
        let Some(mut stream) = state.streams.remove(&id) else {
            return Ok(());
        };
        if state.last.is_none() {
            state.answered += 1;
            state.newest = state.newest.max(id);
            let ending = respondent.ending(state.answered);
            if ending != Ending::Open {
                // Streams that were opened before the newest are answered too; those that came after it are not.
                let last = state.newest;
                state.last = Some(last);
                let before = state.streams.len();
                state.streams.retain(|&open, _| open <= last);
                state.passed_over += (before - state.streams.len()) as u64;
                state.goes_away = ending == Ending::Said;
            }
        }
        let resets = respondent.resets();
        if stream.post {
            stream.name.extend_from_slice(format!(" {}", stream.length).as_bytes());
        }
        let Stream { name, length, kept: body, cookie, token, .. } = &stream;
        let asked = Asked { name, length: *length, body, cookie, token };
        let too_long = stream.length > MOST_KEPT_BYTES && respondent.keeps_bodies();
        let reply = if too_long { Reply::plain(413, b"") } else { respondent.reply(asked) };
        let (content_type, set_cookie, body) = (reply.content_type, reply.set_cookie.to_vec(), reply.body.to_vec());
        let length = body.len();
        let answer =
            Answer { status: reply.status, content_type, set_cookie, body, released: 0, sent: 0, begun: false, resets };
        stream.answer = Some(answer);
        self.state_mut().streams.insert(id, stream);
        if respondent.release(id, 0, length) == Release::Now && self.release(id, length, true) {
            return Err(Broken);
        }
        Ok(())
    }

    /// Allows the next `length` bytes of a stream's body to be sent, and its head before them. Returns whether the connection is
    /// to be reset instead.
    pub fn release(&mut self, id: i32, length: usize, last: bool) -> bool {
        let raw = self.raw();
        let Some(answer) = self.state_mut().streams.get_mut(&id).and_then(|stream| stream.answer.as_mut()) else {
            // The peer has reset the stream.
            return false;
        };
        if answer.resets {
            return last;
        }
        answer.released = (answer.released + length).min(answer.body.len());
        if std::mem::replace(&mut answer.begun, true) {
            // SAFETY: the session is alive. It fails if nothing was deferred, so if the bytes before were not yet taken.
            unsafe { ng::nghttp2_session_resume_data(raw, id) };
            return false;
        }
        let (status, length) = (answer.status.to_string(), answer.body.len().to_string());
        let mut fields = vec![
            field(b":status", status.as_bytes()),
            field(b"content-type", answer.content_type.as_bytes()),
            field(b"content-length", length.as_bytes()),
        ];
        if !answer.set_cookie.is_empty() {
            fields.push(field(b"set-cookie", &answer.set_cookie));
        }
        let source = ng::nghttp2_data_source { ptr: ptr::null_mut() };
        let data = ng::nghttp2_data_provider2 { source, read_callback: Some(read_body) };
        let data = if answer.body.is_empty() { ptr::null() } else { &raw const data };
        // SAFETY: the session is alive; nghttp2 copies the fields and the provider, and runs no callback.
        unsafe { ng::nghttp2_submit_response2(raw, id, fields.as_ptr(), fields.len(), data) != 0 }
    }

    /// Adds frames that may be sent. Returns whether there may be more.
    pub fn write(&mut self, to: &mut Vec<u8>) -> bool {
        let mut frames = ptr::null();
        // SAFETY: the session is alive; the bytes are, until its next use.
        let written = unsafe {
            let length = ng::nghttp2_session_mem_send2(self.raw(), &raw mut frames);
            if length > 0 { slice::from_raw_parts(frames, length as usize) } else { &[] }
        };
        to.extend_from_slice(written);
        let state = self.state_mut();
        match state.last {
            // Not by nghttp2, which then looks at no later stream: these are to be counted.
            Some(last) if written.is_empty() && std::mem::take(&mut state.goes_away) => {
                let [a, b, c, d] = last.to_be_bytes();
                to.extend_from_slice(&[0, 0, 8, ng::NGHTTP2_GOAWAY as u8, 0, 0, 0, 0, 0, a, b, c, d, 0, 0, 0, 0]);
                true
            }
            _ => !written.is_empty(),
        }
    }

    /// Whether the last answer, or what is wrong with the connection, was sent.
    pub fn have_finished(&self) -> bool {
        let State { last, goes_away, streams, websocket, .. } = self.state();
        let answered = !goes_away && last.is_some_and(|last| streams.keys().all(|&id| id > last));
        let answered = answered || websocket.as_ref().is_some_and(|websocket| websocket.is_sent);
        // SAFETY: the session is alive; this only reads it.
        let (reads, writes) = unsafe {
            let raw = self.raw();
            (ng::nghttp2_session_want_read(raw) != 0, ng::nghttp2_session_want_write(raw) != 0)
        };
        !writes && (answered || !reads)
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        // SAFETY: nothing uses the session after this, and the state, which came from a box, outlives it.
        unsafe {
            ng::nghttp2_session_del(self.session.as_ptr());
            drop(Box::from_raw(self.state.as_ptr()));
        }
    }
}

fn field(name: &[u8], value: &[u8]) -> ng::nghttp2_nv {
    let (name, namelen) = (name.as_ptr().cast_mut(), name.len());
    ng::nghttp2_nv { name, value: value.as_ptr().cast_mut(), namelen, valuelen: value.len(), flags: 0 }
}

/// The state, for the duration of a callback.
///
/// # Safety
/// `user` is the user data that the session was made with, and no other reference to it lives.
unsafe fn state<'a>(user: *mut c_void) -> &'a mut State {
    // SAFETY: the caller's promise.
    unsafe { &mut *user.cast() }
}

unsafe extern "C" fn on_begin_frame(
    _session: *mut ng::nghttp2_session,
    head: *const ng::nghttp2_frame_hd,
    user: *mut c_void,
) -> c_int {
    // SAFETY: nghttp2 passes a head and our user data.
    let (state, head) = unsafe { (state(user), *head) };
    if u32::from(head.type_) == ng::NGHTTP2_HEADERS {
        if state.last.is_some_and(|last| head.stream_id > last) {
            state.passed_over += 1;
        } else {
            state.streams.entry(head.stream_id).or_default();
        }
    }
    0
}

unsafe extern "C" fn on_header(
    _session: *mut ng::nghttp2_session,
    frame: *const ng::nghttp2_frame,
    name: *const u8,
    name_length: usize,
    value: *const u8,
    value_length: usize,
    _flags: u8,
    user: *mut c_void,
) -> c_int {
    // SAFETY: nghttp2 passes a frame, whose head is always there, a name and a value with their lengths, which end with a zero
    // byte even if they are empty, and our user data.
    let (state, id, name, value) = unsafe {
        let (name, value) = (slice::from_raw_parts(name, name_length), slice::from_raw_parts(value, value_length));
        (state(user), (*frame).hd.stream_id, name, value)
    };
    let Some(stream) = state.streams.get_mut(&id) else {
        return 0;
    };
    match name {
        b":path" => stream.name = value.strip_prefix(b"/").unwrap_or(value).to_vec(),
        b":method" => stream.post = value == b"POST",
        // A client may send a cookie in several fields (RFC 9113, 8.2.3).
        b"cookie" if stream.cookie.is_empty() => stream.cookie = value.to_vec(),
        b"cookie" => stream.cookie.extend_from_slice(&[b"; ", value].concat()),
        b"x-token" => stream.token = value.to_vec(),
        b":protocol" => stream.protocol = value.to_vec(),
        b"sec-websocket-protocol" => stream.subprotocols = value.to_vec(),
        b"sec-websocket-extensions" => stream.extensions = value.to_vec(),
        _ => {}
    }
    0
}

unsafe extern "C" fn on_data(
    _session: *mut ng::nghttp2_session,
    _flags: u8,
    id: i32,
    data: *const u8,
    length: usize,
    user: *mut c_void,
) -> c_int {
    // SAFETY: nghttp2 passes our user data.
    let state = unsafe { state(user) };
    let keeps = state.keeps_bodies;
    if let Some(websocket) = state.websocket.as_mut().filter(|websocket| websocket.id == id) {
        // SAFETY: nghttp2 passes as many bytes as it says.
        websocket.received.extend_from_slice(unsafe { slice::from_raw_parts(data, length) });
        return 0;
    }
    if let Some(stream) = state.streams.get_mut(&id) {
        stream.length += length as u64;
        if keeps && length > 0 && stream.length <= MOST_KEPT_BYTES {
            // SAFETY: nghttp2 passes as many bytes as it says.
            stream.kept.extend_from_slice(unsafe { slice::from_raw_parts(data, length) });
        }
    }
    0
}

unsafe extern "C" fn on_frame(
    _session: *mut ng::nghttp2_session,
    frame: *const ng::nghttp2_frame,
    user: *mut c_void,
) -> c_int {
    // SAFETY: nghttp2 passes a frame, whose head is always there, and our user data.
    let (state, head) = unsafe { (state(user), (*frame).hd) };
    let (id, kind) = (head.stream_id, u32::from(head.type_));
    let carries = [ng::NGHTTP2_HEADERS, ng::NGHTTP2_DATA].contains(&kind);
    let is_last = carries && u32::from(head.flags) & ng::NGHTTP2_FLAG_END_STREAM != 0;
    let asks = |stream: &Stream| stream.protocol == b"websocket";
    if state.websocket.is_none() && kind == ng::NGHTTP2_HEADERS && state.streams.get(&id).is_some_and(asks) {
        state.websocket = Some(Box::new(WebSocketStream::of(id)));
    }
    if let Some(websocket) = state.websocket.as_mut().filter(|websocket| websocket.id == id) {
        websocket.hears_end |= is_last;
    } else if is_last && state.streams.contains_key(&id) {
        state.complete.push(id);
    }
    0
}

unsafe extern "C" fn on_close(_session: *mut ng::nghttp2_session, id: i32, _code: u32, user: *mut c_void) -> c_int {
    // SAFETY: nghttp2 passes our user data.
    let state = unsafe { state(user) };
    state.streams.remove(&id);
    if let Some(websocket) = state.websocket.as_mut().filter(|websocket| websocket.id == id) {
        websocket.is_sent = true;
    }
    0
}

unsafe extern "C" fn read_body(
    _session: *mut ng::nghttp2_session,
    id: i32,
    buffer: *mut u8,
    most: usize,
    flags: *mut u32,
    _source: *mut ng::nghttp2_data_source,
    user: *mut c_void,
) -> ng::nghttp2_ssize {
    // SAFETY: nghttp2 passes our user data.
    let state = unsafe { state(user) };
    let Some(answer) = state.streams.get_mut(&id).and_then(|stream| stream.answer.as_mut()) else {
        return ng::NGHTTP2_ERR_CALLBACK_FAILURE as isize;
    };
    let ready = &answer.body[answer.sent..answer.released];
    if ready.is_empty() {
        return ng::NGHTTP2_ERR_DEFERRED as isize;
    }
    let length = ready.len().min(most);
    answer.sent += length;
    // SAFETY: nghttp2 passes a buffer for `most` bytes and a place for flags.
    unsafe {
        ptr::copy_nonoverlapping(ready.as_ptr(), buffer, length);
        if answer.sent == answer.body.len() {
            *flags |= ng::NGHTTP2_DATA_FLAG_EOF;
        }
    }
    length as isize
}

unsafe extern "C" fn read_messages(
    _session: *mut ng::nghttp2_session,
    _id: i32,
    buffer: *mut u8,
    most: usize,
    flags: *mut u32,
    _source: *mut ng::nghttp2_data_source,
    user: *mut c_void,
) -> ng::nghttp2_ssize {
    // SAFETY: nghttp2 passes our user data.
    let Some(websocket) = unsafe { state(user) }.websocket.as_mut() else {
        return ng::NGHTTP2_ERR_CALLBACK_FAILURE as isize;
    };
    let Some(conversation) = websocket.conversation.as_mut() else {
        return ng::NGHTTP2_ERR_CALLBACK_FAILURE as isize;
    };
    let ready = conversation.outgoing();
    let length = ready.len().min(most);
    // SAFETY: nghttp2 passes a buffer for `most` bytes and a place for flags.
    unsafe { ptr::copy_nonoverlapping(ready.as_ptr(), buffer, length) };
    conversation.left(length);
    if conversation.has_finished() || conversation.is_over() {
        websocket.is_sent = true;
        // SAFETY: as above.
        unsafe { *flags |= ng::NGHTTP2_DATA_FLAG_EOF };
    } else if length == 0 {
        return ng::NGHTTP2_ERR_DEFERRED as isize;
    }
    length as isize
}

#[cfg(test)]
mod tests;
