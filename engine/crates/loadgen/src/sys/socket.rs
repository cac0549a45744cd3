//! Opening connections without waiting for them.

use std::io;
use std::mem::size_of;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};

use super::checked;

/// Begin to connect. The socket does not block and sends without delay; it becomes writable when it is connected or has
/// failed, and [`TcpStream::take_error`] tells which.
pub fn begin_connect(target: SocketAddr) -> io::Result<TcpStream> {
    let family = if target.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed; the descriptor returned is ours alone.
    let stream = unsafe { TcpStream::from_raw_fd(checked(libc::socket(family, kind, 0))?) };
    stream.set_nodelay(true)?;
    let connected = match target {
        SocketAddr::V4(address) => {
            let name = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
                sin_zero: [0; 8],
            };
            connect(&stream, &name)
        }
        SocketAddr::V6(address) => {
            let name = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: address.scope_id(),
            };
            connect(&stream, &name)
        }
    };
    match connected {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(stream),
    }
}

fn connect<Name>(stream: &TcpStream, name: &Name) -> io::Result<()> {
    let name: *const Name = name;
    // SAFETY: called with `sockaddr_in` and `sockaddr_in6` only, whose size is given; the name outlives the call.
    checked(unsafe { libc::connect(stream.as_raw_fd(), name.cast(), size_of::<Name>() as libc::socklen_t) }).map(drop)
}

/// Make the next close a reset: what is unanswered is not waited for, and its port is free at once.
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

/// Whether a connection is to itself: TCP lets a socket that is given the target's own port as its source connect to itself
/// (simultaneous open; RFC 9293, section 3.5) when nobody listens there.
pub fn is_to_itself(stream: &TcpStream) -> bool {
    matches!((stream.local_addr(), stream.peer_addr()), (Ok(local), Ok(peer)) if local == peer)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_connection_to_itself_is_told_from_others() {
        let name = |port: u16| libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: port.to_be(),
            sin_addr: libc::in_addr { s_addr: u32::from(std::net::Ipv4Addr::LOCALHOST).to_be() },
            sin_zero: [0; 8],
        };
        // SAFETY: no memory is passed but the name, whose size is given; the descriptor is the stream's alone.
        let stream = unsafe {
            let stream = TcpStream::from_raw_fd(checked(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0)).unwrap());
            let any = name(0);
            checked(libc::bind(stream.as_raw_fd(), (&raw const any).cast(), size_of_val(&any) as libc::socklen_t))
                .unwrap();
            stream
        };
        connect(&stream, &name(stream.local_addr().unwrap().port())).unwrap();
        assert!(is_to_itself(&stream));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(!is_to_itself(&TcpStream::connect(listener.local_addr().unwrap()).unwrap()));
    }
}
