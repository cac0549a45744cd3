//! A thread: a listener, its connections and a timer on an epoll instance, all edge-triggered.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use crate::agenda::{Agenda, Due};
use crate::behaviour::{Behaviour, Exchange, Places};
use crate::connection::{Connection, Step};
use crate::lateness::Lateness;
use crate::slots::Slots;
use crate::sys::{self, Epoll, Event, HANGUP, INPUT, Timer, monotonic_ns};

const LISTENER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const READ_BYTES: usize = 64 * 1024;
const EVENTS: usize = 256;

/// Serves the connections of a listener.
pub struct Worker {
    origin_ns: u64,
    epoll: Epoll,
    timer: Timer,
    timer_at_ns: u64,
    listener: TcpListener,
    /// The kernel refused to accept, as when descriptors have run out: accept again when a connection ends.
    refused: bool,
    connections: Slots<Connection>,
    places: Places,
    behaviour: Behaviour,
    agenda: Agenda,
    released: Vec<Due>,
    input: Box<[u8]>,
    /// The buffer of answers for the connection that needs it, so that idle connections hold none.
    output: Vec<u8>,
    lateness: Arc<Mutex<Lateness>>,
}

impl Worker {
    /// A worker on `listener`. Its times count from `origin_ns` of the monotonic clock, and its own error goes to `lateness`.
    pub fn new(
        listener: TcpListener,
        behaviour: Behaviour,
        places: Places,
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
            places,
            behaviour,
            agenda: Agenda::default(),
            released: Vec::new(),
            input: vec![0; READ_BYTES].into_boxed_slice(),
            output: Vec::new(),
            lateness,
        })
    }

    /// Serves for ever. The error is from epoll or the timer, never from a connection.
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
            match sys::accept(&self.listener) {
                // A connection past the limit is closed immediately.
                Ok(socket) if !self.places.take() => drop(socket),
                Ok(socket) => {
                    // This fails only if the connection has ended.
                    let _ = self.admit(Connection::new(socket));
                    if let Some(mut report) = self.behaviour.report() {
                        report.connections += 1;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The connection has ended already, or a signal came: there may be another.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ECONNABORTED | libc::EINTR)) => {}
                Err(error) => return self.refuse(&error),
            }
        }
    }

    /// Nothing can be accepted for now. Trying again immediately would only spin: the next connection that arrives or ends
    /// tries again.
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

    fn admit(&mut self, connection: Connection) -> io::Result<()> {
        let token = self.connections.insert(connection);
        let added = self.connections.get(token).map(|connection| self.epoll.add(connection.socket(), token));
        added.unwrap_or(Ok(())).inspect_err(|_| self.close(token))
    }

    fn attend(&mut self, token: u64, events: u32) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        connection.heard(events & INPUT != 0, events & HANGUP != 0);
        self.converse(token);
    }

    /// Reads and writes until neither makes progress.
    fn converse(&mut self, token: u64) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        connection.conversation.lend(&mut self.output);
        let most = if self.behaviour.faults.bytewise { 1 } else { usize::MAX };
        let over = loop {
            match connection.step(&mut self.input, most) {
                Ok(Step::Wait) => break false,
                Ok(Step::Received(length)) => {
                    let timed = self.behaviour.is_timed();
                    let arrival_ns = if timed { monotonic_ns() - self.origin_ns } else { 0 };
                    let Connection { conversation, due_ns, .. } = &mut *connection;
                    let (behaviour, agenda) = (&mut self.behaviour, &mut self.agenda);
                    let exchange = Exchange { token, arrival_ns, due_ns, behaviour, agenda };
                    conversation.receive(&self.input[..length], exchange);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(Step::Over) | Err(_) => break true,
            }
        };
        connection.conversation.give_back(&mut self.output);
        if over {
            self.close(token);
        }
    }

    fn close(&mut self, token: u64) {
        if self.connections.remove(token).is_some() {
            self.places.give_back();
        }
        if std::mem::take(&mut self.refused) {
            self.accept();
        }
    }

    /// Sends everything that is due.
    fn release_due(&mut self) {
        if self.agenda.is_empty() {
            return;
        }
        let now_ns = monotonic_ns() - self.origin_ns;
        while let Some(due) = self.agenda.take_due(now_ns) {
            if let Some(connection) = self.connections.get(due.token) {
                connection.conversation.release(&due);
                self.released.push(due);
            }
        }
        let mut released = std::mem::take(&mut self.released);
        // Held while answers are sent: a client that has an answer and then gets the lateness sees it counted.
        let lateness = Arc::clone(&self.lateness);
        let mut lateness = lateness.lock().unwrap_or_else(PoisonError::into_inner);
        for due in released.drain(..) {
            if let Some(mut report) = self.behaviour.report() {
                let after_ns = monotonic_ns() - self.origin_ns - due.arrival_ns;
                if due.first {
                    report.began(after_ns);
                }
                if due.last {
                    report.ended(after_ns);
                }
            }
            self.converse(due.token);
            if due.last {
                lateness.record(monotonic_ns() - self.origin_ns - due.at_ns);
            }
        }
        self.released = released;
    }

    fn set_timer(&mut self) -> io::Result<()> {
        match self.agenda.next_ns() {
            Some(at_ns) if at_ns != self.timer_at_ns => {
                self.timer_at_ns = at_ns;
                self.timer.set(self.origin_ns + at_ns)
            }
            _ => Ok(()),
        }
    }
}
