//! Small servers that do what a test needs, right or wrong, with a thread per connection.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A server; it ends with the test, or when it is killed.
pub struct Server {
    pub port: u16,
    pub accepted: Arc<AtomicUsize>,
    alive: Arc<AtomicBool>,
    streams: Arc<Mutex<HashMap<usize, TcpStream>>>,
}

impl Server {
    /// Pass every connection to `serve`, with its number from 0.
    pub fn start(serve: impl Fn(Peer, usize) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self::start_on("127.0.0.1:0", serve)
    }

    pub fn start_on(address: &str, serve: impl Fn(Peer, usize) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            accepted: Arc::default(),
            alive: Arc::new(AtomicBool::new(true)),
            streams: Arc::default(),
        };
        let (accepted, alive, streams) = (server.accepted.clone(), server.alive.clone(), server.streams.clone());
        let serve = Arc::new(serve);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if !alive.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let number = accepted.fetch_add(1, Ordering::SeqCst);
                // A handle to end it from outside; as long as it is kept, the connection does not close.
                streams.lock().unwrap().insert(number, stream.try_clone().unwrap());
                let (serve, streams) = (Arc::clone(&serve), Arc::clone(&streams));
                thread::spawn(move || {
                    // A client that goes away is an error here, and the end of this connection.
                    let _ = serve(Peer::new(stream), number);
                    streams.lock().unwrap().remove(&number);
                });
            }
        });
        server
    }

    /// Answer every request on every connection with these bytes.
    pub fn answering(answer: &'static str) -> Self {
        Self::start(move |mut peer, _| {
            while peer.request()?.is_some() {
                peer.say(answer)?;
            }
            Ok(())
        })
    }

    /// End all connections, and refuse new connections from now on.
    pub fn kill(&self) {
        self.alive.store(false, Ordering::SeqCst);
        // The acceptor checks at the next connection, and then ends.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        for (_, stream) in self.streams.lock().unwrap().drain() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// The server's end of a connection.
pub struct Peer(BufReader<TcpStream>);

impl Peer {
    fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    /// Read a request. Returns its first line and the length of its body, or `None` when the client has closed.
    pub fn request(&mut self) -> io::Result<Option<(String, usize)>> {
        let mut first = String::new();
        if self.0.read_line(&mut first)? == 0 {
            return Ok(None);
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line)?;
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        self.0.read_exact(&mut vec![0; length])?;
        Ok(Some((first, length)))
    }

    /// Read a whole request. `None` when the client has closed.
    pub fn whole_request(&mut self) -> io::Result<Option<Request>> {
        read_request(&mut self.0)
    }

    /// The stream, of which nothing was read.
    pub fn into_stream(self) -> TcpStream {
        self.0.into_inner()
    }

    /// Whether more requests have been read from the socket already.
    pub fn has_more(&self) -> bool {
        !self.0.buffer().is_empty()
    }

    /// Whether more arrives within this time.
    pub fn more_comes_within(&mut self, time: Duration) -> bool {
        if self.has_more() {
            return true;
        }
        let _ = self.0.get_mut().set_read_timeout(Some(time));
        let comes = self.0.fill_buf().is_ok_and(|bytes| !bytes.is_empty());
        let _ = self.0.get_mut().set_read_timeout(None);
        comes
    }

    /// Send the last text, and read until the client has gone away: a close with unread bytes is a reset, which could overtake
    /// the text.
    pub fn say_the_last(&mut self, text: &str) -> io::Result<()> {
        self.say(text)?;
        self.0.get_mut().shutdown(Shutdown::Write)?;
        self.stall();
        Ok(())
    }

    pub fn socket(&self) -> &TcpStream {
        self.0.get_ref()
    }

    /// Read this many bytes.
    pub fn bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    pub fn say_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// Relay all bytes to and from a server on this port.
    pub fn relay_to(self, port: u16) -> io::Result<()> {
        let mut there = TcpStream::connect(("127.0.0.1", port))?;
        let mut here = self.0.into_inner();
        let (mut from_here, mut to_there) = (here.try_clone()?, there.try_clone()?);
        thread::spawn(move || {
            let _ = io::copy(&mut from_here, &mut to_there);
            let _ = to_there.shutdown(Shutdown::Write);
        });
        io::copy(&mut there, &mut here)?;
        here.shutdown(Shutdown::Write)
    }

    /// Send this to whatever arrives, and wait until the client has gone away.
    pub fn answer_blindly(mut self, text: &str) -> io::Result<()> {
        self.begin_of_request()?;
        self.say_the_last(text)
    }

    /// Read a byte of a request and leave the rest: closing now resets the connection.
    pub fn begin_of_request(&mut self) -> io::Result<()> {
        self.0.get_mut().read_exact(&mut [0])
    }

    pub fn say(&mut self, text: &str) -> io::Result<()> {
        self.0.get_mut().write_all(text.as_bytes())
    }

    /// Send nothing until the client has gone away.
    pub fn stall(&mut self) {
        let _ = self.0.get_mut().set_read_timeout(Some(Duration::from_secs(60)));
        let _ = io::copy(&mut self.0, &mut io::sink());
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str())
    }
}

/// Read a whole request. `None` when there is none.
pub fn read_request(from: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut words = lines.first().map_or("", String::as_str).split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers = lines.iter().skip(1).filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut request = Request { method, path, headers, body: Vec::new() };
    request.body = vec![0; request.header("Content-Length").map_or(0, |length| length.parse().unwrap())];
    from.read_exact(&mut request.body)?;
    Ok(Some(request))
}

pub const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
/// SHA-256 of `hello`.
pub const HELLO_SHA256: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
