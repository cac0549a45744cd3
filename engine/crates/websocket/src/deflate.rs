//! Compression of messages: permessage-deflate (RFC 7692).

use std::fmt;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::rule::Rule;
use crate::session::Role;
use crate::{MOST_MESSAGE_BYTES, Volume};

/// What a client offers.
pub const DEFLATE_OFFER: &str = "permessage-deflate; client_max_window_bits";
/// How compressed data ends, which is not sent (RFC 7692, 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];
const MOST_BITS: u8 = 15;
/// The least window of the library, which reads smaller ones too.
const LEAST_BITS: u8 = 9;
/// The most memory that is added at a time for what is decompressed.
const GROWTH: usize = 64 * 1024;

/// What both sides agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deflate {
    /// The server compresses each message by itself.
    pub server_no_context_takeover: bool,
    /// The client compresses each message by itself.
    pub client_no_context_takeover: bool,
    /// The logarithm of the server's window, 8 to 15.
    pub server_max_window_bits: u8,
    /// The logarithm of the client's window, 9 to 15.
    pub client_max_window_bits: u8,
}

impl Deflate {
    /// Read an extension of an answer to [`DEFLATE_OFFER`].
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn agreed(extension: &str) -> Result<Self, String> {
        let mut parts = extension.split(';').map(str::trim);
        if parts.next() != Some("permessage-deflate") {
            return Err("that was not offered".to_owned());
        }
        let mut agreed = Self {
            server_no_context_takeover: false,
            client_no_context_takeover: false,
            server_max_window_bits: MOST_BITS,
            client_max_window_bits: MOST_BITS,
        };
        let mut seen = Vec::new();
        for part in parts {
            let (name, value) = part
                .split_once('=')
                .map_or((part, None), |(name, value)| (name.trim_end(), Some(value.trim_start().trim_matches('"'))));
            if seen.contains(&name) {
                return Err(format!("{name} stands there twice"));
            }
            seen.push(name);
            match name {
                "server_no_context_takeover" if value.is_none() => agreed.server_no_context_takeover = true,
                "client_no_context_takeover" if value.is_none() => agreed.client_no_context_takeover = true,
                "server_max_window_bits" => agreed.server_max_window_bits = bits(name, value)?,
                "client_max_window_bits" => agreed.client_max_window_bits = bits(name, value)?,
                _ => return Err(format!("{part} is no parameter of an answer (RFC 7692, 7.1)")),
            }
        }
        if agreed.client_max_window_bits < LEAST_BITS {
            return Err("client_max_window_bits is 8, and the least window of this client is 9".to_owned());
        }
        Ok(agreed)
    }
}

impl fmt::Display for Deflate {
    /// As it stands in an answer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("permessage-deflate")?;
        for (is_alone, side) in
            [(self.server_no_context_takeover, "server"), (self.client_no_context_takeover, "client")]
        {
            if is_alone {
                write!(f, "; {side}_no_context_takeover")?;
            }
        }
        for (bits, side) in [(self.server_max_window_bits, "server"), (self.client_max_window_bits, "client")] {
            if bits < MOST_BITS {
                write!(f, "; {side}_max_window_bits={bits}")?;
            }
        }
        Ok(())
    }
}

fn bits(name: &str, value: Option<&str>) -> Result<u8, String> {
    let value = value.unwrap_or_default();
    match value.parse() {
        Ok(bits @ 8..=MOST_BITS) if !value.starts_with(['0', '+']) => Ok(bits),
        _ => Err(format!("{name} is {value:?}, and not 8 to 15")),
    }
}

/// The compression of one side: of what it sends, and of what it receives. Memory for each is taken when it is first needed.
#[derive(Debug)]
pub struct Codec {
    sends: Way<Compress>,
    receives: Way<Decompress>,
    /// What is sent, compressed.
    pub packed: Vec<u8>,
    /// Memory for what is received.
    unpacked: Vec<u8>,
    pub volume: Volume,
}

#[derive(Debug)]
struct Way<T> {
    state: Option<T>,
    bits: u8,
    /// Each message is compressed by itself.
    is_alone: bool,
}

impl Codec {
    pub fn new(role: Role, agreed: Deflate) -> Self {
        let client = (agreed.client_max_window_bits, agreed.client_no_context_takeover);
        let server = (agreed.server_max_window_bits.max(LEAST_BITS), agreed.server_no_context_takeover);
        let (own, other) = if role == Role::Client { (client, server) } else { (server, client) };
        Self {
            sends: Way { state: None, bits: own.0, is_alone: own.1 },
            receives: Way { state: None, bits: other.0, is_alone: other.1 },
            packed: Vec::new(),
            unpacked: Vec::new(),
            volume: Volume::default(),
        }
    }

    /// Compress a message, into `packed` (RFC 7692, 7.2.1).
    pub fn pack(&mut self, payload: &[u8]) {
        let Way { state, bits, is_alone } = &mut self.sends;
        let deflate = state.get_or_insert_with(|| Compress::new_with_window_bits(Compression::fast(), false, *bits));
        self.packed.clear();
        let before = deflate.total_in();
        // Nothing is not flushed (RFC 7692, 7.2.3.6).
        while !payload.is_empty() {
            self.packed.reserve(payload.len() / 2 + 64);
            let read = (deflate.total_in() - before) as usize;
            let packed = deflate.compress_vec(&payload[read..], &mut self.packed, FlushCompress::Sync);
            let is_read = (deflate.total_in() - before) as usize == payload.len();
            if packed.is_err() || is_read && self.packed.len() < self.packed.capacity() {
                break;
            }
        }
        if payload.is_empty() {
            self.packed.push(0);
        } else {
            self.packed.truncate(self.packed.len().saturating_sub(TAIL.len()));
        }
        if *is_alone {
            deflate.reset();
        }
        self.volume.add(payload.len(), self.packed.len());
    }

    /// Decompress a message in place (RFC 7692, 7.2.2).
    pub fn unpack(&mut self, message: &mut Vec<u8>) -> Result<(), Rule> {
        let Way { state, bits, is_alone } = &mut self.receives;
        let inflate = state.get_or_insert_with(|| Decompress::new_with_window_bits(false, *bits));
        self.unpacked.clear();
        let mut is_over = false;
        for piece in [&message[..], &TAIL] {
            let before = inflate.total_in();
            while !is_over {
                let rest = &piece[(inflate.total_in() - before) as usize..];
                self.unpacked.reserve((rest.len() * 3).clamp(256, GROWTH));
                let status = inflate.decompress_vec(rest, &mut self.unpacked, FlushDecompress::Sync);
                is_over = status.map_err(|_| Rule::NotDeflate)? == Status::StreamEnd;
                if self.unpacked.len() > MOST_MESSAGE_BYTES {
                    return Err(Rule::UnpackedTooLong);
                }
                let is_read = (inflate.total_in() - before) as usize == piece.len();
                if is_read && self.unpacked.len() < self.unpacked.capacity() {
                    break;
                }
            }
        }
        if is_over || *is_alone {
            inflate.reset(false);
        }
        self.volume.add(self.unpacked.len(), message.len());
        std::mem::swap(message, &mut self.unpacked);
        Ok(())
    }
}
