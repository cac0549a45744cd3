//! Why requests failed: the first reason of each kind, on standard error.

use std::fmt::Display;
use std::io::{self, Write};

use crate::ids::GlobalWorkerId;

/// A kind of failure whose reason is worth reporting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The target did not take the connection.
    Connect,
    /// This side had no port, descriptor or memory for the connection.
    Exhausted,
    /// The TLS handshake failed.
    Tls,
    Reset,
    /// The peer reset an HTTP/2 stream.
    Refused,
    Malformed,
}

impl FailureKind {
    /// The kind of an error of opening a connection.
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

/// The failures that one worker has reported.
pub struct FailureLog {
    worker: GlobalWorkerId,
    reported: [bool; 6],
}

impl FailureLog {
    pub fn new(worker: GlobalWorkerId) -> Self {
        Self { worker, reported: [false; 6] }
    }

    /// Report a failure, if it is the first of its kind.
    #[inline]
    pub fn report(&mut self, kind: FailureKind, why: &dyn Display) {
        if !std::mem::replace(&mut self.reported[kind as usize], true) {
            // Nobody may read it; the counts are complete all the same.
            let _ = writeln!(io::stderr(), "worker {}: first {} failure: {why}", self.worker.0, kind.name());
        }
    }
}
