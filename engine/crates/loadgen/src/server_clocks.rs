//! The clocks of the servers' host: the CPU time of the servers' processes, and the stolen time.
//!
//! On this host they are read directly. On another host, `redline-engine clocks ADDRESS` runs there and answers each reading
//! with a datagram. The lab writes the processes and a token to its standard input, and it answers only requests with that
//! token.

use std::cell::RefCell;
use std::io::{self, BufRead, Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use redline_traffic::EngineError;
use serde::{Deserialize, Serialize};

use crate::job::{Job, bad};
use crate::processes::{Births, Processes, Used};
use crate::sys::process::end_now;
use crate::sys::time::Steal;

/// How long an answer may take. A later reading would be of another time, and is repeated.
const PATIENCE: Duration = Duration::from_millis(5);
const TRIES: usize = 4;
/// The length of a token in bytes.
const TOKEN: usize = 16;
/// A request has the token and its number. An answer has that number, the stolen time and, for each server, its CPU time and
/// the generation of its processes.
const REQUEST: usize = TOKEN + 8;
/// The value of an unknown time.
const UNKNOWN: u64 = u64::MAX;

/// Where the clocks of another host are read, as a job names it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawClocks {
    address: SocketAddr,
    token: String,
}

/// Where the clocks of another host are read.
#[derive(Clone, Debug)]
pub struct RemoteClocks {
    address: SocketAddr,
    token: [u8; TOKEN],
}

impl RawClocks {
    pub fn check(self) -> Result<RemoteClocks, EngineError> {
        let token = token_of(&self.token).ok_or_else(|| {
            bad("clocks.token", "it is not 32 hexadecimal digits", "give what `redline-engine clocks` was given")
        })?;
        Ok(RemoteClocks { address: self.address, token })
    }
}

/// The clocks of the servers' host.
pub enum ServerClocks {
    Here { servers: RefCell<(Vec<Processes>, Births)>, steal: Steal },
    There { socket: UdpSocket, token: [u8; TOKEN], servers: usize, number: AtomicU64 },
}

/// A reading, in nanoseconds; `None` for an unknown time.
#[derive(Debug, PartialEq, Eq)]
pub struct CpuReading {
    /// The CPU time of each server.
    pub cpu: Vec<Option<Used>>,
    pub steal_ns: Option<u64>,
}

impl ServerClocks {
    /// The clocks of this many servers: of these processes on this host, or of those that the job names on another host.
    ///
    /// # Errors
    /// When no socket can be opened.
    pub fn open(job: &Job, pids: &[Vec<u32>], servers: usize) -> io::Result<Self> {
        let Some(RemoteClocks { address, token }) = job.clocks.clone() else {
            return Ok(Self::here(pids));
        };
        let any: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self::There { socket, token, servers, number: AtomicU64::new(0) })
    }

    /// The clocks of this host, for the processes of each server.
    fn here(pids: &[Vec<u32>]) -> Self {
        let processes = pids.iter().map(|pids| Processes::new(pids)).collect();
        Self::Here { servers: RefCell::new((processes, Births::open())), steal: Steal::open() }
    }

    pub fn read(&self) -> CpuReading {
        match self {
            Self::Here { servers, steal } => {
                let (servers, births) = &mut *servers.borrow_mut();
                let born = births.any();
                CpuReading { cpu: servers.iter_mut().map(|server| server.used(born)).collect(), steal_ns: steal.ns() }
            }
            Self::There { socket, token, servers, number } => {
                let asked = || request(socket, *token, number.fetch_add(1, Ordering::Relaxed), *servers);
                let answer = (0..TRIES).find_map(|_| asked());
                answer.unwrap_or_else(|| CpuReading { cpu: vec![None; *servers], steal_ns: None })
            }
        }
    }
}

/// Request a reading; `None` if no answer to this request came in time.
fn request(socket: &UdpSocket, token: [u8; TOKEN], number: u64, servers: usize) -> Option<CpuReading> {
    let mut request = [0; REQUEST];
    request[..TOKEN].copy_from_slice(&token);
    request[TOKEN..].copy_from_slice(&number.to_le_bytes());
    socket.send(&request).ok()?;
    let mut answer = [0; 1 << 10];
    loop {
        let length = socket.recv(&mut answer).ok()?;
        let mut numbers =
            answer[..length].chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
        // A late answer to an earlier request.
        if numbers.next() != Some(number) {
            continue;
        }
        let known = |ns: u64| Some(ns).filter(|ns| *ns != UNKNOWN);
        let steal_ns = known(numbers.next()?);
        let of_servers: Vec<_> = numbers.collect();
        let used = |pair: &[u64]| known(pair[0]).map(|ns| Used { ns, generation: pair[1] });
        let cpu: Vec<_> = of_servers.chunks_exact(2).map(used).collect();
        return (of_servers.len() == 2 * servers).then_some(CpuReading { cpu, steal_ns });
    }
}

/// What `redline-engine clocks` reads from its standard input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Served {
    token: String,
    pids: Vec<Vec<u32>>,
}

#[derive(Serialize)]
struct Listening {
    address: SocketAddr,
}

/// Answer requests for readings of this host's clocks on a port of this address until standard input ends. Prints the port
/// first.
///
/// # Errors
/// When the address cannot be listened on, or standard input does not say what to read.
pub fn serve(address: IpAddr) -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let served: Served = serde_json::from_str(&line)?;
    let token = token_of(&served.token).ok_or_else(|| io::Error::other("its token is not 32 hexadecimal digits"))?;
    let socket = UdpSocket::bind((address, 0))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(&Listening { address: socket.local_addr()? })?)?;
    out.flush()?;
    thread::Builder::new().name("lab".to_owned()).spawn(|| {
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        end_now(0);
    })?;
    answer(&socket, token, &ServerClocks::here(&served.pids))
}

/// Answer requests that have the token; ignore others.
fn answer(socket: &UdpSocket, token: [u8; TOKEN], clocks: &ServerClocks) -> io::Result<()> {
    let mut request = [0; REQUEST + 1];
    loop {
        let (length, from) = match socket.recv_from(&mut request) {
            // An earlier answer could not be delivered.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            received => received?,
        };
        if length != REQUEST || request[..TOKEN] != token {
            continue;
        }
        let CpuReading { cpu, steal_ns } = clocks.read();
        let of_server = |used: Option<Used>| used.map_or([UNKNOWN, 0], |used| [used.ns, used.generation]);
        let numbers = std::iter::once(steal_ns.unwrap_or(UNKNOWN)).chain(cpu.into_iter().flat_map(of_server));
        let mut answer = request[TOKEN..REQUEST].to_vec();
        answer.extend(numbers.flat_map(u64::to_le_bytes));
        // A client that does not receive it asks again.
        let _ = socket.send_to(&answer, from);
    }
}

fn token_of(hex: &str) -> Option<[u8; TOKEN]> {
    let digits: Vec<u8> = hex.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect();
    (digits.len() == 2 * TOKEN).then(|| bytes.try_into().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: [u8; TOKEN] = [7; TOKEN];

    /// The clocks of this process, served to whoever knows the token.
    fn server() -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let pids = vec![vec![std::process::id()], vec![], vec![4_194_304]];
        thread::spawn(move || answer(&socket, MINE, &ServerClocks::here(&pids)));
        address
    }

    fn client(address: SocketAddr, token: [u8; TOKEN], servers: usize) -> ServerClocks {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        ServerClocks::There { socket, token, servers, number: AtomicU64::new(0) }
    }

    #[test]
    fn clocks_of_another_host_are_those_that_it_reads() {
        let clocks = client(server(), MINE, 3);
        let (before, after) = (clocks.read(), clocks.read());
        let ns = |reading: &CpuReading| reading.cpu[0].map(|used| used.ns);
        assert!(ns(&before) > Some(0) && ns(&after) >= ns(&before), "{before:?} {after:?}");
        assert_eq!(before.cpu[1..], [None, None]);
        assert_eq!(before.steal_ns.is_some(), Steal::open().ns().is_some());
    }

    #[test]
    fn who_does_not_know_the_token_gets_no_answer() {
        let unknown = CpuReading { cpu: vec![None; 3], steal_ns: None };
        assert_eq!(client(server(), [8; TOKEN], 3).read(), unknown);
    }

    #[test]
    fn an_answer_about_other_servers_is_none() {
        let unknown = CpuReading { cpu: vec![None; 2], steal_ns: None };
        assert_eq!(client(server(), MINE, 2).read(), unknown);
    }

    #[test]
    fn an_answer_that_comes_late_is_not_taken_for_a_later_one() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let clocks = client(peer.local_addr().unwrap(), MINE, 0);
        let answering = thread::spawn(move || {
            let (mut request, mut from) = ([0; REQUEST], None);
            for number in 0..2_u64 {
                from = Some(peer.recv_from(&mut request).unwrap().1);
                assert_eq!(request[TOKEN..], number.to_le_bytes());
            }
            for (number, steal_ns) in [(0_u64, 5_u64), (1, 6)] {
                peer.send_to(&[number.to_le_bytes(), steal_ns.to_le_bytes()].concat(), from.unwrap()).unwrap();
            }
        });
        assert_eq!(clocks.read().steal_ns, Some(6));
        answering.join().unwrap();
    }

    #[test]
    fn a_token_has_32_hexadecimal_digits() {
        assert_eq!(token_of("00ff00000000000000000000000000A1").map(|token| (token[1], token[15])), Some((0xff, 0xa1)));
        for wrong in ["", "00", "0", "00ff00000000000000000000000000A", "00ff00000000000000000000000000Ag"] {
            assert_eq!(token_of(wrong), None);
        }
    }
}
