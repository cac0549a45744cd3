//! Sockets that connect without blocking.

use std::io;
use std::mem::size_of;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};

use super::checked;

/// An address in the kernel's layout.
#[derive(Clone, Copy)]
pub struct Address {
    name: Name,
    pub socket: SocketAddr,
}

#[derive(Clone, Copy)]
#[repr(C)]
union Name {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl Address {
    pub fn new(socket: SocketAddr) -> Self {
        let name = match socket {
            SocketAddr::V4(address) => Name {
                v4: libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
                    sin_zero: [0; 8],
                },
            },
            SocketAddr::V6(address) => Name {
                v6: libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: address.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                    sin6_scope_id: address.scope_id(),
                },
            },
        };
        Self { name, socket }
    }

    pub fn name(&self) -> *const libc::sockaddr {
        (&raw const self.name).cast()
    }

    pub fn length(&self) -> libc::socklen_t {
        let length =
            if self.socket.is_ipv4() { size_of::<libc::sockaddr_in>() } else { size_of::<libc::sockaddr_in6>() };
        length as libc::socklen_t
    }
}

/// A socket with `TCP_NODELAY`, to be connected to `target` from the local address `source`, or from an address that the kernel
/// chooses. The port is chosen when it connects, so that a port serves many targets.
pub fn new_socket(target: &Address, source: Option<IpAddr>, nonblocking: bool) -> io::Result<TcpStream> {
    let family = if target.socket.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | if nonblocking { libc::SOCK_NONBLOCK } else { 0 };
    // SAFETY: no memory is passed; the returned descriptor has no other owner.
    let stream = unsafe { TcpStream::from_raw_fd(checked(libc::socket(family, kind, 0))?) };
    stream.set_nodelay(true)?;
    if let Some(source) = source {
        let on: libc::c_int = 1;
        let source = Address::new(SocketAddr::new(source, 0));
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
        let address = |port: u16| Address::new(SocketAddr::from(([127, 0, 0, 1], port)));
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
        let target = Address::new(listener.local_addr().unwrap());
        let stream = new_socket(&target, Some([127, 0, 0, 7].into()), true).unwrap();
        begin_connect(&stream, &target).unwrap();
        assert_eq!(listener.accept().unwrap().1.ip(), IpAddr::from([127, 0, 0, 7]));
    }
}
