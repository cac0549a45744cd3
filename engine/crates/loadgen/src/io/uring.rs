//! The backend for Linux 6.1 and later: `io_uring` with a single issuer, deferred task work, multishot receive and provided
//! buffers. A single system call submits all writes of a worker's turn and waits for the next events.

mod buffers;

use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd, RecvMsgOut, TimeoutFlags, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode};

use self::buffers::Buffers;
use super::{Chunk, Event, Io, Sending};
use crate::ids::ConnectionId;
use crate::sys::socket::{Address, StampRoom, is_to_itself, reset_on_close, stamp_arrivals, stamp_in};

/// Operations in the queue before it is submitted early.
const QUEUED: u32 = 512;
/// Room for unread completions; the kernel keeps those beyond it.
const COMPLETED: u32 = 8192;
/// Completions taken out at a time.
const BATCH: usize = 128;
/// The longest write whose success is not reported.
const QUIET_BYTES: usize = 16 * 1024;
/// The group of the provided buffers.
const GROUP: u16 = 0;
/// What stands before the bytes of a stamped receive: four lengths, and the room for the time.
const STAMPED_HEAD: usize = 16 + size_of::<StampRoom>();
/// Generations have 24 bits.
const GENERATIONS: u32 = (1 << 24) - 1;

/// The operation of a completion: the highest byte of its user data, above the generation and the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Operation {
    Wake,
    Connect,
    Receive,
    Send,
    Timer,
    /// A write of which only a failure is reported.
    QuietSend,
}

impl Operation {
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

    /// The user data of an operation that belongs to no connection.
    fn user_data(self) -> u64 {
        (self as u64) << 56
    }
}

#[derive(Default)]
struct UringSlot {
    stream: Option<TcpStream>,
    /// Counts sockets, so that a completion of an earlier socket is recognized and dropped.
    generation: u32,
    /// Operations of the present socket that have not ended: a connect, a receive, a send.
    pending: u8,
}

/// What receives ask for beside the bytes: room for a time.
struct StampAsked(libc::msghdr);

// SAFETY: its pointers are null.
unsafe impl Send for StampAsked {}

impl StampAsked {
    fn new() -> Self {
        // SAFETY: a header of zeros is valid, and names nothing.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_controllen = size_of::<StampRoom>();
        Self(header)
    }
}

/// Fields are dropped in this order: the ring before the memory that its operations use. [`Drop`] has ended the operations by
/// then.
pub struct Uring {
    ring: IoUring,
    buffers: Buffers,
    slots: Vec<UringSlot>,
    /// When the earliest timer fires; `u64::MAX` when none is set.
    timer_ns: u64,
    timer: Box<Timespec>,
    /// If the kernel says when bytes arrived.
    stamps: Option<Box<StampAsked>>,
    batch: Vec<cqueue::Entry>,
    next: usize,
}

impl Uring {
    fn user_data(&self, operation: Operation, connection: ConnectionId) -> u64 {
        let generation = self.slots[connection.index()].generation;
        operation.user_data() | u64::from(generation) << 32 | u64::from(connection.0)
    }

    /// Queue an operation.
    ///
    /// # Safety
    /// Its descriptor is open when it is submitted, and the memory that it points to is valid until the operation has ended.
    unsafe fn push(&mut self, entry: &Entry) -> io::Result<()> {
        // SAFETY: the caller's promise is that of `push`.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.submit()?;
        }
        Ok(())
    }

    /// Submit the queue without waiting.
    fn submit(&mut self) -> io::Result<()> {
        loop {
            match self.ring.submit() {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Submit the queue, and have the kernel post the completions that it has. A wait that times out at once would set a timer,
    /// which takes microseconds.
    fn poll(&mut self) -> io::Result<usize> {
        let queued = self.ring.submission().len() as u32;
        // SAFETY: without an argument, the call reads only the ring.
        unsafe { self.ring.submitter().enter::<libc::sigset_t>(queued, 0, EnterFlags::GETEVENTS.bits(), None) }
    }

    fn fd(&self, connection: ConnectionId) -> Option<Fd> {
        self.slots[connection.index()].stream.as_ref().map(|stream| Fd(stream.as_raw_fd()))
    }

    fn receive(&mut self, connection: ConnectionId) -> io::Result<()> {
        let Some(fd) = self.fd(connection) else {
            return Ok(());
        };
        let user_data = self.user_data(Operation::Receive, connection);
        let entry = match &self.stamps {
            Some(asked) => opcode::RecvMsgMulti::new(fd, &raw const asked.0, GROUP).build(),
            None => opcode::RecvMulti::new(fd, GROUP).build(),
        };
        let entry = entry.user_data(user_data);
        self.slots[connection.index()].pending += 1;
        // SAFETY: `close` submits the queue before it closes the socket, and the operation uses only the group's memory; the
        // kernel reads what is asked for when it is submitted, and the box lives as long as the ring.
        unsafe { self.push(&entry) }
    }

    /// Set a timer. The wait that follows submits it.
    fn set_timer(&mut self, at_ns: u64) -> io::Result<()> {
        self.timer_ns = at_ns;
        *self.timer = Timespec::new().sec(at_ns / 1_000_000_000).nsec((at_ns % 1_000_000_000) as u32);
        let entry = opcode::Timeout::new(&raw const *self.timer).flags(TimeoutFlags::ABS).build();
        // SAFETY: the kernel reads the time when the operation is submitted, and the box lives as long as the ring.
        unsafe { self.push(&entry.user_data(Operation::Timer.user_data())) }
    }

    fn take_batch(&mut self) {
        self.batch.clear();
        self.next = 0;
        self.batch.extend(self.ring.completion().take(BATCH));
    }

    /// The event of a completion, if there is one to report.
    fn event(&mut self, completion: &cqueue::Entry) -> Option<Event> {
        let user_data = completion.user_data();
        let connection = ConnectionId(user_data as u32);
        let operation = Operation::of(user_data);
        if operation == Operation::Timer {
            self.timer_ns = u64::MAX;
            return None;
        }
        if operation == Operation::Wake {
            // The waker is not read again: a request to stop is final.
            return Some(Event::Woken);
        }
        let slot = &mut self.slots[connection.index()];
        if slot.generation != (user_data >> 32) as u32 & GENERATIONS {
            self.recycle(completion);
            return None;
        }
        if operation != Operation::QuietSend && !cqueue::more(completion.flags()) {
            slot.pending = slot.pending.saturating_sub(1);
        }
        match operation {
            Operation::Connect => Some(self.connected(connection, completion.result())),
            Operation::Receive => self.received(connection, completion),
            _ => Some(match completion.result() {
                sent @ 0.. => Event::Sent(connection, sent as usize),
                error => Event::Unwritable(connection, io::Error::from_raw_os_error(-error)),
            }),
        }
    }

    /// Recycle the buffer of a completion whose bytes nobody reads.
    fn recycle(&mut self, completion: &cqueue::Entry) {
        if let Some(buffer) = cqueue::buffer_select(completion.flags()) {
            self.buffers.recycle(buffer);
        }
    }

    fn connected(&mut self, connection: ConnectionId, result: i32) -> Event {
        if result < 0 {
            return Event::Refused(connection, io::Error::from_raw_os_error(-result));
        }
        let to_itself = self.slots[connection.index()].stream.as_ref().is_none_or(is_to_itself);
        if to_itself {
            return Event::Refused(connection, io::Error::from_raw_os_error(libc::ECONNREFUSED));
        }
        match self.receive(connection) {
            Ok(()) => Event::Opened(connection),
            Err(error) => Event::Refused(connection, error),
        }
    }

    /// The result of a receive at the end of a stream: a stamped one has a head.
    fn nothing(&self) -> i32 {
        if self.stamps.is_some() { STAMPED_HEAD as i32 } else { 0 }
    }

    fn received(&mut self, connection: ConnectionId, completion: &cqueue::Entry) -> Option<Event> {
        let (result, flags) = (completion.result(), completion.flags());
        let out_of_buffers = result == -libc::ENOBUFS;
        if (result > self.nothing() || out_of_buffers)
            && !cqueue::more(flags)
            && let Err(error) = self.receive(connection)
        {
            self.recycle(completion);
            return Some(Event::Broken(connection, error));
        }
        match result {
            1.. => {
                let mut chunk = self.buffers.take(cqueue::buffer_select(flags)?, result as usize)?;
                if let Some(asked) = &self.stamps
                    && !read_stamp(&mut chunk, &asked.0)
                {
                    self.buffers.give_back(chunk);
                    return Some(Event::Ended(connection));
                }
                Some(Event::Received { connection, chunk, more: cqueue::sock_nonempty(flags) })
            }
            0 => {
                self.recycle(completion);
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

    fn new(connections: usize, waker: BorrowedFd<'_>, stamps: bool) -> io::Result<Self> {
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
        // Closing depends on synchronous cancellation, which Linux has since 6.0. There is nothing to cancel now.
        match ring.submitter().register_sync_cancel(None, CancelBuilder::user_data(u64::MAX)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let buffers = Buffers::register(&ring, GROUP, connections)?;
        let mut uring = Self {
            ring,
            buffers,
            slots: std::iter::repeat_with(UringSlot::default).take(connections).collect(),
            timer_ns: u64::MAX,
            timer: Box::default(),
            stamps: stamps.then(|| Box::new(StampAsked::new())),
            batch: Vec::with_capacity(BATCH),
            next: 0,
        };
        let entry = opcode::PollAdd::new(Fd(waker.as_raw_fd()), libc::POLLIN as u32).build();
        // SAFETY: the waker is open until the operation is submitted, here; the operation has no memory.
        unsafe { uring.push(&entry.user_data(Operation::Wake.user_data()))? };
        uring.submit()?;
        Ok(uring)
    }

    fn connect(&mut self, connection: ConnectionId, socket: TcpStream, target: &Address) -> io::Result<()> {
        if self.stamps.is_some() {
            stamp_arrivals(&socket);
        }
        let entry = opcode::Connect::new(Fd(socket.as_raw_fd()), target.name(), target.length()).build();
        let entry = entry.user_data(self.user_data(Operation::Connect, connection));
        // SAFETY: the kernel copies the address when the operation is submitted, here.
        unsafe { self.push(&entry)? };
        self.submit()?;
        let slot = &mut self.slots[connection.index()];
        slot.stream = Some(socket);
        slot.pending = 1;
        Ok(())
    }

    unsafe fn send(&mut self, connection: ConnectionId, bytes: &[u8], alone: bool) -> Sending {
        let Some(fd) = self.fd(connection) else {
            return Sending::Broken(ErrorKind::NotConnected.into());
        };
        // The kernel takes all bytes or fails: a partial write waits in the kernel until there is room.
        let length = bytes.len().min(u32::MAX as usize);
        let entry =
            opcode::Send::new(fd, bytes.as_ptr(), length as u32).flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL).build();
        // A short write with nothing before it in the socket always has room, so its success need not be reported.
        let quiet = alone && length <= QUIET_BYTES;
        let operation = if quiet { Operation::QuietSend } else { Operation::Send };
        let entry = entry.user_data(self.user_data(operation, connection));
        let entry = if quiet { entry.flags(Flags::SKIP_SUCCESS) } else { entry };
        self.slots[connection.index()].pending += u8::from(!quiet);
        // SAFETY: `close` submits the queue before it closes the socket; the caller keeps the bytes.
        match unsafe { self.push(&entry) } {
            Err(error) => Sending::Broken(error),
            Ok(()) if quiet => Sending::Taken(length),
            Ok(()) => Sending::Later,
        }
    }

    fn wait(&mut self, until_ns: u64) -> io::Result<()> {
        if until_ns > 0 && until_ns < self.timer_ns {
            self.set_timer(until_ns)?;
        }
        let waited = if until_ns == 0 { self.poll() } else { self.ring.submitter().submit_and_wait(1) };
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
            if let Some(event) = self.event(&completion) {
                return Some(event);
            }
        }
    }

    fn release(&mut self, chunk: Chunk) {
        self.buffers.give_back(chunk);
    }

    fn close(&mut self, connection: ConnectionId, reset: bool) {
        let slot = &mut self.slots[connection.index()];
        slot.generation = (slot.generation + 1) & GENERATIONS;
        let Some(stream) = slot.stream.take() else {
            return;
        };
        // Submit the queue first, so that no operation of this socket meets another socket with the same number. Then cancel
        // pending operations, which would keep the socket open and read memory that is freed.
        let _ = self.submit();
        if std::mem::take(&mut self.slots[connection.index()].pending) > 0 {
            let _ = cancel(&self.ring, || CancelBuilder::fd(Fd(stream.as_raw_fd())).all());
        }
        if reset {
            reset_on_close(&stream);
        }
    }
}

impl Drop for Uring {
    /// The kernel cancels the operations of a closed ring later, on a thread of its own. So they are cancelled here, and their
    /// completions taken, before the memory that they use is freed.
    fn drop(&mut self) {
        let cancelled = self.submit().and_then(|()| cancel(&self.ring, || CancelBuilder::any().all()));
        while self.wait(0).is_ok() && !self.batch.is_empty() {}
        let unregistered = self.ring.submitter().unregister_buf_ring(GROUP);
        if cancelled.is_err() || unregistered.is_err() {
            self.buffers.leak();
        }
    }
}

/// Find the bytes of a stamped receive, and when they arrived. Returns false at the end of the stream, where there are none.
fn read_stamp(chunk: &mut Chunk, asked: &libc::msghdr) -> bool {
    let Ok(out) = RecvMsgOut::parse(&chunk.memory[..chunk.length], asked) else {
        return false;
    };
    let (arrived_unix_ns, length) = (stamp_in(out.control_data()), out.payload_data().len());
    (chunk.from, chunk.length, chunk.arrived_unix_ns) = (STAMPED_HEAD, length, arrived_unix_ns);
    length > 0
}

/// Cancel operations, and wait until they have ended.
fn cancel(ring: &IoUring, which: impl Fn() -> CancelBuilder) -> io::Result<()> {
    loop {
        match ring.submitter().register_sync_cancel(None, which()) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    use super::*;
    use crate::sys::poll::waker;
    use crate::sys::socket::new_socket;

    /// A backend with an open connection, and the peer's end; `None` if the kernel has no `io_uring`.
    fn connected() -> Option<(Uring, TcpStream)> {
        let mut uring = match Uring::new(1, waker().unwrap().as_fd(), false) {
            Ok(uring) => uring,
            Err(why) => {
                eprintln!("SKIPPED: no io_uring: {why}");
                return None;
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Address::of_tcp(listener.local_addr().unwrap());
        uring.connect(ConnectionId(0), new_socket(&target, None, false).unwrap(), &target).unwrap();
        let (peer, _) = listener.accept().unwrap();
        loop {
            uring.wait(u64::MAX).unwrap();
            if let Some(Event::Opened(_)) = uring.next() {
                return Some((uring, peer));
            }
        }
    }

    fn received(uring: &mut Uring) -> Chunk {
        loop {
            if let Some(Event::Received { chunk, .. }) = uring.next() {
                return chunk;
            }
            uring.wait(u64::MAX).unwrap();
        }
    }

    #[test]
    fn a_chunk_keeps_its_bytes_whatever_its_backend_does() {
        let Some((mut uring, mut peer)) = connected() else { return };
        peer.write_all(b"first").unwrap();
        let first = received(&mut uring);
        // More chunks than there are buffers, each of them released or dropped.
        for round in 0..300 {
            peer.write_all(b"other").unwrap();
            let other = received(&mut uring);
            assert_eq!((first.bytes(), other.bytes()), (&b"first"[..], &b"other"[..]));
            if round % 100 > 0 {
                uring.release(other);
            }
        }
        drop(uring);
        assert_eq!(first.bytes(), b"first");
    }

    #[test]
    fn a_chunk_of_another_backend_is_not_given_to_the_kernel() {
        let Some((mut uring, mut peer)) = connected() else { return };
        let foreign = |buffer| Chunk { memory: vec![0; 7].into(), from: 0, length: 7, arrived_unix_ns: None, buffer };
        uring.release(foreign(0));
        uring.release(foreign(u16::MAX));
        peer.write_all(b"bytes").unwrap();
        assert_eq!(received(&mut uring).bytes(), b"bytes");
    }

    #[test]
    fn dropping_the_backend_ends_writes_and_closes_sockets() {
        let Some((mut uring, mut peer)) = connected() else { return };
        let bytes = vec![7; 64 << 20];
        // SAFETY: the bytes outlive the backend.
        assert!(matches!(unsafe { uring.send(ConnectionId(0), &bytes, false) }, Sending::Later));
        uring.wait(0).unwrap();
        drop(uring);
        let mut read = Vec::new();
        let _ = peer.read_to_end(&mut read);
        assert!(read.len() < bytes.len() && read.iter().all(|byte| *byte == 7));
    }
}
