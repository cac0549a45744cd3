//! Records of data under agreed keys (RFC 8446 section 5.2; RFC 5246 section 6.2.3.3, RFC 5288, RFC 7905).
//!
//! rustls makes a vector of each record that it opens and copies each that it seals. Here both are done in the caller's buffer,
//! which takes about half the time for small records.

use ring::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey,
};
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::{ConnectionTrafficSecrets, Error};

/// The most plain bytes in a record.
pub(crate) const MOST_PLAIN_BYTES: usize = 16 * 1024;
/// The type, the version and the length of a record.
pub(crate) const HEADER_BYTES: usize = 5;
const TAG_BYTES: usize = 16;
const EXPLICIT_NONCE_BYTES: usize = 8;

/// The content types of records.
pub(crate) mod kind {
    pub(crate) const ALERT: u8 = 21;
    pub(crate) const HANDSHAKE: u8 = 22;
    pub(crate) const DATA: u8 = 23;
}

/// The layouts of a record in the versions of TLS, with the same ciphers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// The content type is inside, after the plain bytes.
    V1_3,
    /// AES-GCM in TLS 1.2: half of the nonce precedes the ciphertext.
    V1_2Explicit,
    /// ChaCha20-Poly1305 in TLS 1.2: the nonce follows from the sequence number.
    V1_2,
}

/// The keys of a direction, and how many records they have processed.
pub(crate) struct Keys {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    sequence: u64,
    layout: Layout,
}

impl Keys {
    pub(crate) fn new(is_1_3: bool, (sequence, secrets): (u64, ConnectionTrafficSecrets)) -> Result<Self, Error> {
        let (algorithm, layout, key, iv): (&'static Algorithm, _, AeadKey, Iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, Layout::V1_2Explicit, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, Layout::V1_2Explicit, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, Layout::V1_2, key, iv),
            _ => return Err(Error::General("a cipher that is not known here".to_owned())),
        };
        let unusable = || Error::General("keys of a wrong length".to_owned());
        let key = UnboundKey::new(algorithm, key.as_ref()).map_err(|_| unusable())?;
        let iv = iv.as_ref().try_into().map_err(|_| unusable())?;
        let layout = if is_1_3 { Layout::V1_3 } else { layout };
        Ok(Self { key: LessSafeKey::new(key), iv, sequence, layout })
    }

    /// How many records these keys have sealed or opened.
    pub(crate) fn records(&self) -> u64 {
        self.sequence
    }

    /// The nonce of the next record: the IV xor the sequence number (RFC 8446 section 5.3).
    fn nonce(&self) -> [u8; NONCE_LEN] {
        let mut nonce = self.iv;
        for (byte, of_sequence) in nonce[NONCE_LEN - 8..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= of_sequence;
        }
        nonce
    }

    /// The additional data that TLS 1.2 authenticates.
    fn associated(&self, kind: u8, length: usize) -> Aad<[u8; 13]> {
        let mut bytes = [0; 13];
        bytes[..8].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[8..].copy_from_slice(&header(kind, length));
        Aad::from(bytes)
    }

    /// Appends the record of `plain`, at most [`MOST_PLAIN_BYTES`], to `out`.
    pub(crate) fn seal(&mut self, kind: u8, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let nonce = self.nonce();
        let explicit =
            if self.layout == Layout::V1_2Explicit { &nonce[NONCE_LEN - EXPLICIT_NONCE_BYTES..] } else { &[] };
        let is_1_3 = self.layout == Layout::V1_3;
        let length = explicit.len() + plain.len() + usize::from(is_1_3) + TAG_BYTES;
        let header = header(if is_1_3 { kind::DATA } else { kind }, length);
        out.reserve(HEADER_BYTES + length);
        out.extend_from_slice(&header);
        out.extend_from_slice(explicit);
        let start = out.len();
        out.extend_from_slice(plain);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = if is_1_3 {
            out.push(kind);
            self.key.seal_in_place_separate_tag(nonce, Aad::from(header), &mut out[start..])
        } else {
            let associated = self.associated(kind, plain.len());
            self.key.seal_in_place_separate_tag(nonce, associated, &mut out[start..])
        };
        out.extend_from_slice(tag.map_err(|_| Error::EncryptError)?.as_ref());
        self.sequence += 1;
        Ok(())
    }

    /// Appends the content of a record to `plain`, and returns its type. `plain` is unchanged after an error.
    pub(crate) fn open(&mut self, record: &[u8], plain: &mut Vec<u8>) -> Result<u8, Error> {
        let start = plain.len();
        let opened = self.open_at(record, plain);
        if opened.is_err() {
            plain.truncate(start);
        }
        opened
    }

    fn open_at(&mut self, record: &[u8], plain: &mut Vec<u8>) -> Result<u8, Error> {
        let (header, body) = record.split_first_chunk::<HEADER_BYTES>().ok_or(Error::DecryptError)?;
        let start = plain.len();
        let mut nonce = self.nonce();
        let mut sealed = body;
        if self.layout == Layout::V1_2Explicit {
            let (explicit, rest) = body.split_at_checked(EXPLICIT_NONCE_BYTES).ok_or(Error::DecryptError)?;
            nonce[NONCE_LEN - EXPLICIT_NONCE_BYTES..].copy_from_slice(explicit);
            sealed = rest;
        }
        let length = sealed.len().checked_sub(TAG_BYTES).ok_or(Error::DecryptError)?;
        plain.extend_from_slice(sealed);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let kind = if self.layout == Layout::V1_3 {
            let opened = self.key.open_in_place(nonce, Aad::from(*header), &mut plain[start..]);
            opened.map_err(|_| Error::DecryptError)?;
            plain.truncate(start + length);
            inner_kind(start, plain)?
        } else {
            let opened = self.key.open_in_place(nonce, self.associated(header[0], length), &mut plain[start..]);
            opened.map_err(|_| Error::DecryptError)?;
            plain.truncate(start + length);
            header[0]
        };
        self.sequence += 1;
        if plain.len() - start > MOST_PLAIN_BYTES { Err(Error::PeerSentOversizedRecord) } else { Ok(kind) }
    }
}

fn header(kind: u8, length: usize) -> [u8; HEADER_BYTES] {
    let [high, low] = (length as u16).to_be_bytes();
    [kind, 3, 3, high, low]
}

/// In TLS 1.3 the type is the last byte that is not 0; padding follows it.
fn inner_kind(start: usize, plain: &mut Vec<u8>) -> Result<u8, Error> {
    let padded = &plain[start..];
    let at = padded.iter().rposition(|&byte| byte != 0).ok_or(Error::DecryptError)?;
    let kind = padded[at];
    plain.truncate(start + at);
    Ok(kind)
}
