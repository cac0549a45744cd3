//! The target of a job: its address and protocol.

use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;

use redline_tls::{Client, Settings, Version};
use redline_traffic::EngineError;
use serde::Deserialize;

use super::bad;
use crate::peers::{Peer, Peers};
use crate::sys::socket::LONGEST_PATH;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTarget {
    host: String,
    port: u16,
    #[serde(default)]
    http: Http,
    #[serde(default)]
    tls: Option<RawTls>,
    #[serde(default)]
    sources: Vec<IpAddr>,
    #[serde(default)]
    connect: Vec<RawPlace>,
    #[serde(default)]
    addresses: Addresses,
    #[serde(default)]
    proxy: Option<RawProxy>,
}

/// An HTTP proxy, which is asked for a tunnel on each connection.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProxy {
    host: String,
    port: u16,
    #[serde(default)]
    authorization: Option<String>,
}

/// Where connections go instead of the host and port of the target.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum RawPlace {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

/// Which of several addresses connections go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Addresses {
    /// The first that accepts a connection.
    #[default]
    First,
    /// All of them, in turn.
    All,
}

/// The version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Http {
    #[default]
    #[serde(rename = "1.1")]
    V1,
    #[serde(rename = "2")]
    V2,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTls {
    #[serde(default)]
    ca_pem: Option<String>,
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    server_name: Option<String>,
    #[serde(default = "both_versions")]
    versions: Vec<String>,
    #[serde(default = "yes")]
    resumption: bool,
    #[serde(default)]
    cert_pem: Option<String>,
    #[serde(default)]
    key_pem: Option<String>,
    #[serde(default)]
    ciphers: Vec<String>,
}

fn both_versions() -> Vec<String> {
    vec!["1.2".to_owned(), "1.3".to_owned()]
}

fn yes() -> bool {
    true
}

/// The target of a job.
#[derive(Clone, Debug)]
pub struct Target {
    pub host: String,
    pub port: u16,
    pub http: Http,
    pub tls: Option<Tls>,
    pub sources: Vec<IpAddr>,
    places: Vec<Place>,
    pub addresses: Addresses,
    pub proxy: Option<Proxy>,
}

/// An HTTP proxy that opens tunnels to the target.
#[derive(Clone)]
pub struct Proxy {
    place: Place,
    /// The CONNECT request.
    pub connect: Arc<[u8]>,
}

impl fmt::Debug for Proxy {
    /// Without the request, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("place", &self.place).finish_non_exhaustive()
    }
}

/// A host and a port, or the file of a Unix socket.
#[derive(Clone, Debug)]
enum Place {
    Tcp(String, u16),
    Unix(PathBuf),
}

/// The TLS settings of a target.
#[derive(Clone, Debug)]
pub struct Tls {
    pub client: Client,
    pub insecure: bool,
}

impl Target {
    /// Where its connections may go: all addresses of its places, or of the proxy before them.
    ///
    /// # Errors
    /// Why a place has no address, in words.
    pub fn peers(&self) -> Result<Peers, String> {
        let mut peers = Vec::new();
        let places = self.proxy.as_ref().map_or(self.places.as_slice(), |proxy| std::slice::from_ref(&proxy.place));
        for place in places {
            match place {
                Place::Unix(path) => peers.push(Peer::Unix(path.clone())),
                Place::Tcp(host, port) => {
                    let unknown = |why: String| format!("the host {host:?} is not known: {why}");
                    let found = (host.as_str(), *port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
                    let known = peers.len();
                    peers.extend(found.map(Peer::Tcp));
                    if peers.len() == known {
                        return Err(unknown("it has no address".to_owned()));
                    }
                }
            }
        }
        Peers::new(peers).ok_or_else(|| "there is nowhere to connect to".to_owned())
    }
}

/// A host without the brackets of an IPv6 address in a URL.
fn checked_host(host: &str, field: &str) -> Result<String, EngineError> {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = inner.unwrap_or(host);
    if host.is_empty() || host.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'/') {
        return Err(bad(field, "is not a host", "give a name or an address, without scheme or port"));
    }
    Ok(host.to_owned())
}

fn checked_port(port: u16, field: &str) -> Result<u16, EngineError> {
    if port == 0 {
        return Err(bad(field, "0 is not a port", "give the port that the server listens on"));
    }
    Ok(port)
}

impl RawPlace {
    fn check(self, field: &str) -> Result<Place, EngineError> {
        match self {
            Self::Tcp { host, port } => Ok(Place::Tcp(
                checked_host(&host, &format!("{field}.tcp.host"))?,
                checked_port(port, &format!("{field}.tcp.port"))?,
            )),
            Self::Unix(path) => {
                if path.as_os_str().is_empty() || path.as_os_str().len() > LONGEST_PATH {
                    let message = format!("a path of a Unix socket has 1 to {LONGEST_PATH} bytes");
                    return Err(bad(&format!("{field}.unix"), &message, "give the path of the server's socket"));
                }
                Ok(Place::Unix(path))
            }
        }
    }
}

impl RawTarget {
    /// `field` is the target's field in the job.
    pub fn check(self, field: &str) -> Result<Target, EngineError> {
        let host = checked_host(&self.host, &format!("{field}.host"))?;
        checked_port(self.port, &format!("{field}.port"))?;
        let places = self.connect.into_iter().enumerate();
        let mut places =
            places.map(|(i, place)| place.check(&format!("{field}.connect[{i}]"))).collect::<Result<Vec<_>, _>>()?;
        if places.is_empty() {
            places.push(Place::Tcp(host.clone(), self.port));
        }
        let proxy = self.proxy.map(|proxy| proxy.check(&places, self.addresses, field)).transpose()?;
        let tls = self.tls.map(|tls| tls.check(&host, self.http, field)).transpose()?;
        Ok(Target {
            host,
            port: self.port,
            http: self.http,
            tls,
            sources: self.sources,
            places,
            addresses: self.addresses,
            proxy,
        })
    }
}

impl RawProxy {
    /// `places` are where the tunnel may lead: the proxy looks up names itself, so only one of them is possible.
    fn check(self, places: &[Place], addresses: Addresses, field: &str) -> Result<Proxy, EngineError> {
        let field = format!("{field}.proxy");
        let host = checked_host(&self.host, &format!("{field}.host"))?;
        let port = checked_port(self.port, &format!("{field}.port"))?;
        let authority = match places {
            [Place::Tcp(host, port)] if addresses == Addresses::First => authority(host, *port),
            _ => {
                let message = "a tunnel leads to a single host and port, which the proxy looks up";
                return Err(bad(&field, message, "leave out the proxy, or Unix sockets and further addresses"));
            }
        };
        let mut connect = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
        if let Some(credentials) = self.authorization {
            if credentials.is_empty() || credentials.bytes().any(|byte| byte.is_ascii_control() || !byte.is_ascii()) {
                let field = format!("{field}.authorization");
                return Err(bad(&field, "is not the value of a header", "give one such as \"Basic dXNlcjpwYXNz\""));
            }
            connect = connect + "Proxy-Authorization: " + &credentials + "\r\n";
        }
        connect.push_str("\r\n");
        Ok(Proxy { place: Place::Tcp(host, port), connect: connect.into_bytes().into() })
    }
}

/// `127.0.0.1:8080`, `[::1]:8080`; a zone has no meaning on the proxy's host.
fn authority(host: &str, port: u16) -> String {
    let host = without_zone(host);
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

impl RawTls {
    fn check(self, host: &str, http: Http, field: &str) -> Result<Tls, EngineError> {
        let versions = self.versions.iter().enumerate().map(|(i, version)| match version.as_str() {
            "1.2" => Ok(Version::V1_2),
            "1.3" => Ok(Version::V1_3),
            other => {
                let message = format!("{other:?} is not a version of TLS that this engine supports");
                Err(bad(&format!("{field}.tls.versions[{i}]"), &message, "give \"1.2\", \"1.3\" or both"))
            }
        });
        let settings = Settings {
            ca_pem: self.ca_pem,
            insecure: self.insecure,
            server_name: self.server_name.unwrap_or_else(|| without_zone(host).to_owned()),
            alpn: vec![if http == Http::V2 { b"h2".to_vec() } else { b"http/1.1".to_vec() }],
            versions: versions.collect::<Result<_, _>>()?,
            resumption: self.resumption,
            certificate_pem: self.cert_pem,
            key_pem: self.key_pem,
            ciphers: self.ciphers,
        };
        let client =
            Client::new(&settings).map_err(|why| bad(&format!("{field}.tls.{}", why.field), &why.problem, why.hint))?;
        Ok(Tls { client, insecure: self.insecure })
    }
}

/// The address `fe80::1` of `fe80::1%eth0`: the zone has a meaning on this host only, and is in no certificate.
fn without_zone(host: &str) -> &str {
    if host.contains(':') { host.split_once('%').map_or(host, |(address, _)| address) } else { host }
}
