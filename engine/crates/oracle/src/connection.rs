//! A conversation and its socket.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use socket2::SockRef;

use crate::conversation::Conversation;
use crate::sys;

/// The most bytes of a body that are skipped at a time.
const PASS_BYTES: u64 = 1024 * 1024;

/// A connection.
#[derive(Debug)]
pub struct Connection {
    socket: TcpStream,
    /// The bytes in both directions.
    pub conversation: Conversation,
    /// When the last of its answers falls due; later answers are not sent before.
    pub due_ns: u64,
    /// Whether the socket may have input. Edge-triggered: until a read returns nothing.
    readable: bool,
    /// Whether the peer's end follows the unread bytes.
    hung_up: bool,
    /// Whether the end of the connection was announced to the peer.
    finished: bool,
}

/// What happened on a connection, or is to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing until an event or a time comes.
    Wait,
    /// Close the connection.
    Over,
    /// This many bytes were received; 0 when earlier bytes can be processed further.
    Received(usize),
}

impl Connection {
    /// A newly accepted connection.
    pub const fn new(socket: TcpStream) -> Self {
        Self { socket, conversation: Conversation::new(), due_ns: 0, readable: false, hung_up: false, finished: false }
    }

    /// Its socket.
    pub const fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// An event came.
    pub const fn heard(&mut self, input: bool, hangup: bool) {
        self.readable |= input;
        self.hung_up |= hangup;
    }

    /// Sends what may be sent, at most `most` bytes at a time, and reads once.
    #[inline]
    pub fn step(&mut self, input: &mut [u8], most: usize) -> io::Result<Step> {
        self.send(most)?;
        if !self.finished && self.conversation.has_finished() {
            self.socket.shutdown(Shutdown::Write)?;
            self.finished = true;
        }
        if self.conversation.is_reset() {
            SockRef::from(&self.socket).set_linger(Some(Duration::ZERO))?;
            return Ok(Step::Over);
        }
        if self.conversation.can_resume() {
            return Ok(Step::Received(0));
        }
        if self.conversation.is_over() {
            return Ok(Step::Over);
        }
        while self.readable && self.conversation.listens() {
            match self.read(input) {
                Ok(0) => {}
                Ok(length) => return Ok(Step::Received(length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(error) => return Err(error),
            }
        }
        Ok(if self.conversation.is_over() { Step::Over } else { Step::Wait })
    }

    /// Reads once. Returns 0 when there is nothing.
    #[inline]
    fn read(&mut self, input: &mut [u8]) -> io::Result<usize> {
        let skippable = self.conversation.body_to_skip().min(PASS_BYTES) as usize;
        let passes = skippable > input.len();
        let wanted = if passes { skippable } else { input.len() };
        let length = if passes { sys::pass_over(&self.socket, wanted)? } else { self.socket.read(input)? };
        // A short read took all bytes there were; only an end can follow without an event.
        self.readable = length == wanted || (length > 0 && self.hung_up);
        if length == 0 {
            self.conversation.end();
        }
        if passes {
            self.conversation.skip(length as u64);
            return Ok(0);
        }
        Ok(length)
    }

    #[inline]
    fn send(&mut self, most: usize) -> io::Result<()> {
        loop {
            self.conversation.refill();
            if self.conversation.outgoing().is_empty() {
                return Ok(());
            }
            let outgoing = self.conversation.outgoing();
            match self.socket.write(&outgoing[..outgoing.len().min(most)]) {
                Ok(length) => self.conversation.left(length),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
