//! The backend for every Linux: edge-triggered epoll, no `epoll_ctl` in the steady state, reads and writes at once.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use super::ready::{Poll, Ready};
use super::{Chunk, Event, Io, Sending};
use crate::sys::socket::{Address, begin_connect, is_to_itself, reset_on_close};
use crate::sys::timer::Timer;

const WAKER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
/// How many events one wait takes.
const EVENTS: usize = 256;
/// How much one read takes: what is shorter than this was all there was.
const BUFFER_BYTES: usize = 64 * 1024;
/// How often one connection is read before the others have their turn.
const READS_AT_ONCE: u32 = 16;

pub struct Epoll {
    poll: Poll,
    timer: Timer,
    /// When the timer is set for; never, when it has fired.
    timer_ns: u64,
    slots: Vec<Slot>,
    ready: Box<[Ready]>,
    filled: usize,
    next: usize,
    reading: Option<Reading>,
    /// Sockets of which more can be read although no event will say so.
    unread: VecDeque<Reading>,
    /// How many of them are still to be read before the next wait.
    resuming: usize,
    buffer: Box<[u8]>,
}

#[derive(Default)]
struct Slot {
    stream: Option<TcpStream>,
    /// Counts the sockets, so that an event of an earlier one is told from those of the present.
    generation: u32,
    opening: bool,
    /// The socket took no more.
    full: bool,
}

/// A socket that is being read.
#[derive(Clone, Copy)]
struct Reading {
    token: u64,
    /// The peer sends no more after what there is.
    ending: bool,
    left: u32,
}

impl Reading {
    fn new(token: u64, ending: bool) -> Self {
        Self { token, ending, left: READS_AT_ONCE }
    }
}

impl Epoll {
    fn token(&self, connection: u32) -> u64 {
        u64::from(self.slots[connection as usize].generation) << 32 | u64::from(connection)
    }

    /// Which connection has the socket that was registered so.
    fn of(&self, token: u64) -> Option<u32> {
        let connection = token as u32;
        let slot = self.slots.get(connection as usize)?;
        (slot.stream.is_some() && slot.generation == (token >> 32) as u32).then_some(connection)
    }

    fn settle_opening(&mut self, connection: u32) -> Event {
        let slot = &mut self.slots[connection as usize];
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

    /// What an event of the kernel means first; reading goes on from there.
    fn take(&mut self, ready: Ready) -> Option<Event> {
        if ready.token() == TIMER {
            self.timer_ns = u64::MAX;
            return None;
        }
        if ready.token() == WAKER {
            return Some(Event::Woken);
        }
        let connection = self.of(ready.token())?;
        if ready.readable() {
            self.reading = Some(Reading::new(ready.token(), ready.ending()));
        }
        let slot = &mut self.slots[connection as usize];
        if slot.opening {
            return Some(self.settle_opening(connection));
        }
        let has_room = ready.writable() && std::mem::take(&mut slot.full);
        has_room.then_some(Event::Taken(connection, 0))
    }

    /// Read once; `None` when there is nothing (more) to read.
    fn read(&mut self, mut reading: Reading) -> Option<Event> {
        let connection = self.of(reading.token)?;
        if reading.left == 0 {
            match self.unread.iter_mut().find(|known| known.token == reading.token) {
                Some(known) => known.ending |= reading.ending,
                None => self.unread.push_back(Reading::new(reading.token, reading.ending)),
            }
            return None;
        }
        loop {
            match self.slots[connection as usize].stream.as_mut()?.read(&mut self.buffer) {
                Ok(0) => return Some(Event::Ended(connection)),
                Ok(bytes) => {
                    reading.left -= 1;
                    let more = bytes == self.buffer.len() || reading.ending;
                    self.reading = more.then_some(reading);
                    // SAFETY: the buffer is neither moved nor written to before the chunk is given back: `next` and only it
                    // reads into it.
                    let chunk = unsafe { Chunk::new(&self.buffer[..bytes], 0) };
                    return Some(Event::Received { connection, chunk, more });
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(why) => return Some(Event::Broken(connection, why)),
            }
        }
    }
}

impl Io for Epoll {
    const NAME: &'static str = "epoll";
    const NONBLOCKING: bool = true;

    fn new(connections: usize, waker: BorrowedFd<'_>) -> io::Result<Self> {
        let poll = Poll::new()?;
        poll.add_waker(waker, WAKER)?;
        let timer = Timer::new()?;
        poll.add_waker(timer.as_fd(), TIMER)?;
        Ok(Self {
            poll,
            timer,
            timer_ns: u64::MAX,
            slots: std::iter::repeat_with(Slot::default).take(connections).collect(),
            ready: vec![Ready::NOTHING; EVENTS].into_boxed_slice(),
            filled: 0,
            next: 0,
            reading: None,
            unread: VecDeque::new(),
            resuming: 0,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
        })
    }

    fn connect(&mut self, connection: u32, socket: TcpStream, target: &Address) -> io::Result<()> {
        begin_connect(&socket, target)?;
        self.poll.add_socket(socket.as_fd(), self.token(connection))?;
        let slot = &mut self.slots[connection as usize];
        slot.stream = Some(socket);
        slot.opening = true;
        slot.full = false;
        Ok(())
    }

    unsafe fn send(&mut self, connection: u32, bytes: &[u8], _alone: bool) -> Sending {
        let slot = &mut self.slots[connection as usize];
        let Some(stream) = &mut slot.stream else {
            return Sending::Broken(ErrorKind::NotConnected.into());
        };
        loop {
            match stream.write(bytes) {
                Ok(0) => return Sending::Broken(ErrorKind::WriteZero.into()),
                // What it takes next it will say by an event, so one more try is for free only when it took all.
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

    fn release(&mut self, _chunk: Chunk) {}

    fn close(&mut self, connection: u32, reset: bool) {
        let slot = &mut self.slots[connection as usize];
        slot.generation = slot.generation.wrapping_add(1);
        if let Some(stream) = slot.stream.take()
            && reset
        {
            reset_on_close(&stream);
        }
    }
}
