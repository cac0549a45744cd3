//! The backend for Linux 6.1 and later: `io_uring` with one issuer, deferred task work, multishot receive and provided buffers.
//! One system call submits all writes of a turn of the worker and waits for what comes next.

use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, TimeoutFlags, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use super::buffers::Buffers;
use super::{Chunk, Event, Io, Sending};
use crate::sys::socket::{Address, is_to_itself, reset_on_close};

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

/// What a completion is of. It stands in the highest byte of its user data, above the generation and the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Wake,
    Connect,
    Receive,
    Send,
    Timer,
    /// A write of which only failure is told.
    QuietSend,
}

impl Kind {
    fn of(user_data: u64) -> Self {
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
const GENERATIONS: u32 = (1 << 24) - 1;

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

impl Uring {
    fn user_data(&self, kind: Kind, connection: u32) -> u64 {
        let generation = self.slots[connection as usize].generation;
        (kind as u64) << 56 | u64::from(generation) << 32 | u64::from(connection)
    }

    /// Queue an operation. What it points to is valid until it has ended: see the callers.
    fn push(&mut self, entry: &Entry) -> io::Result<()> {
        // SAFETY: operations point to sockets, which `close` cancels before it closes them, and to memory of which the callers
        // say why it lives long enough.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.submit()?;
        }
        Ok(())
    }

    /// Hand over what is queued without waiting.
    fn submit(&mut self) -> io::Result<()> {
        loop {
            match self.ring.submit() {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn fd(&self, connection: u32) -> Option<Fd> {
        self.slots[connection as usize].stream.as_ref().map(|stream| Fd(stream.as_raw_fd()))
    }

    fn watch_waker(&mut self) -> io::Result<()> {
        let entry = opcode::PollAdd::new(self.waker, libc::POLLIN as u32).build();
        self.push(&entry.user_data((Kind::Wake as u64) << 56))
    }

    fn receive(&mut self, connection: u32) -> io::Result<()> {
        let Some(fd) = self.fd(connection) else {
            return Ok(());
        };
        let entry = opcode::RecvMulti::new(fd, GROUP).build().user_data(self.user_data(Kind::Receive, connection));
        self.slots[connection as usize].pending += 1;
        self.push(&entry)
    }

    /// Let a timer fire then. The kernel reads the time when the operation is submitted, which the wait that follows does.
    fn set_timer(&mut self, at_ns: u64) -> io::Result<()> {
        self.timer_ns = at_ns;
        *self.timer = Timespec::new().sec(at_ns / 1_000_000_000).nsec((at_ns % 1_000_000_000) as u32);
        let entry = opcode::Timeout::new(&raw const *self.timer).flags(TimeoutFlags::ABS).build();
        self.push(&entry.user_data((Kind::Timer as u64) << 56))
    }

    fn take_batch(&mut self) {
        self.batch.clear();
        self.next = 0;
        self.batch.extend(self.ring.completion().take(BATCH));
    }

    /// What a completion means; `None` when it is nothing to tell.
    fn take(&mut self, completion: &cqueue::Entry) -> Option<Event> {
        let user_data = completion.user_data();
        let connection = user_data as u32;
        let kind = Kind::of(user_data);
        if kind == Kind::Timer {
            self.timer_ns = u64::MAX;
            return None;
        }
        if kind == Kind::Wake {
            // Once is enough: whoever asks to stop asks for good.
            return Some(Event::Woken);
        }
        let slot = &mut self.slots[connection as usize];
        if slot.generation != (user_data >> 32) as u32 & GENERATIONS {
            self.give_back_unused(completion);
            return None;
        }
        if kind != Kind::QuietSend && !cqueue::more(completion.flags()) {
            slot.pending = slot.pending.saturating_sub(1);
        }
        match kind {
            Kind::Connect => Some(self.connected(connection, completion.result())),
            Kind::Receive => self.received(connection, completion),
            _ => Some(match completion.result() {
                taken @ 0.. => Event::Taken(connection, taken as usize),
                error => Event::Unwritable(connection, io::Error::from_raw_os_error(-error)),
            }),
        }
    }

    /// Bytes of a socket that is closed.
    fn give_back_unused(&mut self, completion: &cqueue::Entry) {
        if let Some(buffer) = cqueue::buffer_select(completion.flags()) {
            self.buffers.give_back(buffer);
        }
    }

    fn connected(&mut self, connection: u32, result: i32) -> Event {
        if result < 0 {
            return Event::Refused(connection, io::Error::from_raw_os_error(-result));
        }
        let to_itself = self.slots[connection as usize].stream.as_ref().is_none_or(is_to_itself);
        if to_itself {
            return Event::Refused(connection, io::Error::from_raw_os_error(libc::ECONNREFUSED));
        }
        match self.receive(connection) {
            Ok(()) => Event::Opened(connection),
            Err(error) => Event::Refused(connection, error),
        }
    }

    fn received(&mut self, connection: u32, completion: &cqueue::Entry) -> Option<Event> {
        let (result, flags) = (completion.result(), completion.flags());
        let out_of_buffers = result == -libc::ENOBUFS;
        if (result > 0 || out_of_buffers)
            && !cqueue::more(flags)
            && let Err(error) = self.receive(connection)
        {
            self.give_back_unused(completion);
            return Some(Event::Broken(connection, error));
        }
        match result {
            1.. => {
                let buffer = cqueue::buffer_select(flags)?;
                // SAFETY: the buffer is the kernel's no more until it is given back, and does not move.
                let chunk = unsafe { Chunk::new(self.buffers.filled(buffer, result as usize), buffer) };
                Some(Event::Received { connection, chunk, more: cqueue::sock_nonempty(flags) })
            }
            0 => {
                self.give_back_unused(completion);
                Some(Event::Ended(connection))
            }
            _ if out_of_buffers => None,
            error => Some(Event::Broken(connection, io::Error::from_raw_os_error(-error))),
        }
    }
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
