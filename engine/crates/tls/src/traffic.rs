//! A connection after its handshake: records in both directions, and the few handshake messages that may follow.

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::{AlertDescription, Error as TlsError, ExtractedSecrets, InvalidMessage, PeerMisbehaved, ProtocolVersion};

use crate::records::{HEADER_BYTES, Keys, MOST_PLAIN_BYTES, kind};
use crate::session::Error;

/// The most bytes that a record may add to its content (RFC 8446 section 5.2: 256; RFC 5246 section 6.2.3: 2048).
const MOST_RECORD_BYTES: usize = MOST_PLAIN_BYTES + 2048;
/// The longest message that is accepted, as in rustls.
const MOST_MESSAGE_BYTES: usize = 64 * 1024;
/// A peer that changes its keys more often than this without sending any data is flooding.
const MOST_UPDATES: u8 = 32;
/// How many records a TLS 1.3 key may seal: less than AES-GCM allows (RFC 8446 section 5.5: 2^24.5). TLS 1.2 cannot change
/// keys, and continues, as OpenSSL does.
const MOST_SEALED: u64 = if cfg!(test) { 10 } else { 1 << 23 };

const HELLO_REQUEST: u8 = 0;
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;

/// The keys of a connection, and its state after the handshake.
pub(crate) struct Traffic {
    sealer: Keys,
    opener: Keys,
    /// `None` in TLS 1.2, which has neither key updates nor late tickets.
    later: Option<Box<KernelConnection<ClientConnectionData>>>,
    /// Whether tickets are used.
    tickets: bool,
    /// An incomplete record.
    record: Vec<u8>,
    /// An incomplete message.
    message: Vec<u8>,
    updates: u8,
    closed: bool,
}

impl Traffic {
    pub(crate) fn new(
        secrets: ExtractedSecrets,
        later: KernelConnection<ClientConnectionData>,
        tickets: bool,
        closed: bool,
    ) -> Result<Self, Error> {
        let is_1_3 = later.protocol_version() == ProtocolVersion::TLSv1_3;
        Ok(Self {
            sealer: Keys::new(is_1_3, secrets.tx)?,
            opener: Keys::new(is_1_3, secrets.rx)?,
            later: is_1_3.then(|| Box::new(later)),
            tickets,
            record: Vec::new(),
            message: Vec::new(),
            updates: 0,
            closed,
        })
    }

    /// Whether the peer has sent `close_notify`.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Processes the peer's bytes: data is appended to `plain`, messages in return to `out`.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), Error> {
        while !bytes.is_empty() && !self.closed {
            let length = if self.record.is_empty() { record_length(bytes)? } else { None };
            if let Some(length) = length
                && let Some((record, rest)) = bytes.split_at_checked(length)
            {
                self.take(record, plain, out)?;
                bytes = rest;
            } else {
                bytes = self.keep(bytes, plain, out)?;
            }
        }
        Ok(())
    }

    /// Keeps bytes until their record is complete, and returns those after it.
    fn keep<'a>(&mut self, bytes: &'a [u8], plain: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<&'a [u8], Error> {
        let wanted = record_length(&self.record)?.unwrap_or(HEADER_BYTES);
        let (now, rest) = bytes.split_at(bytes.len().min(wanted - self.record.len()));
        self.record.reserve_exact(wanted - self.record.len());
        self.record.extend_from_slice(now);
        if record_length(&self.record)? == Some(self.record.len()) {
            let record = std::mem::take(&mut self.record);
            self.take(&record, plain, out)?;
        }
        Ok(rest)
    }

    /// Processes a complete record.
    fn take(&mut self, record: &[u8], plain: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = plain.len();
        match self.opener.open(record, plain)? {
            kind::DATA if self.message.is_empty() => {
                self.updates = 0;
                return Ok(());
            }
            kind::ALERT => self.alert(plain.split_off(start).as_slice())?,
            kind::HANDSHAKE => {
                self.message.extend_from_slice(&plain[start..]);
                plain.truncate(start);
                self.messages(out)?;
            }
            _ => {
                plain.truncate(start);
                return Err(TlsError::PeerMisbehaved(PeerMisbehaved::MessageInterleavedWithHandshakeMessage).into());
            }
        }
        Ok(())
    }

    /// All alerts are failures except `close_notify` and `user_canceled`, which precedes it.
    fn alert(&mut self, alert: &[u8]) -> Result<(), Error> {
        let &[_level, description] = alert else { return Err(malformed()) };
        match AlertDescription::from(description) {
            AlertDescription::CloseNotify => self.closed = true,
            AlertDescription::UserCanceled => {}
            other => return Err(TlsError::AlertReceived(other).into()),
        }
        Ok(())
    }

    /// Processes the complete messages.
    fn messages(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let messages = std::mem::take(&mut self.message);
        let mut rest = &messages[..];
        while let Some((&[kind, high, middle, low], after)) = rest.split_first_chunk() {
            let length = u32::from_be_bytes([0, high, middle, low]) as usize;
            if length > MOST_MESSAGE_BYTES {
                return Err(Error::TooMuch);
            }
            let Some((body, after)) = after.split_at_checked(length) else { break };
            self.take_message(kind, body, after.is_empty(), out)?;
            rest = after;
        }
        self.message.extend_from_slice(rest);
        Ok(())
    }

    fn take_message(&mut self, kind: u8, body: &[u8], is_last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        match (kind, body, &mut self.later) {
            (NEW_SESSION_TICKET, _, Some(_)) if !self.tickets => Ok(()),
            (NEW_SESSION_TICKET, _, Some(later)) => Ok(later.handle_new_session_ticket(body)?),
            // Later bytes are under the new keys, so the message must end its record.
            (KEY_UPDATE, _, Some(_)) if !is_last => {
                Err(TlsError::PeerMisbehaved(PeerMisbehaved::KeyEpochWithPendingFragment).into())
            }
            (KEY_UPDATE, &[0], Some(_)) => self.update_opener(),
            (KEY_UPDATE, &[1], Some(_)) => {
                self.update_opener()?;
                self.update_sealer(out)
            }
            // Connections are not renegotiated; RFC 5246 section 7.4.1.1 allows ignoring the request.
            (HELLO_REQUEST, &[], None) => Ok(()),
            _ => Err(malformed()),
        }
    }

    fn update_opener(&mut self) -> Result<(), Error> {
        self.updates += 1;
        if self.updates > MOST_UPDATES {
            return Err(TlsError::PeerMisbehaved(PeerMisbehaved::TooManyKeyUpdateRequests).into());
        }
        if let Some(later) = &mut self.later {
            self.opener = Keys::new(true, later.update_rx_secret()?)?;
        }
        Ok(())
    }

    fn update_sealer(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        if let Some(later) = &mut self.later {
            self.sealer.seal(kind::HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 0], out)?;
            self.sealer = Keys::new(true, later.update_tx_secret()?)?;
        }
        Ok(())
    }

    /// Appends the records of `plain` to `out`, and a key update before it is due.
    pub(crate) fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        for part in plain.chunks(MOST_PLAIN_BYTES) {
            if self.sealer.records() >= MOST_SEALED {
                self.update_sealer(out)?;
            }
            self.sealer.seal(kind::DATA, part, out)?;
        }
        Ok(())
    }

    /// Appends an alert to `out`: `close_notify` as a warning, any other as fatal.
    pub(crate) fn alert_peer(&mut self, alert: AlertDescription, out: &mut Vec<u8>) {
        let level = if alert == AlertDescription::CloseNotify { 1 } else { 2 };
        let start = out.len();
        if self.sealer.seal(kind::ALERT, &[level, alert.into()], out).is_err() {
            out.truncate(start);
        }
    }
}

/// The length of the record that begins here, with its header; `None` if it is not yet known.
fn record_length(bytes: &[u8]) -> Result<Option<usize>, Error> {
    let Some(&[kind, major, _, high, low]) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if !(kind::ALERT..=kind::DATA).contains(&kind) || major != 3 || length == 0 {
        return Err(TlsError::InvalidMessage(InvalidMessage::InvalidContentType).into());
    }
    if length > MOST_RECORD_BYTES {
        return Err(TlsError::PeerSentOversizedRecord.into());
    }
    Ok(Some(HEADER_BYTES + length))
}

fn malformed() -> Error {
    TlsError::InvalidMessage(InvalidMessage::UnexpectedMessage("after the handshake")).into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::support::{Pair, certificates, server_config, settings};
    use crate::{Client, Version};

    #[test]
    fn keys_are_changed_before_they_are_worn_out() {
        let certificates = certificates("server.test");
        for version in [Version::V1_2, Version::V1_3] {
            let client = Client::new(&settings(&certificates, &[version])).unwrap();
            let mut pair = Pair::new(&client, &Arc::new(server_config(&certificates, &[])));
            pair.shake().unwrap();
            let mut updates = 0;
            for _ in 0..100 {
                let mut sealed = Vec::new();
                pair.session.seal(b"question", &mut sealed).unwrap();
                let one_record = 5 + usize::from(u16::from_be_bytes([sealed[3], sealed[4]]));
                updates += usize::from(sealed.len() > one_record);
                pair.deliver(&sealed).unwrap();
                assert_eq!(std::mem::take(&mut pair.asked), b"question");
            }
            // Before the 11th, the 21st, up to the 91st.
            assert_eq!(updates, if version == Version::V1_3 { 9 } else { 0 });
        }
    }
}
