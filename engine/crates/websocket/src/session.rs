//! The session: either side of an open connection.

use crate::deflate::{Codec, Deflate};
use crate::mask::{Keys, mask};
use crate::rule::{Rule, may_be_sent};
use crate::{MOST_CONTROL_BYTES, MOST_FRAMES, MOST_MESSAGE_BYTES, Volume};

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;
/// The first reserved bit: the message is compressed (RFC 7692, 6).
const PACKED: u8 = 0x40;
/// Lengths that say that the length follows, in so many bytes.
const TWO_BYTES: u8 = 0x7e;
const EIGHT_BYTES: u8 = 0x7f;
/// The longest head of a frame.
const LONGEST_HEAD: usize = 14;
/// Memory that an idle session may keep of messages.
const IDLE_BYTES: usize = 4 * 1024;

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It masks what it sends.
    Client,
    /// It must not mask.
    Server,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Bytes.
    Binary,
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A whole message. A text is valid UTF-8.
    Message(Kind, &'a [u8]),
    /// A ping, whose answer waits for [`Session::write_pong`].
    Ping,
    /// A pong.
    Pong,
    /// The peer closes the connection. Bytes after it are ignored.
    Close(Close<'a>),
}

/// What a close frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close<'a> {
    /// `None` if the frame is empty.
    pub code: Option<u16>,
    /// Valid UTF-8.
    pub reason: &'a str,
}

/// One side of an open connection.
///
/// Take events by [`Session::next`] until it returns none. After a [`Rule`] the session is of no use: send the close code of the
/// rule, and end the connection.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent, and all combinations occur")]
pub struct Session {
    role: Role,
    keys: Keys,
    /// The head of a frame that has arrived in part.
    head: [u8; LONGEST_HEAD],
    head_length: u8,
    frame: Option<Frame>,
    /// The kind of the message whose fragments arrive.
    kind: Option<Kind>,
    /// That message is compressed.
    is_packed: bool,
    /// The compression, if it was agreed on.
    codec: Option<Box<Codec>>,
    frames: u32,
    /// The message, as far as it has arrived, unless it arrives whole.
    message: Vec<u8>,
    /// How much of a text is known to be UTF-8.
    checked: usize,
    /// The message was handed out: forget it at the next call.
    is_handed_out: bool,
    control: Control,
    /// The payload of the last ping, until it is answered.
    pong: Option<Box<Control>>,
    is_closed: bool,
    /// This side has sent a close frame.
    is_closing: bool,
}

/// A frame whose head is complete.
#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: u8,
    is_final: bool,
    key: Option<[u8; 4]>,
    length: u64,
    /// Bytes of the payload that have arrived.
    arrived: u64,
}

/// The payload of a control frame.
#[derive(Clone, Copy, Debug)]
struct Control {
    bytes: [u8; MOST_CONTROL_BYTES],
    length: u8,
}

impl Control {
    const EMPTY: Self = Self { bytes: [0; MOST_CONTROL_BYTES], length: 0 };

    fn payload(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// What has arrived whole.
enum Whole<'a> {
    /// A message in one piece.
    Piece(Kind, &'a [u8]),
    /// A message that was put together.
    Message(Kind),
    Control(u8),
}

impl Session {
    /// A session on a connection that is open now. `seed` is that of the masks of a client: take it from a source of entropy.
    #[must_use]
    pub fn new(role: Role, seed: u64) -> Self {
        Self {
            role,
            keys: Keys::new(seed),
            head: [0; LONGEST_HEAD],
            head_length: 0,
            frame: None,
            kind: None,
            is_packed: false,
            codec: None,
            frames: 0,
            message: Vec::new(),
            checked: 0,
            is_handed_out: false,
            control: Control::EMPTY,
            pong: None,
            is_closed: false,
            is_closing: false,
        }
    }

    /// The same, with messages compressed as agreed.
    #[must_use]
    pub fn compressing(mut self, agreed: Option<Deflate>) -> Self {
        self.codec = agreed.map(|agreed| Box::new(Codec::new(self.role, agreed)));
        self
    }

    /// Takes how many bytes messages had since the last call, in both directions; nothing without compression.
    pub fn take_volume(&mut self) -> Volume {
        self.codec.as_mut().map_or_else(Volume::default, |codec| std::mem::take(&mut codec.volume))
    }

    /// Whether no part of a message, and no part of a frame, has arrived since the last whole one.
    #[must_use]
    pub fn is_between(&self) -> bool {
        self.frame.is_none() && self.head_length == 0 && self.kind.is_none()
    }

    /// Whether the peer has closed the connection.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether this side has sent a close frame: what the peer had sent before it learns of that answers nothing.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// The next event of received bytes, from which it takes what it reads; `None` when all were read. A message that arrives
    /// whole and unmasked is not copied.
    ///
    /// # Errors
    /// The rule that the peer breaks.
    #[inline]
    pub fn next<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Result<Option<Event<'s>>, Rule> {
        if self.is_handed_out {
            self.forget();
        }
        if self.is_closed {
            *bytes = &[];
            return Ok(None);
        }
        let whole = loop {
            let Some(frame) = self.frame else {
                if !self.read_head(bytes)? {
                    return Ok(None);
                }
                continue;
            };
            if let Some(whole) = self.read_payload(frame, bytes)? {
                break whole;
            }
            if self.frame.is_some() {
                return Ok(None);
            }
        };
        match whole {
            Whole::Piece(kind, payload) => Ok(Some(Event::Message(kind, payload))),
            Whole::Message(kind) => Ok(Some(Event::Message(kind, &self.message))),
            Whole::Control(opcode) => self.read_control(opcode).map(Some),
        }
    }

    fn forget(&mut self) {
        self.is_handed_out = false;
        self.message.clear();
        self.message.shrink_to(IDLE_BYTES);
        self.checked = 0;
        self.frames = 0;
    }

    /// Reads the head of a frame. Returns whether it is complete.
    #[inline]
    fn read_head(&mut self, bytes: &mut &[u8]) -> Result<bool, Rule> {
        while !bytes.is_empty() {
            let had = usize::from(self.head_length);
            let needed = if had < 2 { 2 } else { head_length(self.head[1]) };
            let taken = (needed - had).min(bytes.len());
            self.head[had..had + taken].copy_from_slice(&bytes[..taken]);
            *bytes = &bytes[taken..];
            let have = had + taken;
            self.head_length = have as u8;
            if had < 2 && have >= 2 {
                self.check_beginning()?;
            }
            if have >= 2 && have == head_length(self.head[1]) {
                self.head_length = 0;
                self.begin_frame()?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Judges the first two bytes of a frame.
    #[inline]
    fn check_beginning(&self) -> Result<(), Rule> {
        let [first, second, ..] = self.head;
        let (opcode, is_final, length) = (first & 0x0f, first & FINAL != 0, second & 0x7f);
        if first & 0x70 != 0 {
            match (first & 0x70 == PACKED && self.codec.is_some(), opcode) {
                (true, TEXT | BINARY) => {}
                (true, _) => return Err(Rule::PackedFragment),
                _ => return Err(Rule::ReservedBit),
            }
        }
        match (self.role, second & MASKED != 0) {
            (Role::Client, true) => return Err(Rule::MaskedByServer),
            (Role::Server, false) => return Err(Rule::NotMaskedByClient),
            _ => {}
        }
        match opcode {
            CONTINUATION if self.kind.is_none() => Err(Rule::NothingToContinue),
            TEXT | BINARY if self.kind.is_some() => Err(Rule::MessageWithinMessage),
            CLOSE | PING | PONG if !is_final => Err(Rule::ControlFragment),
            CLOSE | PING | PONG if usize::from(length) > MOST_CONTROL_BYTES => Err(Rule::ControlTooLong),
            CONTINUATION | TEXT | BINARY | CLOSE | PING | PONG => Ok(()),
            _ => Err(Rule::ReservedOpcode),
        }
    }

    /// The head of a frame is complete.
    #[inline]
    fn begin_frame(&mut self) -> Result<(), Rule> {
        let [first, second, ..] = self.head;
        let (length, at) = match second & 0x7f {
            TWO_BYTES => (u64::from(u16::from_be_bytes([self.head[2], self.head[3]])), 4),
            EIGHT_BYTES => {
                let mut eight = [0; 8];
                eight.copy_from_slice(&self.head[2..10]);
                (u64::from_be_bytes(eight), 10)
            }
            short => (u64::from(short), 2),
        };
        match second & 0x7f {
            TWO_BYTES if length < 126 => return Err(Rule::LengthNotShortest),
            EIGHT_BYTES if length > i64::MAX as u64 => return Err(Rule::LengthTooLarge),
            EIGHT_BYTES if length < 0x1_0000 => return Err(Rule::LengthNotShortest),
            _ => {}
        }
        let opcode = first & 0x0f;
        if opcode < CLOSE {
            if length > (MOST_MESSAGE_BYTES - self.message.len()) as u64 {
                return Err(Rule::MessageTooLong);
            }
            self.frames += 1;
            self.is_packed = if opcode == CONTINUATION { self.is_packed } else { first & PACKED != 0 };
            if self.frames > MOST_FRAMES {
                return Err(Rule::TooManyFrames);
            }
            match opcode {
                TEXT => self.kind = Some(Kind::Text),
                BINARY => self.kind = Some(Kind::Binary),
                _ => {}
            }
        } else {
            self.control.length = 0;
        }
        let key =
            (second & MASKED != 0).then(|| [self.head[at], self.head[at + 1], self.head[at + 2], self.head[at + 3]]);
        self.frame = Some(Frame { opcode, is_final: first & FINAL != 0, key, length, arrived: 0 });
        Ok(())
    }

    /// Reads what has arrived of a payload. The frame is gone when it is complete.
    #[inline]
    fn read_payload<'a>(&mut self, mut frame: Frame, bytes: &mut &'a [u8]) -> Result<Option<Whole<'a>>, Rule> {
        let left = frame.length - frame.arrived;
        let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let (piece, rest) = bytes.split_at(taken);
        *bytes = rest;
        let is_complete = taken as u64 == left;
        if frame.opcode >= CLOSE {
            let at = usize::from(self.control.length);
            let place = &mut self.control.bytes[at..at + taken];
            place.copy_from_slice(piece);
            if let Some(key) = frame.key {
                mask(place, key, at);
            }
            self.control.length += taken as u8;
        } else if is_complete
            && frame.is_final
            && frame.key.is_none()
            && self.message.is_empty()
            && frame.arrived == 0
            && !self.is_packed
        {
            return self.whole_piece(piece).map(Some);
        } else {
            self.add(piece, frame)?;
        }
        frame.arrived += taken as u64;
        self.frame = (!is_complete).then_some(frame);
        if !is_complete {
            return Ok(None);
        }
        if frame.opcode >= CLOSE {
            return Ok(Some(Whole::Control(frame.opcode)));
        }
        if !frame.is_final {
            return Ok(None);
        }
        let kind = self.kind.take().unwrap_or(Kind::Binary);
        if self.is_packed
            && let Some(codec) = &mut self.codec
        {
            codec.unpack(&mut self.message)?;
            let is_right = kind != Kind::Text || std::str::from_utf8(&self.message).is_ok();
            self.checked = if is_right { self.message.len() } else { 0 };
        }
        if kind == Kind::Text && self.checked < self.message.len() {
            return Err(Rule::NotUtf8);
        }
        self.is_handed_out = true;
        Ok(Some(Whole::Message(kind)))
    }

    /// All of a message arrived in one piece.
    #[inline]
    fn whole_piece<'a>(&mut self, piece: &'a [u8]) -> Result<Whole<'a>, Rule> {
        self.frame = None;
        self.frames = 0;
        let kind = self.kind.take().unwrap_or(Kind::Binary);
        if kind == Kind::Text && std::str::from_utf8(piece).is_err() {
            return Err(Rule::NotUtf8);
        }
        Ok(Whole::Piece(kind, piece))
    }

    /// Adds a piece to the message, and checks as much of a text as can be judged.
    fn add(&mut self, piece: &[u8], frame: Frame) -> Result<(), Rule> {
        let before = self.message.len();
        self.message.extend_from_slice(piece);
        if let Some(key) = frame.key {
            mask(&mut self.message[before..], key, frame.arrived as usize);
        }
        if self.kind == Some(Kind::Text) && !self.is_packed {
            match std::str::from_utf8(&self.message[self.checked..]) {
                Ok(_) => self.checked = self.message.len(),
                // The last character may not have arrived whole.
                Err(why) if why.error_len().is_none() => self.checked += why.valid_up_to(),
                Err(_) => return Err(Rule::NotUtf8),
            }
        }
        Ok(())
    }

    #[cold]
    fn read_control(&mut self, opcode: u8) -> Result<Event<'_>, Rule> {
        match opcode {
            PING => {
                // Only the last ping needs an answer (RFC 6455, 5.5.3), so that these do not pile up.
                self.pong = Some(Box::new(self.control));
                Ok(Event::Ping)
            }
            PONG => Ok(Event::Pong),
            _ => {
                self.is_closed = true;
                let payload = self.control.payload();
                let Some((code, reason)) = payload.split_first_chunk() else {
                    let nothing = Close { code: None, reason: "" };
                    return if payload.is_empty() { Ok(Event::Close(nothing)) } else { Err(Rule::CloseOfOneByte) };
                };
                let code = u16::from_be_bytes(*code);
                if !may_be_sent(code) {
                    return Err(Rule::CloseCode);
                }
                let reason = std::str::from_utf8(reason).map_err(|_| Rule::CloseNotUtf8)?;
                Ok(Event::Close(Close { code: Some(code), reason }))
            }
        }
    }

    /// Appends a message, in one frame.
    #[inline]
    pub fn write(&mut self, kind: Kind, payload: &[u8], out: &mut Vec<u8>) {
        let opcode = if kind == Kind::Text { TEXT } else { BINARY };
        let Some(mut codec) = self.codec.take() else {
            return self.write_frame(FINAL | opcode, payload, out);
        };
        codec.pack(payload);
        self.write_frame(FINAL | PACKED | opcode, &codec.packed, out);
        self.codec = Some(codec);
    }

    /// Appends the answer to the last ping, if it is not yet answered. Returns whether it was not.
    pub fn write_pong(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(pong) = self.pong.take() else {
            return false;
        };
        self.write_frame(FINAL | PONG, pong.payload(), out);
        true
    }

    /// Whether a ping waits for its answer.
    #[inline]
    #[must_use]
    pub fn owes_pong(&self) -> bool {
        self.pong.is_some()
    }

    /// Appends a close frame, unless one was sent (RFC 6455, 5.5.1); without a code it is empty.
    pub fn write_close(&mut self, code: Option<u16>, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_closing, true) {
            return;
        }
        let code = code.map(u16::to_be_bytes);
        self.write_frame(FINAL | CLOSE, code.as_ref().map_or(&[], |code| &code[..]), out);
    }

    #[inline]
    fn write_frame(&mut self, first: u8, payload: &[u8], out: &mut Vec<u8>) {
        let masked = if self.role == Role::Client { MASKED } else { 0 };
        match payload.len() {
            length @ ..126 => out.extend_from_slice(&[first, masked | length as u8]),
            length @ 126..0x1_0000 => {
                let [a, b] = (length as u16).to_be_bytes();
                out.extend_from_slice(&[first, masked | TWO_BYTES, a, b]);
            }
            length => {
                out.extend_from_slice(&[first, masked | EIGHT_BYTES]);
                out.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        if self.role == Role::Server {
            return out.extend_from_slice(payload);
        }
        let key = self.keys.draw();
        out.extend_from_slice(&key);
        let begin = out.len();
        out.extend_from_slice(payload);
        mask(&mut out[begin..], key, 0);
    }
}

/// The length of a frame's head whose second byte this is.
#[inline]
fn head_length(second: u8) -> usize {
    let extended = match second & 0x7f {
        TWO_BYTES => 2,
        EIGHT_BYTES => 8,
        _ => 0,
    };
    2 + extended + if second & MASKED != 0 { 4 } else { 0 }
}
