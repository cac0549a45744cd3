//! The target of a job: its address and protocol.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use redline_tls::{Client, Settings, Version};
use redline_traffic::EngineError;
use serde::Deserialize;

use super::bad;

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
}

/// The TLS settings of a target.
#[derive(Clone, Debug)]
pub struct Tls {
    pub client: Client,
    pub insecure: bool,
}

impl Target {
    /// Its addresses, at least one.
    ///
    /// # Errors
    /// Why it has no address, in words.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let host = self.host.as_str();
        let unknown = |why: String| format!("the host {host:?} is not known: {why}");
        let resolved = (host, self.port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
        let addresses: Vec<_> = resolved.collect();
        if addresses.is_empty() { Err(unknown("it has no address".to_owned())) } else { Ok(addresses) }
    }
}

impl RawTarget {
    /// `field` is the target's field in the job.
    pub fn check(self, field: &str) -> Result<Target, EngineError> {
        // An IPv6 address may be in brackets, as in URLs; they are removed here.
        let inner = self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = inner.unwrap_or(&self.host).to_owned();
        if host.is_empty() || host.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'/') {
            return Err(bad(
                &format!("{field}.host"),
                "is not a host",
                "give a name or an address, without scheme or port",
            ));
        }
        if self.port == 0 {
            return Err(bad(&format!("{field}.port"), "0 is not a port", "give the port that the server listens on"));
        }
        let tls = self.tls.map(|tls| tls.check(&host, self.http, field)).transpose()?;
        Ok(Target { host, port: self.port, http: self.http, tls, sources: self.sources })
    }
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
