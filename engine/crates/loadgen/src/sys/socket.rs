//! Sockets that connect without blocking.

use std::io;
use std::mem::size_of;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::checked;
use crate::peers::Peer;

/// The longest path of a Unix socket, in bytes: `sun_path` without its end.
pub const LONGEST_PATH: usize = 107;

/// The end of a connection in the kernel's layout.
#[derive(Clone, Copy)]
pub struct Address {
    name: Name,
    length: libc::socklen_t,
}

#[derive(Clone, Copy)]
#[repr(C)]
union Name {
    any: libc::sockaddr,
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
    unix: libc::sockaddr_un,
}

impl Address {
    /// # Errors
    /// For a path of a Unix socket that is too long for the kernel.
    pub fn new(peer: &Peer) -> io::Result<Self> {
        match peer {
            Peer::Tcp(address) => Ok(Self::of_tcp(*address)),
            Peer::Unix(path) => Self::of_unix(path),
        }
    }

    pub fn of_tcp(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(address) => {
                let v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
                    sin_zero: [0; 8],
                };
                Self { name: Name { v4 }, length: size_of::<libc::sockaddr_in>() as libc::socklen_t }
            }
            SocketAddr::V6(address) => {
                let v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: address.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                    sin6_scope_id: address.scope_id(),
                };
                Self { name: Name { v6 }, length: size_of::<libc::sockaddr_in6>() as libc::socklen_t }
            }
        }
    }

    fn of_unix(path: &Path) -> io::Result<Self> {
        let bytes = path.as_os_str().as_bytes();
        let mut unix = libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
        if bytes.len() > LONGEST_PATH {
            let message = format!("a path of more than {LONGEST_PATH} bytes is too long for a Unix socket");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        for (place, byte) in unix.sun_path.iter_mut().zip(bytes) {
            *place = *byte as libc::c_char;
        }
        Ok(Self { name: Name { unix }, length: size_of::<libc::sockaddr_un>() as libc::socklen_t })
    }

    pub fn name(&self) -> *const libc::sockaddr {
        (&raw const self.name).cast()
    }

    pub fn length(&self) -> libc::socklen_t {
        self.length
    }

    fn family(&self) -> libc::c_int {
        // SAFETY: every kind of address begins with its family.
        libc::c_int::from(unsafe { self.name.any.sa_family })
    }
}

/// A stream socket, over TCP with `TCP_NODELAY`, to be connected to `target` from the local address `source`, or from an address
/// that the kernel chooses. The port is chosen when it connects, so that a port serves many targets.
pub fn new_socket(target: &Address, source: Option<IpAddr>, nonblocking: bool) -> io::Result<TcpStream> {
    let family = target.family();
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | if nonblocking { libc::SOCK_NONBLOCK } else { 0 };
    // SAFETY: no memory is passed; the returned descriptor has no other owner.
    let stream = unsafe { TcpStream::from_raw_fd(checked(libc::socket(family, kind, 0))?) };
    if family != libc::AF_UNIX {
        stream.set_nodelay(true)?;
    }
    if let Some(source) = source {
        let on: libc::c_int = 1;
        let source = Address::of_tcp(SocketAddr::new(source, 0));
        // SAFETY: the option takes an integer, whose size is given; the name is valid for the length that is passed.
        unsafe {
            checked(libc::setsockopt(
                stream.as_raw_fd(),
                libc::IPPROTO_IP,
                libc::IP_BIND_ADDRESS_NO_PORT,
                (&raw const on).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            ))?;
            checked(libc::bind(stream.as_raw_fd(), source.name(), source.length()))?;
        }
    }
    Ok(stream)
}

/// Room for the time that the kernel puts beside received bytes.
pub type StampRoom = [u64; 4];

/// Have the kernel note when bytes arrive. Failing only means that it does not say.
pub fn stamp_arrivals(stream: &TcpStream) {
    let on: libc::c_int = 1;
    // SAFETY: the option takes an integer, whose size is given.
    unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
}

/// Read, and say when the last of the bytes arrived, in nanoseconds since 1970, if the kernel noted it.
pub fn receive_stamped(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    let mut room = StampRoom::default();
    let mut bytes = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: a header of zeros is valid, and names nothing.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (&raw mut bytes, 1);
    (header.msg_control, header.msg_controllen) = (room.as_mut_ptr().cast(), size_of_val(&room));
    // SAFETY: the header names a buffer and room that are valid for writes and outlive the call.
    let read = unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut header, 0) };
    let read = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
    let said = header.msg_controllen.min(size_of_val(&room));
    let words = room.map(u64::to_ne_bytes);
    Ok((read, stamp_in(&words.as_flattened()[..said])))
}

/// The time that the kernel put beside received bytes, in nanoseconds since 1970: a `cmsghdr` and a `timespec`.
pub fn stamp_in(control: &[u8]) -> Option<u64> {
    let head = size_of::<libc::cmsghdr>();
    let (meta, time) = control.split_at_checked(head)?;
    let kind = libc::c_int::from_ne_bytes(*meta.last_chunk()?);
    let seconds = i64::from_ne_bytes(*time.first_chunk()?);
    let nanoseconds = i64::from_ne_bytes(*time.get(8..)?.first_chunk()?);
    (kind == libc::SO_TIMESTAMPNS).then_some(seconds as u64 * 1_000_000_000 + nanoseconds as u64)
}

/// Start to connect. The socket becomes writable when it is connected or has failed: see [`TcpStream::take_error`].
pub fn begin_connect(stream: &TcpStream, target: &Address) -> io::Result<()> {
    // SAFETY: the name is valid for the length that is passed, and outlives the call.
    match checked(unsafe { libc::connect(stream.as_raw_fd(), target.name(), target.length()) }) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(()),
    }
}

/// Make the next close a reset, which does not wait for the peer and frees the port immediately.
pub fn reset_on_close(stream: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let value: *const libc::linger = &raw const linger;
    // SAFETY: the option takes a `linger`, whose size is given. Failing only means an ordinary close.
    unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            value.cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        )
    };
}

/// Whether a connection is to itself. If nothing listens on a port and the kernel chooses it as the source, TCP connects the
/// socket to itself (simultaneous open; RFC 9293, section 3.5).
pub fn is_to_itself(stream: &TcpStream) -> bool {
    matches!((stream.local_addr(), stream.peer_addr()), (Ok(local), Ok(peer)) if local == peer)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_connection_to_itself_is_detected() {
        let address = |port: u16| Address::of_tcp(SocketAddr::from(([127, 0, 0, 1], port)));
        let stream = new_socket(&address(0), None, true).unwrap();
        let any = address(0);
        // SAFETY: the name is valid for the length that is passed.
        checked(unsafe { libc::bind(stream.as_raw_fd(), any.name(), any.length()) }).unwrap();
        begin_connect(&stream, &address(stream.local_addr().unwrap().port())).unwrap();
        assert!(is_to_itself(&stream));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(!is_to_itself(&TcpStream::connect(listener.local_addr().unwrap()).unwrap()));
    }

    #[test]
    fn a_connection_starts_from_the_source_that_it_is_given() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Address::of_tcp(listener.local_addr().unwrap());
        let stream = new_socket(&target, Some([127, 0, 0, 7].into()), true).unwrap();
        begin_connect(&stream, &target).unwrap();
        assert_eq!(listener.accept().unwrap().1.ip(), IpAddr::from([127, 0, 0, 7]));
    }

    #[test]
    fn a_unix_socket_is_reached_by_its_path() {
        let folder = std::env::temp_dir().join(format!("redline-socket-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("server.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let target = Address::new(&Peer::Unix(path)).unwrap();
        let stream = new_socket(&target, None, true).unwrap();
        begin_connect(&stream, &target).unwrap();
        listener.accept().unwrap();
        assert!(!is_to_itself(&stream));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(Address::new(&Peer::Unix("x".repeat(LONGEST_PATH + 1).into())).is_err());
    }
}
