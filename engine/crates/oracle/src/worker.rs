//! One thread: a listener, its connections and a timer on one epoll instance, all edge-triggered.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use crate::conversation::{Conversation, Release};
use crate::discipline::Discipline;
use crate::lateness::Lateness;
use crate::slots::Slots;
use crate::sys::{Epoll, Event, HANGUP, INPUT, Timer, monotonic_ns};

const LISTENER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const READ_BYTES: usize = 64 * 1024;
const EVENTS: usize = 256;

/// A connection with its socket.
struct Connection {
    socket: TcpStream,
    conversation: Conversation,
    /// Edge-triggered: input may wait until a read says that there is none.
    readable: bool,
    /// The peer's end follows what is still to be read.
    hung_up: bool,
}

/// An answer that waits for its time.
struct Due {
    at_ns: u64,
    token: u64,
    length: usize,
}

/// Serves connections of one listener.
pub struct Worker {
    origin_ns: u64,
    epoll: Epoll,
    timer: Timer,
    timer_at_ns: u64,
    listener: TcpListener,
    /// The kernel refused to accept, as when descriptors have run out: accept again when a connection ends.
    refused: bool,
    connections: Slots<Connection>,
    discipline: Discipline,
    /// In order of time, because answers fall due in order of arrival.
    queue: VecDeque<Due>,
    released: Vec<Due>,
    input: Box<[u8]>,
    lateness: Arc<Mutex<Lateness>>,
}

impl Worker {
    /// A worker on `listener`, whose times count from `origin_ns` of the monotonic clock and whose own error goes to `lateness`.
    pub fn new(
        listener: TcpListener,
        discipline: Discipline,
        origin_ns: u64,
        lateness: Arc<Mutex<Lateness>>,
    ) -> io::Result<Self> {
        let (epoll, timer) = (Epoll::new()?, Timer::new()?);
        epoll.add(&listener, LISTENER)?;
        epoll.add(&timer, TIMER)?;
        Ok(Self {
            origin_ns,
            epoll,
            timer,
            timer_at_ns: 0,
            listener,
            refused: false,
            connections: Slots::new(),
            discipline,
            queue: VecDeque::new(),
            released: Vec::new(),
            input: vec![0; READ_BYTES].into_boxed_slice(),
            lateness,
        })
    }

    /// Serves for ever; the error is one of epoll or the timer, never of a connection.
    pub fn run(mut self) -> io::Result<Infallible> {
        let mut events = [Event { events: 0, u64: 0 }; EVENTS];
        loop {
            let count = self.epoll.wait(&mut events)?;
            for event in &events[..count] {
                match event.u64 {
                    LISTENER => self.accept(),
                    TIMER => {}
                    token => self.attend(token, event.events),
                }
                self.release_due();
            }
            self.set_timer()?;
        }
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => {
                    // What fails here is a connection that is already gone.
                    let _ = self.admit(socket);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // That one is gone already, or a signal came: the next may be there.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ECONNABORTED | libc::EINTR)) => {}
                Err(error) => return self.refuse(&error),
            }
        }
    }

    /// Nothing can be accepted for now. Asking again at once would only spin: the next connection that comes or ends asks.
    fn refuse(&mut self, why: &io::Error) {
        if std::mem::replace(&mut self.refused, true) {
            return;
        }
        let hint = match why.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => "raise the limit of descriptors with `ulimit -n`",
            _ => "look at the limits of this process and at its network",
        };
        eprintln!("cannot accept: {why}: connections wait\n  hint: {hint}");
    }

    fn admit(&mut self, socket: TcpStream) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let conversation = Conversation::default();
        let token = self.connections.insert(Connection { socket, conversation, readable: false, hung_up: false });
        let added = self.connections.get(token).map(|connection| self.epoll.add(&connection.socket, token));
        added.unwrap_or(Ok(())).inspect_err(|_| self.close(token))
    }

    fn attend(&mut self, token: u64, events: u32) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        connection.readable |= events & INPUT != 0;
        connection.hung_up |= events & HANGUP != 0;
        self.converse(token);
    }

    /// Reads and writes until neither goes on.
    fn converse(&mut self, token: u64) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        let over = loop {
            if connection.send().is_err() {
                break true;
            }
            let conversation = &mut connection.conversation;
            if conversation.is_over() {
                break true;
            }
            if !(connection.readable && conversation.listens()) {
                break false;
            }
            match connection.socket.read(&mut self.input) {
                Ok(0) => {
                    connection.readable = false;
                    conversation.end();
                }
                Ok(length) => {
                    // A short read took all that there was; only an end can follow it unannounced.
                    connection.readable = length == self.input.len() || connection.hung_up;
                    let arrival_ns = if self.discipline.is_null() { 0 } else { monotonic_ns() - self.origin_ns };
                    let (discipline, queue) = (&mut self.discipline, &mut self.queue);
                    conversation.receive(&self.input[..length], |length| {
                        let at_ns = discipline.completion_ns(arrival_ns);
                        if at_ns <= arrival_ns && queue.is_empty() {
                            return Release::Now;
                        }
                        queue.push_back(Due { at_ns, token, length });
                        Release::Later
                    });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => connection.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break true,
            }
        };
        if over {
            self.close(token);
        }
    }

    fn close(&mut self, token: u64) {
        drop(self.connections.remove(token));
        if std::mem::take(&mut self.refused) {
            self.accept();
        }
    }

    /// Sends every answer whose time has come.
    fn release_due(&mut self) {
        if self.queue.is_empty() {
            return;
        }
        let now_ns = monotonic_ns() - self.origin_ns;
        while let Some(due) = self.queue.pop_front() {
            if due.at_ns > now_ns {
                self.queue.push_front(due);
                break;
            }
            if let Some(connection) = self.connections.get(due.token) {
                connection.conversation.release(due.length);
                self.released.push(due);
            }
        }
        let mut released = std::mem::take(&mut self.released);
        for due in released.drain(..) {
            self.converse(due.token);
            let late_ns = monotonic_ns() - self.origin_ns - due.at_ns;
            self.lateness.lock().unwrap_or_else(PoisonError::into_inner).record(late_ns);
        }
        self.released = released;
    }

    fn set_timer(&mut self) -> io::Result<()> {
        match self.queue.front() {
            Some(due) if due.at_ns != self.timer_at_ns => {
                self.timer_at_ns = due.at_ns;
                self.timer.set(self.origin_ns + due.at_ns)
            }
            _ => Ok(()),
        }
    }
}

impl Connection {
    /// Writes what may leave, as much as the socket takes.
    fn send(&mut self) -> io::Result<()> {
        while !self.conversation.outgoing().is_empty() {
            match self.socket.write(self.conversation.outgoing()) {
                Ok(length) => self.conversation.left(length),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
