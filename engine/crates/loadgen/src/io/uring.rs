//! The backend for Linux 6.1 and later: `io_uring` with one issuer, deferred task work, multishot receive and provided buffers.
//! One system call submits all writes of a turn of the worker and waits for what comes next.
//!
//! Here are the ring and the contract. `operations` has what is asked of the kernel, `completions` what it answers, `buffers` the
//! memory that received bytes lie in.

mod buffers;
mod completions;
mod operations;

use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::squeue::Flags;
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use self::buffers::Buffers;
use self::operations::{GENERATIONS, Kind};
use super::{Chunk, Event, Io, Sending};
use crate::sys::socket::{Address, reset_on_close};

/// How many operations are queued before they are submitted by themselves.
const QUEUED: u32 = 512;
/// Room for completions that were not read yet; past it the kernel keeps them.
const COMPLETED: u32 = 8192;
/// How many completions are taken out at once.
const BATCH: usize = 128;
/// How long a write may be that is not told when it succeeds.
const QUIET_BYTES: usize = 16 * 1024;
/// The group that the provided buffers belong to.
const GROUP: u16 = 0;

#[derive(Default)]
struct Slot {
    stream: Option<TcpStream>,
    generation: u32,
    /// Operations of the present socket that have not ended: a connect, a receive, a send.
    pending: u8,
}

pub struct Uring {
    ring: IoUring,
    buffers: Buffers,
    slots: Vec<Slot>,
    waker: Fd,
    /// When the timer that fires first is set for.
    timer_ns: u64,
    timer: Box<Timespec>,
    batch: Vec<cqueue::Entry>,
    next: usize,
}

impl Io for Uring {
    const NAME: &'static str = "io_uring";
    const NONBLOCKING: bool = false;

    fn new(connections: usize, waker: BorrowedFd<'_>) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_clamp()
            .setup_cqsize(COMPLETED)
            .build(QUEUED)?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_skip_cqe_on_success() {
            return Err(ErrorKind::Unsupported.into());
        }
        let buffers = Buffers::register(&ring, GROUP, connections)?;
        // Closing depends on it: it is there from Linux 6.0 on, and finds nothing now.
        match ring.submitter().register_sync_cancel(None, CancelBuilder::user_data(u64::MAX)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let slots = std::iter::repeat_with(Slot::default).take(connections).collect();
        let waker = Fd(waker.as_raw_fd());
        let mut uring = Self {
            ring,
            buffers,
            slots,
            waker,
            timer_ns: u64::MAX,
            timer: Box::default(),
            batch: Vec::with_capacity(BATCH),
            next: 0,
        };
        uring.watch_waker()?;
        Ok(uring)
    }

    fn connect(&mut self, connection: u32, socket: TcpStream, target: &Address) -> io::Result<()> {
        let entry = opcode::Connect::new(Fd(socket.as_raw_fd()), target.name(), target.length()).build();
        let entry = entry.user_data(self.user_data(Kind::Connect, connection));
        self.push(&entry)?;
        // The kernel copies the address when it is submitted, which has to be while it is valid.
        self.submit()?;
        let slot = &mut self.slots[connection as usize];
        slot.stream = Some(socket);
        slot.pending = 1;
        Ok(())
    }

    unsafe fn send(&mut self, connection: u32, bytes: &[u8], alone: bool) -> Sending {
        let Some(fd) = self.fd(connection) else {
            return Sending::Broken(ErrorKind::NotConnected.into());
        };
        // All of it or an error: what is short waits in the kernel until there is room.
        let length = bytes.len().min(u32::MAX as usize);
        let entry =
            opcode::Send::new(fd, bytes.as_ptr(), length as u32).flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL).build();
        // With nothing before it in the socket a short write finds room, so that it succeeded need not be told.
        let quiet = alone && length <= QUIET_BYTES;
        let entry = entry.user_data(self.user_data(if quiet { Kind::QuietSend } else { Kind::Send }, connection));
        let pushed = if quiet {
            self.push(&entry.flags(Flags::SKIP_SUCCESS))
        } else {
            self.slots[connection as usize].pending += 1;
            self.push(&entry)
        };
        match pushed {
            Err(error) => Sending::Broken(error),
            Ok(()) if quiet => Sending::Taken(length),
            Ok(()) => Sending::Later,
        }
    }

    fn wait(&mut self, until_ns: u64) -> io::Result<()> {
        if until_ns > 0 && until_ns < self.timer_ns {
            self.set_timer(until_ns)?;
        }
        let submitter = self.ring.submitter();
        let waited = if until_ns == 0 {
            submitter.submit_with_args(1, &SubmitArgs::new().timespec(&Timespec::new()))
        } else {
            submitter.submit_and_wait(1)
        };
        match waited {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => Err(error),
            _ => {
                self.take_batch();
                Ok(())
            }
        }
    }

    fn next(&mut self) -> Option<Event> {
        loop {
            if self.next == self.batch.len() {
                self.take_batch();
            }
            let completion = self.batch.get(self.next)?.clone();
            self.next += 1;
            if let Some(event) = self.take(&completion) {
                return Some(event);
            }
        }
    }

    fn release(&mut self, chunk: Chunk) {
        self.buffers.give_back(chunk.buffer);
    }

    fn close(&mut self, connection: u32, reset: bool) {
        let slot = &mut self.slots[connection as usize];
        slot.generation = (slot.generation + 1) & GENERATIONS;
        let Some(stream) = slot.stream.take() else {
            return;
        };
        // What was queued is submitted first, so that nothing of it meets another socket of the same number; and what the kernel
        // still does is cancelled, because it would keep the socket open, and read memory that is not there any more.
        let _ = self.submit();
        if std::mem::take(&mut self.slots[connection as usize].pending) > 0 {
            let all = || CancelBuilder::fd(Fd(stream.as_raw_fd())).all();
            while let Err(error) = self.ring.submitter().register_sync_cancel(None, all())
                && error.kind() == ErrorKind::Interrupted
            {}
        }
        if reset {
            reset_on_close(&stream);
        }
    }
}
