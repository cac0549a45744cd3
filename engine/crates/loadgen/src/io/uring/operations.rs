//! What is asked of the kernel: operations, each marked so that its completion is known again.

use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;

use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::{Fd, TimeoutFlags, Timespec};

use super::{GROUP, Uring};

/// What a completion is of. It stands in the highest byte of its user data, above the generation and the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Wake,
    Connect,
    Receive,
    Send,
    Timer,
    /// A write of which only failure is told.
    QuietSend,
}

impl Kind {
    pub fn of(user_data: u64) -> Self {
        match user_data >> 56 {
            0 => Self::Wake,
            1 => Self::Connect,
            2 => Self::Receive,
            3 => Self::Send,
            4 => Self::Timer,
            _ => Self::QuietSend,
        }
    }
}

/// Generations are counted in 24 bits.
pub const GENERATIONS: u32 = (1 << 24) - 1;

impl Uring {
    pub(super) fn user_data(&self, kind: Kind, connection: u32) -> u64 {
        let generation = self.slots[connection as usize].generation;
        (kind as u64) << 56 | u64::from(generation) << 32 | u64::from(connection)
    }

    /// Queue an operation. What it points to is valid until it has ended: see the callers.
    pub(super) fn push(&mut self, entry: &Entry) -> io::Result<()> {
        // SAFETY: operations point to sockets, which `close` cancels before it closes them, and to memory of which the callers
        // say why it lives long enough.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.submit()?;
        }
        Ok(())
    }

    /// Hand over what is queued without waiting.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        loop {
            match self.ring.submit() {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn fd(&self, connection: u32) -> Option<Fd> {
        self.slots[connection as usize].stream.as_ref().map(|stream| Fd(stream.as_raw_fd()))
    }

    pub(super) fn watch_waker(&mut self) -> io::Result<()> {
        let entry = opcode::PollAdd::new(self.waker, libc::POLLIN as u32).build();
        self.push(&entry.user_data((Kind::Wake as u64) << 56))
    }

    pub(super) fn receive(&mut self, connection: u32) -> io::Result<()> {
        let Some(fd) = self.fd(connection) else {
            return Ok(());
        };
        let entry = opcode::RecvMulti::new(fd, GROUP).build().user_data(self.user_data(Kind::Receive, connection));
        self.slots[connection as usize].pending += 1;
        self.push(&entry)
    }

    /// Let a timer fire then. The kernel reads the time when the operation is submitted, which the wait that follows does.
    pub(super) fn set_timer(&mut self, at_ns: u64) -> io::Result<()> {
        self.timer_ns = at_ns;
        *self.timer = Timespec::new().sec(at_ns / 1_000_000_000).nsec((at_ns % 1_000_000_000) as u32);
        let entry = opcode::Timeout::new(&raw const *self.timer).flags(TimeoutFlags::ABS).build();
        self.push(&entry.user_data((Kind::Timer as u64) << 56))
    }
}
