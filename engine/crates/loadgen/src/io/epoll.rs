//! The backend for every Linux: edge-triggered epoll, without `epoll_ctl` in the steady state. Reads and writes happen
//! immediately.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use super::{Chunk, Event, Io, Sending};
use crate::ids::ConnectionId;
use crate::sys::poll::{Poll, Ready};
use crate::sys::socket::{Address, begin_connect, is_to_itself, receive_stamped, reset_on_close, stamp_arrivals};
use crate::sys::time::Timer;

const WAKER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
/// Events per wait.
const EVENTS: usize = 256;
/// The size of a read. A shorter result means that the socket is empty.
const BUFFER_BYTES: usize = 64 * 1024;
/// Consecutive reads of a connection before others have their turn.
const READS_AT_ONCE: u32 = 16;

pub struct Epoll {
    poll: Poll,
    timer: Timer,
    /// When the timer fires; `u64::MAX` once it has fired.
    timer_ns: u64,
    slots: Vec<EpollSlot>,
    ready: Box<[Ready]>,
    filled: usize,
    next: usize,
    reading: Option<UnreadSocket>,
    /// Sockets with unread bytes that no event will report.
    unread: VecDeque<UnreadSocket>,
    /// How many of them to read before the next wait.
    resuming: usize,
    /// Empty while a chunk owns it.
    buffer: Box<[u8]>,
    stamps: bool,
}

#[derive(Default)]
struct EpollSlot {
    stream: Option<TcpStream>,
    /// Counts sockets, so that an event of an earlier socket is recognized and dropped.
    generation: u32,
    opening: bool,
    /// The socket's send buffer is full.
    full: bool,
}

/// A socket with bytes to read.
#[derive(Clone, Copy)]
struct UnreadSocket {
    token: u64,
    /// The peer closed its side after these bytes.
    ending: bool,
    left: u32,
}

impl UnreadSocket {
    fn new(token: u64, ending: bool) -> Self {
        Self { token, ending, left: READS_AT_ONCE }
    }
}

impl Epoll {
    fn token(&self, connection: ConnectionId) -> u64 {
        u64::from(self.slots[connection.index()].generation) << 32 | u64::from(connection.0)
    }

    /// The connection whose present socket was registered with this token.
    fn connection_of(&self, token: u64) -> Option<ConnectionId> {
        let connection = ConnectionId(token as u32);
        let slot = self.slots.get(connection.index())?;
        (slot.stream.is_some() && slot.generation == (token >> 32) as u32).then_some(connection)
    }

    fn connect_result(&mut self, connection: ConnectionId) -> Event {
        let slot = &mut self.slots[connection.index()];
        slot.opening = false;
        let Some(stream) = &slot.stream else {
            return Event::Refused(connection, ErrorKind::NotConnected.into());
        };
        let failed = stream.take_error().unwrap_or_else(Some);
        match failed.or_else(|| is_to_itself(stream).then(|| io::Error::from_raw_os_error(libc::ECONNREFUSED))) {
            Some(why) => Event::Refused(connection, why),
            None => Event::Opened(connection),
        }
    }

    /// The first event of a readiness report. Readable bytes are reported after it.
    fn take(&mut self, ready: Ready) -> Option<Event> {
        if ready.token() == TIMER {
            self.timer_ns = u64::MAX;
            return None;
        }
        if ready.token() == WAKER {
            return Some(Event::Woken);
        }
        let connection = self.connection_of(ready.token())?;
        if ready.readable() {
            self.reading = Some(UnreadSocket::new(ready.token(), ready.ending()));
        }
        let slot = &mut self.slots[connection.index()];
        if slot.opening {
            return Some(self.connect_result(connection));
        }
        let has_room = ready.writable() && std::mem::take(&mut slot.full);
        has_room.then_some(Event::Sent(connection, 0))
    }

    /// Read once; `None` when there is nothing to read.
    fn read(&mut self, mut reading: UnreadSocket) -> Option<Event> {
        let connection = self.connection_of(reading.token)?;
        if reading.left == 0 {
            match self.unread.iter_mut().find(|known| known.token == reading.token) {
                Some(known) => known.ending |= reading.ending,
                None => self.unread.push_back(UnreadSocket::new(reading.token, reading.ending)),
            }
            return None;
        }
        if self.buffer.is_empty() {
            self.buffer = new_buffer();
        }
        loop {
            let stream = self.slots[connection.index()].stream.as_mut()?;
            let read = if self.stamps {
                receive_stamped(stream, &mut self.buffer)
            } else {
                stream.read(&mut self.buffer).map(|bytes| (bytes, None))
            };
            match read {
                Ok((0, _)) => return Some(Event::Ended(connection)),
                Ok((bytes, arrived_unix_ns)) => {
                    reading.left -= 1;
                    let more = bytes == self.buffer.len() || reading.ending;
                    self.reading = more.then_some(reading);
                    let memory = std::mem::take(&mut self.buffer);
                    let chunk = Chunk { memory, from: 0, length: bytes, arrived_unix_ns, buffer: 0 };
                    return Some(Event::Received { connection, chunk, more });
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(why) => return Some(Event::Broken(connection, why)),
            }
        }
    }
}

fn new_buffer() -> Box<[u8]> {
    vec![0; BUFFER_BYTES].into_boxed_slice()
}

impl Io for Epoll {
    const NAME: &'static str = "epoll";
    const NONBLOCKING: bool = true;

    fn new(connections: usize, waker: BorrowedFd<'_>, stamps: bool) -> io::Result<Self> {
        let poll = Poll::new()?;
        poll.add_waker(waker, WAKER)?;
        let timer = Timer::new()?;
        poll.add_waker(timer.as_fd(), TIMER)?;
        Ok(Self {
            poll,
            timer,
            timer_ns: u64::MAX,
            slots: std::iter::repeat_with(EpollSlot::default).take(connections).collect(),
            ready: vec![Ready::NOTHING; EVENTS].into_boxed_slice(),
            filled: 0,
            next: 0,
            reading: None,
            unread: VecDeque::new(),
            resuming: 0,
            buffer: new_buffer(),
            stamps,
        })
    }

    fn connect(&mut self, connection: ConnectionId, socket: TcpStream, target: &Address) -> io::Result<()> {
        if self.stamps {
            stamp_arrivals(&socket);
        }
        begin_connect(&socket, target)?;
        self.poll.add_socket(socket.as_fd(), self.token(connection))?;
        let slot = &mut self.slots[connection.index()];
        slot.stream = Some(socket);
        slot.opening = true;
        slot.full = false;
        Ok(())
    }

    unsafe fn send(&mut self, connection: ConnectionId, bytes: &[u8], _alone: bool) -> Sending {
        let slot = &mut self.slots[connection.index()];
        let Some(stream) = &mut slot.stream else {
            return Sending::Broken(ErrorKind::NotConnected.into());
        };
        loop {
            match stream.write(bytes) {
                Ok(0) => return Sending::Broken(ErrorKind::WriteZero.into()),
                Ok(taken) => return Sending::Taken(taken),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    slot.full = true;
                    return Sending::Full(0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Sending::Broken(why),
            }
        }
    }

    fn wait(&mut self, until_ns: u64) -> io::Result<()> {
        self.resuming = self.unread.len();
        self.next = 0;
        self.filled = 0;
        let sleeps = self.resuming == 0 && until_ns > 0;
        if sleeps && until_ns < self.timer_ns {
            self.timer.set(until_ns)?;
            self.timer_ns = until_ns;
        }
        self.filled = self.poll.wait(&mut self.ready, sleeps)?;
        Ok(())
    }

    fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(reading) = self.reading.take() {
                if let Some(event) = self.read(reading) {
                    return Some(event);
                }
            } else if self.next < self.filled {
                self.next += 1;
                if let Some(event) = self.take(self.ready[self.next - 1]) {
                    return Some(event);
                }
            } else if self.resuming > 0 {
                self.resuming -= 1;
                self.reading = self.unread.pop_front();
            } else {
                return None;
            }
        }
    }

    fn release(&mut self, chunk: Chunk) {
        self.buffer = chunk.memory;
    }

    fn close(&mut self, connection: ConnectionId, reset: bool) {
        let slot = &mut self.slots[connection.index()];
        slot.generation = slot.generation.wrapping_add(1);
        if let Some(stream) = slot.stream.take()
            && reset
        {
            reset_on_close(&stream);
        }
    }
}
