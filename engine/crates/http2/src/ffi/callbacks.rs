//! The callbacks that nghttp2 runs while it reads and serializes bytes. A callback finds the place of its stream, reports to
//! the [`Streams`], and returns what to do. None calls a function that runs another callback.

use std::ffi::{c_int, c_void};
use std::slice;

use libnghttp2_sys as ng;

use super::place_from;
use crate::message::Verdict;
use crate::rule::Rule;
use crate::streams::{Answered, Place, Streams};

/// The length of a frame's head (RFC 9113, section 4.1).
const FRAME_HEAD_BYTES: usize = 9;

/// Register all callbacks.
///
/// # Safety
/// `callbacks` is alive.
pub unsafe fn set_on(callbacks: *mut ng::nghttp2_session_callbacks) {
    // SAFETY: the caller's promise; every callback keeps the contract of its type.
    unsafe {
        ng::nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Some(on_begin_headers));
        ng::nghttp2_session_callbacks_set_on_header_callback(callbacks, Some(on_header));
        ng::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Some(on_data));
        ng::nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Some(on_frame));
        ng::nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, Some(on_invalid_frame));
        ng::nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Some(on_close));
        ng::nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, Some(on_not_sent));
        ng::nghttp2_session_callbacks_set_send_data_callback(callbacks, Some(send_data));
    }
}

/// The streams, for the duration of a callback.
///
/// # Safety
/// `user` is the user data that the session was made with, and no other reference to it lives.
unsafe fn streams<'a>(user: *mut c_void) -> &'a mut Streams {
    // SAFETY: the caller's promise.
    unsafe { &mut *user.cast() }
}

/// The streams and the place of a stream, for the duration of a callback.
///
/// # Safety
/// As for [`streams`], and `session` is the session that runs the callback.
unsafe fn find<'a>(
    session: *mut ng::nghttp2_session,
    stream: i32,
    user: *mut c_void,
) -> Option<(&'a mut Streams, Place)> {
    // SAFETY: the caller's promise; reading a stream's user data runs no callback.
    unsafe {
        let streams = streams(user);
        if let Some(place) = streams.recent(stream) {
            return Some((streams, place));
        }
        let place = place_from(ng::nghttp2_session_get_stream_user_data(session, stream))?;
        streams.set_recent(place);
        Some((streams, place))
    }
}

/// Reset a stream, unless it was reset before.
///
/// # Safety
/// `session` is the session that runs the callback.
unsafe fn reset(session: *mut ng::nghttp2_session, stream: i32, code: u32) {
    // SAFETY: the caller's promise. The only error is lack of memory, which ends the session at its next use.
    unsafe { ng::nghttp2_submit_rst_stream(session, 0, stream, code) };
}

/// A slice of C's bytes, where `data` may be null if `length` is 0.
///
/// # Safety
/// Unless `length` is 0, `length` bytes are at `data` while the callback runs.
unsafe fn bytes<'a>(data: *const u8, length: usize) -> &'a [u8] {
    // SAFETY: the caller's promise.
    if length == 0 { &[] } else { unsafe { slice::from_raw_parts(data, length) } }
}

unsafe extern "C" fn on_begin_headers(
    session: *mut ng::nghttp2_session,
    frame: *const ng::nghttp2_frame,
    user: *mut c_void,
) -> c_int {
    // SAFETY: nghttp2 passes its session, a frame (whose head is always there) and our user data.
    unsafe {
        if let Some((streams, place)) = find(session, (*frame).hd.stream_id, user) {
            streams.begin_head(place);
        }
    }
    0
}

unsafe extern "C" fn on_header(
    session: *mut ng::nghttp2_session,
    frame: *const ng::nghttp2_frame,
    name: *const u8,
    name_length: usize,
    value: *const u8,
    value_length: usize,
    _flags: u8,
    user: *mut c_void,
) -> c_int {
    // SAFETY: nghttp2 passes its session, a frame, a name and a value with their lengths, and our user data. Resetting runs no
    // callback.
    unsafe {
        let stream = (*frame).hd.stream_id;
        let Some((streams, place)) = find(session, stream, user) else { return 0 };
        match streams.field(place, bytes(name, name_length), bytes(value, value_length)) {
            Verdict::Fine => 0,
            Verdict::Malformed(_) => {
                // Reset the stream before nghttp2 does so with another code. The rest of the block is still decoded, because
                // later blocks depend on it, but not reported.
                reset(session, stream, ng::NGHTTP2_PROTOCOL_ERROR);
                ng::NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
            }
        }
    }
}

unsafe extern "C" fn on_data(
    session: *mut ng::nghttp2_session,
    _flags: u8,
    stream: i32,
    data: *const u8,
    length: usize,
    user: *mut c_void,
) -> c_int {
    // SAFETY: nghttp2 passes its session, data with its length, and our user data. Resetting runs no callback.
    unsafe {
        if let Some((streams, place)) = find(session, stream, user)
            && streams.data(place, bytes(data, length)) != Verdict::Fine
        {
            reset(session, stream, ng::NGHTTP2_PROTOCOL_ERROR);
        }
    }
    0
}

unsafe extern "C" fn on_frame(
    session: *mut ng::nghttp2_session,
    frame: *const ng::nghttp2_frame,
    user: *mut c_void,
) -> c_int {
    // SAFETY: nghttp2 passes its session, a frame and our user data; the frame's head names the variant. Resetting runs no
    // callback.
    unsafe {
        let head = (*frame).hd;
        match u32::from(head.type_) {
            kind @ (ng::NGHTTP2_HEADERS | ng::NGHTTP2_DATA) => {
                if let Some((streams, place)) = find(session, head.stream_id, user) {
                    let last = u32::from(head.flags) & ng::NGHTTP2_FLAG_END_STREAM != 0;
                    if kind == ng::NGHTTP2_DATA {
                        streams.end_frame(place);
                    }
                    let malformed = kind == ng::NGHTTP2_HEADERS && streams.end_head(place, last) != Verdict::Fine;
                    let answered = if malformed {
                        Answered::Malformed
                    } else if last {
                        streams.answered(place)
                    } else {
                        Answered::Fine
                    };
                    match answered {
                        Answered::Fine => {}
                        Answered::Early => reset(session, head.stream_id, ng::NGHTTP2_CANCEL),
                        Answered::Malformed => reset(session, head.stream_id, ng::NGHTTP2_PROTOCOL_ERROR),
                    }
                }
            }
            ng::NGHTTP2_RST_STREAM => {
                if let Some((streams, place)) = find(session, head.stream_id, user) {
                    streams.reset(place, (*frame).rst_stream.error_code);
                }
            }
            ng::NGHTTP2_SETTINGS if u32::from(head.flags) & ng::NGHTTP2_FLAG_ACK == 0 => {
                streams(user).is_settled = true;
            }
            ng::NGHTTP2_GOAWAY => {
                let frame = (*frame).goaway;
                streams(user).go_away(frame.last_stream_id, frame.error_code);
            }
            _ => {}
        }
    }
    0
}

unsafe extern "C" fn on_invalid_frame(
    session: *mut ng::nghttp2_session,
    frame: *const ng::nghttp2_frame,
    _error: c_int,
    user: *mut c_void,
) -> c_int {
    // SAFETY: nghttp2 passes its session, a frame (whose head is always there) and our user data.
    unsafe {
        if let Some((streams, place)) = find(session, (*frame).hd.stream_id, user) {
            streams.malformed(place, Rule::Frame, None);
        }
    }
    0
}

unsafe extern "C" fn on_close(session: *mut ng::nghttp2_session, stream: i32, code: u32, user: *mut c_void) -> c_int {
    // SAFETY: nghttp2 passes its session, in which the stream still exists, and our user data.
    unsafe {
        if let Some((streams, place)) = find(session, stream, user) {
            streams.closed(place, stream, code);
        }
    }
    0
}

unsafe extern "C" fn on_not_sent(
    _session: *mut ng::nghttp2_session,
    frame: *const ng::nghttp2_frame,
    _error: c_int,
    user: *mut c_void,
) -> c_int {
    // SAFETY: nghttp2 passes a frame (whose head is always there) and our user data.
    unsafe {
        let head = (*frame).hd;
        if u32::from(head.type_) == ng::NGHTTP2_HEADERS {
            streams(user).not_sent(head.stream_id);
        }
    }
    0
}

/// Decides how much of the body goes into the next frame, which [`send_data`] sends.
pub unsafe extern "C" fn read_body(
    _session: *mut ng::nghttp2_session,
    _stream: i32,
    _buffer: *mut u8,
    most: usize,
    flags: *mut u32,
    source: *mut ng::nghttp2_data_source,
    user: *mut c_void,
) -> ng::nghttp2_ssize {
    // SAFETY: nghttp2 passes a copy of the request's data source, a place for flags, and our user data.
    unsafe {
        let Some(place) = place_from((*source).ptr) else { return ng::NGHTTP2_ERR_CALLBACK_FAILURE as isize };
        let unsent = streams(user).unsent(place);
        *flags |= ng::NGHTTP2_DATA_FLAG_NO_COPY;
        if unsent <= most {
            *flags |= ng::NGHTTP2_DATA_FLAG_EOF;
        }
        unsent.min(most) as isize
    }
}

/// The same for the stream that carries another protocol: it waits until there is more.
pub unsafe extern "C" fn read_pipe(
    _session: *mut ng::nghttp2_session,
    _stream: i32,
    _buffer: *mut u8,
    most: usize,
    flags: *mut u32,
    source: *mut ng::nghttp2_data_source,
    user: *mut c_void,
) -> ng::nghttp2_ssize {
    // SAFETY: as for `read_body`.
    unsafe {
        let pipe = place_from((*source).ptr).and_then(|place| streams(user).pipe_at(place));
        let Some(pipe) = pipe else { return ng::NGHTTP2_ERR_CALLBACK_FAILURE as isize };
        let unsent = pipe.unsent();
        pipe.is_deferred = unsent == 0 && !pipe.is_ended;
        if pipe.is_deferred {
            return ng::NGHTTP2_ERR_DEFERRED as isize;
        }
        *flags |= ng::NGHTTP2_DATA_FLAG_NO_COPY;
        if pipe.is_ended && unsent <= most {
            *flags |= ng::NGHTTP2_DATA_FLAG_EOF;
        }
        unsent.min(most) as isize
    }
}

unsafe extern "C" fn send_data(
    _session: *mut ng::nghttp2_session,
    _frame: *mut ng::nghttp2_frame,
    head: *const u8,
    length: usize,
    source: *mut ng::nghttp2_data_source,
    user: *mut c_void,
) -> c_int {
    // SAFETY: nghttp2 passes a frame's head, the request's data source, and our user data. There is no padding, because nothing
    // selects any.
    unsafe {
        let Some(place) = place_from((*source).ptr) else { return ng::NGHTTP2_ERR_CALLBACK_FAILURE };
        if streams(user).send(place, bytes(head, FRAME_HEAD_BYTES), length) { 0 } else { ng::NGHTTP2_ERR_WOULDBLOCK }
    }
}
