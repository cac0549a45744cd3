//! The connections of one worker: opening them, writing on them, and opening them again.

use std::io;
use std::net::SocketAddr;

use redline_traffic::TlsTold;

use crate::connection::{Connection, Layers};
use crate::demand::NEVER;
use crate::flights::Line;
use crate::io::{Event, Io, Sending};
use crate::job::{Http, Job, Target};
use crate::outbox::Tape;
use crate::roster::{Roster, State};
use crate::sources::Sources;
use crate::stop::Stop;
use crate::sys::socket::{Address, new_socket};
use crate::sys::time::now_ns;

/// How many connections are being opened at once, so that a server's backlog does not overflow.
const OPENING_AT_ONCE: usize = 128;
const SHORTEST_DELAY_NS: u64 = 1_000_000;
const LONGEST_DELAY_NS: u64 = 100_000_000;
/// A connection that ends without an answer in less than this was not wanted; later, the peer had another reason.
const AT_ONCE_NS: u64 = 1_000_000_000;

/// Why opening is slowed down, and what ends that.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    /// A connection could not be opened; the next that is opened ends it.
    Refused,
    /// A connection ended without an answer and at once; the first answer on a new one ends it.
    Dropped,
}

/// How the first connecting went.
pub struct Opened {
    pub open: usize,
    /// The last reason why one could not be opened.
    pub why: Option<Failure>,
    /// What the first handshake agreed on.
    pub tls: Option<TlsTold>,
}

/// Why a connection could not be opened.
#[derive(Debug)]
pub enum Failure {
    Connect(io::Error),
    /// It was open, and the handshake failed.
    Tls(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connect(error) => error.fmt(f),
            Self::Tls(why) => write!(f, "the TLS handshake failed: {why}"),
        }
    }
}

/// A handshake that has ended well.
#[derive(Clone, Copy)]
pub struct Shaken {
    pub ns: u64,
    pub resumed: bool,
}

/// How far an opening has come.
pub enum Opening {
    Going,
    /// It can carry requests.
    Done,
    Failed(Failure),
}

pub struct Pool<I> {
    pub io: I,
    pub connections: Vec<Connection>,
    pub roster: Roster,
    /// Handshakes that ended well and were not counted yet.
    pub shaken: Vec<Shaken>,
    tls_told: Option<TlsTold>,
    address: Address,
    target: Target,
    sources: Sources,
    /// The number of connection 0 among those of all workers.
    first: u32,
    /// The most requests in flight on one connection, and in all on one.
    depth: u32,
    requests_per_connection: u32,
    tapes: Vec<Tape>,
    /// For bytes between the layers.
    plain: Vec<u8>,
    /// How many connections more are to be parked as soon as they are idle.
    surplus: usize,
    trouble: Trouble,
    delay_ns: u64,
    open_after_ns: u64,
}

impl<I: Io> Pool<I> {
    /// A pool of at most so many connections, all parked.
    pub fn new(job: &Job, tapes: Vec<Tape>, target: SocketAddr, first: u32, connections: usize, stop: &Stop) -> io::Result<Self> {
        Ok(Self {
            io: I::new(connections, stop.waker())?,
            connections: (0..connections).map(|_| Connection::new()).collect(),
            roster: Roster::new(connections),
            shaken: Vec::new(),
            tls_told: None,
            address: Address::new(target),
            target: job.target.clone(),
            sources: Sources::new(target, &job.target.sources, job.load.connections()),
            first,
            depth: job.load.depth,
            requests_per_connection: job.load.requests_per_connection.unwrap_or(u32::MAX),
            tapes,
            plain: Vec::new(),
            surplus: 0,
            trouble: Trouble::None,
            delay_ns: 0,
            open_after_ns: 0,
        })
    }

    /// So many connections more are wanted.
    pub fn grow(&mut self, more: usize) {
        let spared = more.min(self.surplus);
        self.surplus -= spared;
        for _ in spared..more {
            if let Some(connection) = self.roster.front(State::Parked) {
                self.roster.change(connection, State::Down);
            }
        }
    }

    /// One connection less is wanted: one that is not open, or is idle, or the next that will be.
    pub fn shrink(&mut self) {
        let spare = self.roster.front(State::Down).or_else(|| self.roster.front(State::Idle));
        if let Some(connection) = spare {
            self.drop_socket(connection, true);
            self.roster.change(connection, State::Parked);
        } else {
            self.surplus += 1;
        }
    }

    /// Try each connection that is wanted once, for at most `limit_ns`. Those still being opened then go on.
    pub fn open_all(&mut self, limit_ns: u64, stop: &Stop) -> io::Result<Opened> {
        let end_ns = now_ns().saturating_add(limit_ns);
        let mut untried = self.roster.length(State::Down);
        let mut why = None;
        while stop.code().is_none() {
            while untried > 0 && self.roster.length(State::Opening) < OPENING_AT_ONCE {
                untried -= 1;
                why = self.begin_next(now_ns()).err().map(|(_, error)| Failure::Connect(error)).or(why);
            }
            let left_ns = end_ns.saturating_sub(now_ns());
            if self.roster.length(State::Opening) == 0 && untried == 0 || left_ns == 0 {
                break;
            }
            self.io.wait(left_ns)?;
            while let Some(event) = self.io.next() {
                why = self.settle_first(event).or(why);
            }
        }
        Ok(Opened { open: self.open(), why, tls: self.tls_told.clone() })
    }

    /// During the first connecting: a socket is open, or was lost.
    fn settle_first(&mut self, event: Event) -> Option<Failure> {
        let (Event::Opened(connection)
        | Event::Refused(connection, _)
        | Event::Received { connection, .. }
        | Event::Taken(connection, _)
        | Event::Ended(connection)
        | Event::Broken(connection, _)) = event
        else {
            return None;
        };
        match self.advance(event, now_ns()) {
            Opening::Done if self.roster.state(connection) == State::Opening => {
                self.opened(connection);
                None
            }
            Opening::Failed(why) => {
                self.drop_socket(connection, false);
                Some(why)
            }
            _ => None,
        }
    }

    /// Something happened to a connection that is being opened, or was opened before the load began.
    pub fn advance(&mut self, event: Event, now_ns: u64) -> Opening {
        match event {
            Event::Woken => Opening::Going,
            Event::Opened(connection) => self.connected(connection, now_ns),
            Event::Refused(_, error) | Event::Broken(_, error) => Opening::Failed(Failure::Connect(error)),
            Event::Ended(_) => Opening::Failed(Failure::Connect(io::ErrorKind::UnexpectedEof.into())),
            Event::Taken(connection, bytes) => match self.taken(connection, bytes) {
                Ok(_) => Opening::Going,
                Err(error) => Opening::Failed(Failure::Connect(error)),
            },
            Event::Received { connection, chunk, .. } => {
                let opening = self.shake(connection, chunk.bytes(), now_ns);
                self.io.release(chunk);
                opening
            }
        }
    }

    /// The socket is connected: what comes before requests begins.
    fn connected(&mut self, connection: u32, now_ns: u64) -> Opening {
        let mut layers = Layers::default();
        layers.shaking_since_ns = now_ns;
        if let Some(tls) = &self.target.tls {
            match tls.client.connect() {
                Ok(session) => layers.tls = Some(session),
                Err(error) => return Opening::Failed(Failure::Tls(error.to_string())),
            }
        }
        if self.target.http == Http::V2 {
            match redline_http2::Session::new() {
                Ok(session) => layers.http2 = Some(session),
                Err(error) => return Opening::Failed(Failure::Connect(io::Error::other(error.to_string()))),
            }
        }
        let shakes = layers.tls.is_some();
        if shakes || layers.http2.is_some() {
            self.connections[connection as usize].layers = Some(Box::new(layers));
            if let Err(error) = self.flush(connection) {
                return Opening::Failed(Failure::Connect(error));
            }
        }
        if shakes { Opening::Going } else { Opening::Done }
    }

    /// Bytes came on a connection that is being opened.
    fn shake(&mut self, connection: u32, bytes: &[u8], now_ns: u64) -> Opening {
        let layers = self.connections[connection as usize].layers.as_deref_mut();
        let Some((layers, tls)) = layers.and_then(|layers| layers.tls.take().map(|tls| (layers, tls))) else {
            // It speaks before it was asked: of no use. HTTP/2 has said its preface, and is open.
            return Opening::Failed(Failure::Connect(io::Error::other("it spoke before a request came")));
        };
        let mut tls = tls;
        self.plain.clear();
        let fed = tls.feed(bytes, &mut self.plain);
        let agreed = tls.alpn().map(<[u8]>::to_vec);
        let told = TlsTold {
            version: tls.version().to_owned(),
            cipher: tls.cipher(),
            alpn: agreed.as_ref().map(|name| String::from_utf8_lossy(name).into_owned()),
            insecure: self.target.tls.as_ref().is_some_and(|tls| tls.insecure),
        };
        let (resumed, since_ns) = (tls.resumed(), layers.shaking_since_ns);
        layers.tls = Some(tls);
        // SETTINGS may come with the last bytes of the handshake.
        if let Some(http2) = &mut layers.http2
            && let Err(error) = http2.feed(&self.plain, &mut Vec::new())
        {
            return Opening::Failed(Failure::Connect(io::Error::other(error.to_string())));
        }
        let flushed = self.flush(connection);
        match fed {
            Err(error) => Opening::Failed(Failure::Tls(error.to_string())),
            Ok(fed) if fed.closed => Opening::Failed(Failure::Tls("the peer closed it".to_owned())),
            Ok(fed) if fed.handshake_done_now => {
                if self.target.http == Http::V2 && agreed.as_deref() != Some(b"h2") {
                    let why = "the server does not choose h2 by ALPN";
                    return Opening::Failed(Failure::Connect(io::Error::other(why)));
                }
                self.tls_told.get_or_insert(told);
                self.shaken.push(Shaken { ns: now_ns.saturating_sub(since_ns), resumed });
                flushed.map_or_else(|error| Opening::Failed(Failure::Connect(error)), |_| Opening::Done)
            }
            Ok(_) => flushed.map_or_else(|error| Opening::Failed(Failure::Connect(error)), |_| Opening::Going),
        }
    }

    /// Write what a connection has to be written, as far as the kernel takes it; how many bytes it took.
    #[inline]
    pub fn flush(&mut self, connection: u32) -> io::Result<usize> {
        let writer = &mut self.connections[connection as usize];
        let mut written = 0;
        while writer.in_hand == 0 && !writer.full {
            let one = writer.line.length <= 1;
            let next = writer.next_out(&self.tapes, &mut self.plain).map_err(io::Error::other)?;
            let Some(next) = next else {
                break;
            };
            let (alone, length) = (one && next.is_tape, next.bytes.len());
            // SAFETY: tapes live as long as the pool, which drops its backend with it; other bytes stay where they are until
            // they were taken or the connection is closed, because while they are in hand nothing is asked of the outbox.
            match unsafe { self.io.send(connection, next.bytes, alone) } {
                Sending::Taken(bytes) => {
                    writer.took(bytes);
                    written += bytes;
                }
                Sending::Full(bytes) => {
                    writer.took(bytes);
                    writer.full = true;
                    written += bytes;
                }
                Sending::Later => writer.in_hand = length,
                Sending::Broken(why) => return Err(why),
            }
        }
        Ok(written)
    }

    /// The kernel took so many bytes of what it had in hand, and has room; how many bytes it took in all.
    pub fn taken(&mut self, connection: u32, bytes: usize) -> io::Result<usize> {
        let writer = &mut self.connections[connection as usize];
        writer.in_hand = 0;
        writer.full = false;
        if bytes > 0 {
            writer.took(bytes);
        }
        Ok(bytes + self.flush(connection)?)
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.roster.length(State::Idle) + self.roster.length(State::Busy) + self.roster.length(State::Full)
    }

    pub fn is_open(&self, connection: u32) -> bool {
        matches!(self.roster.state(connection), State::Idle | State::Busy | State::Full)
    }

    pub fn has_room(&self) -> bool {
        self.roster.length(State::Idle) + self.roster.length(State::Busy) > 0
    }

    /// The connection that the next request goes out on: an idle one, or one with room.
    #[inline]
    pub fn next_with_room(&self) -> Option<u32> {
        self.roster.front(State::Idle).or_else(|| self.roster.front(State::Busy))
    }

    /// How many requests more can be put on an open connection now.
    #[inline]
    pub fn room(&self, connection: u32) -> u32 {
        let carrier = &self.connections[connection as usize];
        if carrier.closing {
            return 0;
        }
        let depth_left = self.depth.saturating_sub(carrier.line.length);
        let left = self.requests_per_connection.saturating_sub(carrier.carried);
        let streams = carrier.layers.as_deref().and_then(|layers| layers.http2.as_ref());
        depth_left.min(left).min(streams.map_or(u32::MAX, redline_http2::Session::room))
    }

    /// Put an open connection where it belongs, after what is in flight on it has changed.
    #[inline]
    pub fn settle(&mut self, connection: u32) {
        let (empty, room) = (self.connections[connection as usize].line.length == 0, self.room(connection));
        if empty && (room == 0 || self.surplus > 0) {
            // It has served, or is wanted no more.
            return self.drop_socket(connection, true);
        }
        let state = match (empty, room) {
            (true, _) => State::Idle,
            (false, 0) => State::Full,
            (false, _) => State::Busy,
        };
        self.roster.change(connection, state);
    }

    /// More requests wait than the connections can carry: the pool grows, as far as it may.
    pub fn grow_for(&mut self, waiting: u64) {
        let coming = self.roster.length(State::Opening) + self.roster.length(State::Down);
        if self.roster.length(State::Parked) > 0 && (coming as u64) < waiting {
            self.grow(1);
        }
    }

    /// Whether a connection that is down may be opened now.
    pub fn may_open(&self, now_ns: u64) -> bool {
        self.next_opening_ns() <= now_ns
    }

    /// From when on a connection that is down may be opened; never, when an event has to come first.
    pub fn next_opening_ns(&self) -> u64 {
        let at_once = if self.trouble == Trouble::None { OPENING_AT_ONCE } else { 1 };
        if self.roster.length(State::Down) == 0 || self.roster.length(State::Opening) >= at_once {
            return NEVER;
        }
        self.open_after_ns
    }

    /// Begin to open the connection that has been down for the longest time; which one could not be, and why.
    pub fn begin_next(&mut self, now_ns: u64) -> Result<(), (u32, io::Error)> {
        let Some(connection) = self.roster.front(State::Down) else {
            return Ok(());
        };
        // Whatever comes of it, it goes to the back of a queue: the others have their turn first.
        self.roster.change(connection, State::Down);
        if self.trouble != Trouble::None {
            // That it opens says nothing yet: the next has to wait all the same.
            self.open_after_ns = now_ns.saturating_add(self.delay_ns);
        }
        let source = self.sources.of(self.first + connection);
        new_socket(&self.address, source, I::NONBLOCKING)
            .and_then(|socket| self.io.connect(connection, socket, &self.address))
            .map_err(|error| (connection, error))?;
        self.connections[connection as usize].begin(now_ns);
        self.roster.change(connection, State::Opening);
        Ok(())
    }

    /// A connection is open; whether it replaces an earlier one.
    pub fn opened(&mut self, connection: u32) -> bool {
        self.roster.change(connection, State::Idle);
        if self.trouble == Trouble::Refused {
            self.untroubled();
        }
        std::mem::replace(&mut self.connections[connection as usize].was_open, true)
    }

    /// An answer came.
    #[inline]
    pub fn answered(&mut self, connection: u32) {
        let first = !std::mem::replace(&mut self.connections[connection as usize].answered, true);
        if first && self.trouble != Trouble::None {
            self.untroubled();
        }
    }

    fn untroubled(&mut self) {
        self.trouble = Trouble::None;
        self.delay_ns = 0;
        self.open_after_ns = 0;
    }

    /// A connection could not be opened.
    pub fn refused(&mut self, connection: u32, now_ns: u64) {
        self.drop_socket(connection, true);
        self.slow_down(Trouble::Refused, now_ns);
    }

    /// An open connection has ended, or is to be ended because of what came on it; `reset` when something on it is unanswered.
    pub fn lost(&mut self, connection: u32, reset: bool, now_ns: u64) {
        let ended = &self.connections[connection as usize];
        if !ended.answered && now_ns < ended.opened_ns.saturating_add(AT_ONCE_NS) {
            self.slow_down(Trouble::Dropped, now_ns);
        }
        self.drop_socket(connection, reset);
    }

    fn slow_down(&mut self, trouble: Trouble, now_ns: u64) {
        if self.trouble != Trouble::Dropped {
            self.trouble = trouble;
        }
        self.delay_ns = (self.delay_ns * 2).clamp(SHORTEST_DELAY_NS, LONGEST_DELAY_NS);
        self.open_after_ns = now_ns.saturating_add(self.delay_ns);
    }

    /// Close a connection, without blame for its peer. It carries nothing any more.
    pub fn drop_socket(&mut self, connection: u32, reset: bool) {
        self.io.close(connection, reset);
        let ended = &mut self.connections[connection as usize];
        debug_assert_eq!(ended.line.length, Line::EMPTY.length);
        ended.end();
        let parked = self.surplus > 0;
        self.surplus -= usize::from(parked);
        self.roster.change(connection, if parked { State::Parked } else { State::Down });
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::{LONGEST_DELAY_NS, Pool, SHORTEST_DELAY_NS};
    use crate::io::epoll::Epoll;
    use crate::job::tests::job;
    use crate::stop::Stop;

    /// A pool of one connection, which is open since 0, and the listener that it is open to.
    fn pool() -> (Pool<Epoll>, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        let mut pool = Pool::new(&job("127.0.0.1"), Vec::new(), target, 0, 1, &Stop::new().unwrap()).unwrap();
        pool.grow(1);
        open(&mut pool, 0);
        (pool, listener)
    }

    fn open(pool: &mut Pool<Epoll>, now_ns: u64) {
        pool.begin_next(now_ns).unwrap();
        pool.opened(0);
    }

    #[test]
    fn connections_that_end_unanswered_and_at_once_are_opened_ever_more_slowly() {
        let (mut pool, _listener) = pool();
        let (mut now_ns, mut delay_ns) = (0, SHORTEST_DELAY_NS);
        for _ in 0..12 {
            pool.lost(0, false, now_ns);
            assert_eq!(pool.next_opening_ns(), now_ns + delay_ns);
            now_ns += delay_ns;
            open(&mut pool, now_ns);
            // That it is open is not enough: another one would have to wait as long again.
            assert_eq!(pool.open_after_ns, now_ns + delay_ns);
            delay_ns = (2 * delay_ns).min(LONGEST_DELAY_NS);
        }
        assert_eq!(delay_ns, LONGEST_DELAY_NS);
        pool.answered(0);
        pool.lost(0, false, now_ns);
        assert!(pool.may_open(now_ns));
    }

    #[test]
    fn connections_that_end_after_an_answer_or_late_or_by_us_are_opened_again_at_once() {
        let (mut pool, _listener) = pool();
        for now_ns in 0..5 {
            pool.answered(0);
            pool.lost(0, false, now_ns);
            assert!(pool.may_open(now_ns));
            open(&mut pool, now_ns);
        }
        pool.lost(0, false, 2_000_000_000);
        assert!(pool.may_open(2_000_000_000));
        open(&mut pool, 2_000_000_000);
        pool.drop_socket(0, true);
        assert!(pool.may_open(2_000_000_000));
    }
}
