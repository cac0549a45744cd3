//! Why requests failed: the first reason of each kind, on standard error, for whoever reads the counts and wonders.

use std::fmt::Display;
use std::io::{self, Write};

/// A kind of failure that has reasons worth telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The target did not take the connection.
    Connect,
    /// This side had no port, descriptor or memory for it.
    Exhausted,
    /// The handshake on it failed.
    Tls,
    Reset,
    /// The peer reset an HTTP/2 stream.
    Refused,
    Malformed,
}

impl Kind {
    /// What kind of failure it is that a connection could not be opened.
    pub fn of_connecting(error: &io::Error) -> Self {
        let exhausted = [
            libc::EADDRNOTAVAIL,
            libc::EMFILE,
            libc::ENFILE,
            libc::ENOBUFS,
            libc::ENOMEM,
            // epoll: /proc/sys/fs/epoll/max_user_watches.
            libc::ENOSPC,
        ];
        if error.raw_os_error().is_some_and(|code| exhausted.contains(&code)) { Self::Exhausted } else { Self::Connect }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Exhausted => "exhausted",
            Self::Tls => "tls",
            Self::Reset => "reset",
            Self::Refused => "refused",
            Self::Malformed => "malformed",
        }
    }
}

/// What one worker has said.
pub struct FailureLog {
    worker: u32,
    told: [bool; 6],
}

impl FailureLog {
    pub fn new(worker: u32) -> Self {
        Self { worker, told: [false; 6] }
    }

    /// Say why, if it is the first of its kind.
    #[inline]
    pub fn tell(&mut self, kind: Kind, why: &dyn Display) {
        if !std::mem::replace(&mut self.told[kind as usize], true) {
            // Nobody may read it; the counts tell all the same.
            let _ = writeln!(io::stderr(), "worker {}: first {} failure: {why}", self.worker, kind.name());
        }
    }
}
