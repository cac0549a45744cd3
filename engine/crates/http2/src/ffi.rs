//! The binding to nghttp2; together with [`callbacks`], all unsafe code of this crate. [`Connection`] owns an `nghttp2_session`
//! and the [`Streams`] that its callbacks change. No type of nghttp2 leaves this module.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use libnghttp2_sys as ng;

use crate::MOST_HEAD_BYTES;
use crate::event::{BodyOptions, Error};
use crate::message::Message;
use crate::pipe::Pipe;
use crate::slot::Slot;
use crate::streams::{Place, Streams};

mod callbacks;
mod pool;

use pool::Pool;

/// The window of a stream, 16 MiB. Bytes are consumed at once, so it bounds only what the peer sends ahead.
const STREAM_WINDOW: u32 = 16 << 20;
/// The window of the connection, 1 GiB, so that updates of it are rare.
const CONNECTION_WINDOW: i32 = 1 << 30;
/// Answers to PING and SETTINGS that may wait to be written. A peer that causes more is flooding.
const MOST_ACKS: usize = 1000;

/// Whether this side ended the connection, and with which error code (RFC 9113, section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    Alive,
    Ended { code: u32 },
}

/// An `nghttp2_session`, and the state that its callbacks change.
pub struct Connection {
    session: NonNull<ng::nghttp2_session>,
    /// From `Box::into_raw`; also nghttp2's user data. No reference to it lives across a call that runs callbacks.
    streams: NonNull<Streams>,
    /// From `Box::into_raw`; used only by nghttp2's memory hooks.
    pool: NonNull<Pool>,
}

// SAFETY: only this value owns the pointers, and nghttp2 ties a session to no thread.
unsafe impl Send for Connection {}

impl Connection {
    pub fn new() -> Result<Self, Error> {
        let streams = NonNull::from(Box::leak(Box::<Streams>::default()));
        let pool = NonNull::from(Box::leak(Box::<Pool>::default()));
        let Ok(session) = new_session(streams, pool) else {
            // SAFETY: both came from boxes just now, and nothing else has them.
            unsafe { drop((Box::from_raw(streams.as_ptr()), Box::from_raw(pool.as_ptr()))) };
            return Err(Error::Memory);
        };
        let connection = Self { session, streams, pool };
        connection.introduce()?;
        Ok(connection)
    }

    fn raw(&self) -> *mut ng::nghttp2_session {
        self.session.as_ptr()
    }

    fn introduce(&self) -> Result<(), Error> {
        let settings = [
            setting(ng::NGHTTP2_SETTINGS_ENABLE_PUSH, 0),
            setting(ng::NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            setting(ng::NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, MOST_HEAD_BYTES as u32),
        ];
        // SAFETY: the session is alive; the settings are copied.
        let done = unsafe {
            let submitted = ng::nghttp2_submit_settings(self.raw(), 0, settings.as_ptr(), settings.len());
            submitted | ng::nghttp2_session_set_local_window_size(self.raw(), 0, 0, CONNECTION_WINDOW)
        };
        if done == 0 { Ok(()) } else { Err(Error::Memory) }
    }

    pub fn streams(&self) -> &Streams {
        // SAFETY: alive as long as `self`; callbacks, the only other users, run only inside methods that take `&mut self`.
        unsafe { self.streams.as_ref() }
    }

    pub fn streams_mut(&mut self) -> &mut Streams {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { self.streams.as_mut() }
    }

    pub fn may_open(&self) -> bool {
        // SAFETY: the session is alive; this only reads it.
        unsafe { ng::nghttp2_session_check_request_allowed(self.raw()) != 0 }
    }

    pub fn most_streams(&self) -> u32 {
        let which = ng::NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS;
        // SAFETY: the session is alive; this only reads it.
        unsafe { ng::nghttp2_session_get_remote_settings(self.raw(), which) }
    }

    pub fn wants_write(&self) -> bool {
        // SAFETY: the session is alive; this only reads it.
        unsafe { ng::nghttp2_session_want_write(self.raw()) != 0 }
    }

    /// Frames that wait to be serialized.
    pub fn queued(&self) -> usize {
        // SAFETY: the session is alive; this only reads it.
        unsafe { ng::nghttp2_session_get_outbound_queue_size(self.raw()) }
    }

    pub fn open(
        &mut self,
        fields: &[(&[u8], &[u8])],
        body: Option<Arc<[u8]>>,
        options: BodyOptions,
        token: u32,
    ) -> Result<i32, Error> {
        let has_body = body.is_some();
        let head_only = fields.contains(&(b":method", b"HEAD"));
        let connects = fields.contains(&(b":method", b"CONNECT"));
        let place = self.streams_mut().add(Slot::new(token, Message::new(head_only, connects), body, options));
        let read = if connects { callbacks::read_pipe } else { callbacks::read_body };
        let data = ng::nghttp2_data_provider2 { source: source_of(place), read_callback: Some(read) };
        let data = if has_body || connects { &raw const data } else { ptr::null() };
        let mut few = [NO_FIELD; 16];
        let mut many = Vec::new();
        let list = if fields.len() <= few.len() {
            &mut few[..fields.len()]
        } else {
            many.resize(fields.len(), NO_FIELD);
            &mut many[..]
        };
        for (entry, (name, value)) in list.iter_mut().zip(fields) {
            *entry = field(name, value);
        }
        // SAFETY: the session is alive; nghttp2 copies the fields and the provider, and runs no callback.
        let stream = unsafe {
            let (list, count) = (list.as_ptr(), list.len());
            ng::nghttp2_submit_request2(self.raw(), ptr::null(), list, count, data, user_data_of(place))
        };
        if stream < 0 {
            self.streams_mut().remove(place);
            return Err(if stream == ng::NGHTTP2_ERR_NOMEM { Error::Memory } else { Error::NoRoom });
        }
        self.streams_mut().set_stream(place, stream);
        if connects {
            self.streams_mut().pipe = Some(Box::new(Pipe::new(place, stream)));
        }
        Ok(stream)
    }

    /// More is to be sent on the stream that carries another protocol, or its end.
    pub fn resume_pipe(&mut self) {
        let Some(pipe) = self.streams_mut().pipe.as_mut().filter(|pipe| pipe.is_deferred) else { return };
        pipe.is_deferred = false;
        let stream = pipe.stream;
        // SAFETY: the session is alive. The only errors are lack of memory, and that the stream has ended.
        unsafe { ng::nghttp2_session_resume_data(self.raw(), stream) };
    }

    /// Whether the peer allows extended CONNECT (RFC 8441, section 3).
    pub fn allows_connect(&self) -> bool {
        let which = ng::NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL;
        // SAFETY: the session is alive; this only reads it.
        unsafe { ng::nghttp2_session_get_remote_settings(self.raw(), which) == 1 }
    }

    pub fn reset(&mut self, stream: i32) {
        // SAFETY: the session is alive. The only error is lack of memory, which ends the session at its next use.
        unsafe { ng::nghttp2_submit_rst_stream(self.raw(), 0, stream, ng::NGHTTP2_CANCEL) };
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Error> {
        // SAFETY: the session is alive, and the bytes are read only during the call. No reference to the streams lives.
        let taken = unsafe { ng::nghttp2_session_mem_recv2(self.raw(), bytes.as_ptr(), bytes.len()) };
        match usize::try_from(taken) {
            Ok(taken) if taken == bytes.len() => Ok(()),
            _ if taken == ng::NGHTTP2_ERR_NOMEM as isize => Err(Error::Memory),
            _ if taken == ng::NGHTTP2_ERR_FLOODED as isize => Err(self.end(ng::NGHTTP2_ENHANCE_YOUR_CALM)),
            _ => Err(self.end(ng::NGHTTP2_PROTOCOL_ERROR)),
        }
    }

    /// End the connection because the peer violates the protocol: a GOAWAY with this code is the last frame that is sent.
    pub fn end(&mut self, code: u32) -> Error {
        // SAFETY: the session is alive. The only error is lack of memory, which ends the session at its next use.
        unsafe { ng::nghttp2_session_terminate_session(self.raw(), code) };
        Error::Malformed { code }
    }

    /// Append frames until none is left, or `out` has at least `limit` bytes.
    pub fn drain(&mut self, out: &mut Vec<u8>, limit: usize) -> Drained {
        let streams = self.streams_mut();
        streams.out_limit = limit;
        std::mem::swap(&mut streams.out, out);
        let mut drained = Drained::Alive;
        while self.streams().out.len() < limit {
            let mut frame = ptr::null();
            // SAFETY: the session is alive; no reference to the streams lives while callbacks run.
            let length = unsafe { ng::nghttp2_session_mem_send2(self.raw(), &raw mut frame) };
            if length < 0 {
                drained = Drained::Ended { code: ng::NGHTTP2_INTERNAL_ERROR };
            }
            if length <= 0 {
                break;
            }
            // SAFETY: nghttp2 guarantees `length` bytes there until it is called again.
            let frame = unsafe { slice::from_raw_parts(frame, length as usize) };
            // The fourth byte of a frame is its type. This side sends GOAWAY only when the peer violates the protocol.
            if frame.get(3) == Some(&(ng::NGHTTP2_GOAWAY as u8)) {
                let code = frame.get(13..17).and_then(|code| code.try_into().ok());
                drained = Drained::Ended { code: code.map_or(ng::NGHTTP2_PROTOCOL_ERROR, u32::from_be_bytes) };
            }
            self.streams_mut().out.extend_from_slice(frame);
        }
        std::mem::swap(&mut self.streams_mut().out, out);
        drained
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: this value owns all of them, and they are not used afterwards. nghttp2 goes first, because it uses the
        // others.
        unsafe {
            ng::nghttp2_session_del(self.raw());
            drop((Box::from_raw(self.streams.as_ptr()), Box::from_raw(self.pool.as_ptr())));
        }
    }
}

fn new_session(streams: NonNull<Streams>, pool: NonNull<Pool>) -> Result<NonNull<ng::nghttp2_session>, Error> {
    let mut callbacks = ptr::null_mut();
    let mut option = ptr::null_mut();
    let mut session = ptr::null_mut();
    // SAFETY: every object is used only if it could be made, and freed once; deleting null is allowed. nghttp2 copies
    // callbacks, options and hooks, and the pool outlives the session.
    unsafe {
        if ng::nghttp2_session_callbacks_new(&raw mut callbacks) == 0 && ng::nghttp2_option_new(&raw mut option) == 0 {
            callbacks::set_on(callbacks);
            ng::nghttp2_option_set_no_http_messaging(option, 1); // `Message` judges, stream by stream.
            ng::nghttp2_option_set_max_reserved_remote_streams(option, 0);
            ng::nghttp2_option_set_max_outbound_ack(option, MOST_ACKS);
            ng::nghttp2_option_set_max_continuations(option, usize::MAX); // `FrameHeads` counts them.
            // Late frames of cancelled streams count as glitches, and a correct server may send many.
            ng::nghttp2_option_set_glitch_rate_limit(option, u64::MAX, 0);
            ng::nghttp2_option_set_max_send_header_block_length(option, 2 * MOST_HEAD_BYTES);
            let streams = streams.as_ptr().cast();
            let mut hooks = Pool::hooks(pool);
            ng::nghttp2_session_client_new3(&raw mut session, callbacks, streams, option, &raw mut hooks);
        }
        ng::nghttp2_option_del(option);
        ng::nghttp2_session_callbacks_del(callbacks);
    }
    NonNull::new(session).ok_or(Error::Memory)
}

const NO_FIELD: ng::nghttp2_nv =
    ng::nghttp2_nv { name: ptr::null_mut(), value: ptr::null_mut(), namelen: 0, valuelen: 0, flags: 0 };

fn field(name: &[u8], value: &[u8]) -> ng::nghttp2_nv {
    let (name, namelen) = (name.as_ptr().cast_mut(), name.len());
    ng::nghttp2_nv { name, value: value.as_ptr().cast_mut(), namelen, valuelen: value.len(), flags: 0 }
}

fn setting(settings_id: ng::nghttp2_settings_id, value: u32) -> ng::nghttp2_settings_entry {
    ng::nghttp2_settings_entry { settings_id: settings_id as i32, value }
}

/// nghttp2 carries places as pointers that are never dereferenced; null means none.
fn user_data_of(place: Place) -> *mut c_void {
    ptr::without_provenance_mut(place.0 as usize + 1)
}

fn source_of(place: Place) -> ng::nghttp2_data_source {
    ng::nghttp2_data_source { ptr: user_data_of(place) }
}

fn place_from(data: *mut c_void) -> Option<Place> {
    data.addr().checked_sub(1).map(|place| Place(place as u32))
}
