//! One connection to the target: its socket, its parser, and the request that it carries.

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;

use redline_wire::{Answer, Asked, Parser};

use crate::sys::socket::is_to_itself;

/// How writing went.
pub enum Wrote {
    /// So many bytes went to the kernel: all there were, or all that it takes for now.
    Bytes(usize),
    /// The connection is broken, and why.
    Broken(io::Error),
}

/// A connection's memory, kept from one socket to the next.
pub struct Connection {
    pub stream: Option<TcpStream>,
    pub parser: Parser,
    /// Counts its sockets, so that an event of an earlier one is told from those of the present.
    pub generation: u32,
    /// When its request was due.
    pub due_ns: u64,
    /// When its request was written, or, while it is being opened, when that began.
    pub since_ns: u64,
    /// When the opening of the present socket began.
    pub opened_ns: u64,
    /// Bytes of its request that the kernel has taken.
    sent: usize,
    /// An earlier socket of it was open: the next one replaces it.
    pub was_open: bool,
    /// An answer came on the present socket.
    pub answered: bool,
}

impl Connection {
    pub fn new(asked: Asked) -> Self {
        Self {
            stream: None,
            parser: Parser::new(asked),
            generation: 0,
            due_ns: 0,
            since_ns: 0,
            opened_ns: 0,
            sent: 0,
            was_open: false,
            answered: false,
        }
    }

    /// Take a socket that is being opened.
    pub fn begin(&mut self, stream: TcpStream, now_ns: u64) {
        self.stream = Some(stream);
        self.since_ns = now_ns;
        self.opened_ns = now_ns;
        self.answered = false;
    }

    /// Let go of the socket, and of everything that came on it.
    pub fn end(&mut self) -> Option<TcpStream> {
        self.generation = self.generation.wrapping_add(1);
        self.parser.reset();
        self.stream.take()
    }

    /// Take a request up.
    pub fn carry(&mut self, due_ns: u64, now_ns: u64) {
        self.due_ns = due_ns;
        self.since_ns = now_ns;
        self.sent = 0;
    }

    pub fn is_whole_written(&self, request: &[u8]) -> bool {
        self.sent == request.len()
    }

    /// Hand the rest of the request to the kernel.
    pub fn write(&mut self, request: &[u8]) -> Wrote {
        let Some(stream) = &mut self.stream else {
            return Wrote::Broken(ErrorKind::NotConnected.into());
        };
        let before = self.sent;
        while self.sent < request.len() {
            match stream.write(&request[self.sent..]) {
                Ok(0) => return Wrote::Broken(ErrorKind::WriteZero.into()),
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Wrote::Broken(error),
            }
        }
        Wrote::Bytes(self.sent - before)
    }

    /// Why it could not be opened, if it could not. Connected to itself means that nobody listens.
    pub fn open_error(&self) -> Option<io::Error> {
        let stream = self.stream.as_ref()?;
        let failed = stream.take_error().unwrap_or_else(Some);
        failed.or_else(|| is_to_itself(stream).then(|| io::Error::from_raw_os_error(libc::ECONNREFUSED)))
    }

    /// The answer that the end of the connection makes whole, if there is one.
    pub fn end_of_stream(&mut self) -> Option<Answer> {
        self.parser.end()
    }
}
