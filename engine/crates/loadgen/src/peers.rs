//! Where connections go: addresses of TCP, or the files of Unix sockets.

use std::fmt;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One end that connections go to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Peer {
    /// Whether it accepts a connection within this time.
    pub fn accepts(&self, timeout: Duration) -> bool {
        match self {
            Self::Tcp(address) => TcpStream::connect_timeout(address, timeout).is_ok(),
            Self::Unix(path) => UnixStream::connect(path).is_ok(),
        }
    }
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The ends that the connections of a load go to in turn, at least one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Peer>", into = "Vec<Peer>")]
pub struct Peers(Arc<[Peer]>);

impl Peers {
    /// `None` without any peer.
    pub fn new(peers: Vec<Peer>) -> Option<Self> {
        (!peers.is_empty()).then(|| Self(peers.into()))
    }

    pub fn all(&self) -> &[Peer] {
        &self.0
    }

    /// The address of the first; `None` for a Unix socket.
    pub fn ip(&self) -> Option<IpAddr> {
        self.0.iter().find_map(|peer| match peer {
            Peer::Tcp(address) => Some(address.ip()),
            Peer::Unix(_) => None,
        })
    }

    /// The addresses of those that are reached over TCP.
    pub fn ips(&self) -> impl Iterator<Item = IpAddr> {
        self.0.iter().filter_map(|peer| match peer {
            Peer::Tcp(address) => Some(address.ip()),
            Peer::Unix(_) => None,
        })
    }

    /// The first file of a Unix socket.
    pub fn unix(&self) -> Option<&Path> {
        self.0.iter().find_map(|peer| match peer {
            Peer::Tcp(_) => None,
            Peer::Unix(path) => Some(path.as_path()),
        })
    }
}

impl TryFrom<Vec<Peer>> for Peers {
    type Error = &'static str;

    fn try_from(peers: Vec<Peer>) -> Result<Self, Self::Error> {
        Self::new(peers).ok_or("there is none")
    }
}

impl From<Peers> for Vec<Peer> {
    fn from(peers: Peers) -> Self {
        peers.all().to_vec()
    }
}

impl From<Peer> for Peers {
    fn from(peer: Peer) -> Self {
        Self([peer].into())
    }
}

impl From<SocketAddr> for Peers {
    fn from(address: SocketAddr) -> Self {
        Self([Peer::Tcp(address)].into())
    }
}

impl fmt::Display for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, peer) in self.0.iter().enumerate() {
            write!(f, "{}{peer}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
