//! The job: what is read from standard input, checked whole before anything is done.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redline_pacing::{Arrivals, HIGHEST_RATE_PER_S, LOWEST_RATE_PER_S, MOST_WORKERS};
use redline_traffic::{ErrorKind, Trouble};
use redline_wire::{Asked, Request, Unsendable};
use serde::Deserialize;

/// The format of jobs that this engine reads.
pub const JOB_FORMAT: &str = "redline.job/1";
/// Thirty days in nanoseconds: the longest that any duration of a job may be.
const LONGEST_NS: u64 = 30 * 24 * 3_600_000_000_000;
/// Ten milliseconds: the shortest interval.
const SHORTEST_INTERVAL_NS: u64 = 10_000_000;
/// The most connections of one job.
const MOST_CONNECTIONS: u32 = 10_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawJob {
    format: String,
    target: Target,
    request: RawRequest,
    expect: RawExpect,
    load: RawLoad,
    warmup_ns: u64,
    measure_ns: u64,
    drain_ns: u64,
    timeout_ns: u64,
    interval_ns: u64,
    deadline_ns: u64,
    seed: u64,
    workers: u32,
    #[serde(default)]
    cpus: Vec<u32>,
}

/// Where the load goes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    pub host: String,
    pub port: u16,
}

impl Target {
    /// An IPv6 address may stand in brackets, as it does in URLs; here it has none.
    fn unbracket(&mut self) {
        if let Some(inner) = self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            self.host = inner.to_owned();
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRequest {
    method: String,
    path: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    body_base64: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExpect {
    status: u16,
    #[serde(default)]
    body_length: Option<u64>,
    #[serde(default)]
    body_sha256: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum RawLoad {
    Closed(Closed),
    Open(Open),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Closed {
    users: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    rate_per_s: f64,
    arrivals: RawArrivals,
    connections: u32,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawArrivals {
    Uniform,
    Poisson,
}

/// The answer that is right.
#[derive(Clone, Copy, Debug)]
pub struct Expect {
    pub status: u16,
    pub body_length: Option<u64>,
    pub body_sha256: Option<[u8; 32]>,
}

/// How hard to press.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    Closed { users: u32 },
    Open { rate_per_s: f64, arrivals: Arrivals, connections: u32 },
}

impl Load {
    /// Connections that are held.
    pub fn connections(&self) -> u32 {
        match *self {
            Self::Closed { users } => users,
            Self::Open { connections, .. } => connections,
        }
    }
}

/// A job that can be done, as far as the job itself can tell.
#[derive(Clone, Debug)]
pub struct Job {
    pub target: Target,
    /// The bytes of the request.
    pub request: Vec<u8>,
    pub asked: Asked,
    pub expect: Expect,
    pub load: Load,
    pub warmup_ns: u64,
    pub measure_ns: u64,
    pub drain_ns: u64,
    pub timeout_ns: u64,
    pub interval_ns: u64,
    pub deadline_ns: u64,
    pub seed: u64,
    pub workers: u32,
    pub cpus: Vec<u32>,
}

/// A `bad_job` that names the field.
pub fn bad(field: &str, message: &str, hint: &str) -> Trouble {
    let message = if field.is_empty() { message.to_owned() } else { format!("{field}: {message}") };
    Trouble { kind: ErrorKind::BadJob, message, hint: hint.to_owned() }
}

impl Job {
    /// Read and check a job.
    ///
    /// # Errors
    /// A `bad_job` that names the first field that is wrong.
    pub fn parse(text: &str) -> Result<Self, Trouble> {
        let mut json = serde_json::Deserializer::from_str(text);
        let raw: RawJob = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            let field = if path == "." { "" } else { &path };
            bad(field, &error.inner().to_string(), "see the job's format in docs/reference/engine-protocol.md")
        })?;
        json.end().map_err(|error| bad("", &error.to_string(), "write one JSON object and nothing after it"))?;
        raw.check()
    }
}

impl RawJob {
    fn check(mut self) -> Result<Job, Trouble> {
        self.target.unbracket();
        if self.format != JOB_FORMAT {
            let message = format!("this engine reads {JOB_FORMAT:?}, not {:?}", self.format);
            return Err(bad("format", &message, "use the engine that belongs to your version of the lab"));
        }
        if self.target.port == 0 {
            return Err(bad("target.port", "0 is not a port", "give the port that the server listens on"));
        }
        self.check_durations()?;
        let load = self.load.check()?;
        if self.workers == 0 || self.workers > MOST_WORKERS.min(load.connections()) {
            let most = MOST_WORKERS.min(load.connections());
            let message = format!("{} is not between 1 and {most}", self.workers);
            return Err(bad("workers", &message, "each worker needs a connection of its own"));
        }
        let expect = self.expect.check()?;
        let asked = Asked { head: self.request.method == "HEAD", hash: expect.body_sha256.is_some() };
        Ok(Job {
            request: self.request.encode(&self.target)?,
            target: self.target,
            asked,
            expect,
            load,
            warmup_ns: self.warmup_ns,
            measure_ns: self.measure_ns,
            drain_ns: self.drain_ns,
            timeout_ns: self.timeout_ns,
            interval_ns: self.interval_ns,
            deadline_ns: self.deadline_ns,
            seed: self.seed,
            workers: self.workers,
            cpus: self.cpus,
        })
    }

    fn check_durations(&self) -> Result<(), Trouble> {
        let durations = [
            ("warmup_ns", self.warmup_ns, 0),
            ("measure_ns", self.measure_ns, 1),
            ("drain_ns", self.drain_ns, 0),
            ("timeout_ns", self.timeout_ns, 1),
            ("interval_ns", self.interval_ns, SHORTEST_INTERVAL_NS),
            ("deadline_ns", self.deadline_ns, 1),
        ];
        for (field, ns, least) in durations {
            if !(least..=LONGEST_NS).contains(&ns) {
                let message = format!("{ns} is not between {least} and {LONGEST_NS}");
                return Err(bad(field, &message, "durations are in nanoseconds"));
            }
        }
        Ok(())
    }
}

impl RawLoad {
    fn check(self) -> Result<Load, Trouble> {
        let (field, connections) = match &self {
            Self::Closed(closed) => ("load.closed.users", closed.users),
            Self::Open(open) => ("load.open.connections", open.connections),
        };
        if connections == 0 || connections > MOST_CONNECTIONS {
            let message = format!("{connections} is not between 1 and {MOST_CONNECTIONS}");
            return Err(bad(field, &message, "a load needs at least one connection"));
        }
        match self {
            Self::Closed(closed) => Ok(Load::Closed { users: closed.users }),
            Self::Open(Open { rate_per_s, arrivals, connections }) => {
                if !(LOWEST_RATE_PER_S..=HIGHEST_RATE_PER_S).contains(&rate_per_s) {
                    let message = format!("{rate_per_s} is not between {LOWEST_RATE_PER_S} and {HIGHEST_RATE_PER_S}");
                    return Err(bad("load.open.rate_per_s", &message, "give requests per second"));
                }
                let arrivals = match arrivals {
                    RawArrivals::Uniform => Arrivals::Uniform,
                    RawArrivals::Poisson => Arrivals::Poisson,
                };
                Ok(Load::Open { rate_per_s, arrivals, connections })
            }
        }
    }
}

impl RawExpect {
    fn check(self) -> Result<Expect, Trouble> {
        if !(200..=599).contains(&self.status) {
            let message = format!("{} is not between 200 and 599", self.status);
            return Err(bad("expect.status", &message, "1xx answers are passed over, so none can be expected"));
        }
        let body_sha256 = self.body_sha256.as_deref().map(|hex| {
            from_hex(hex).ok_or_else(|| {
                let message = "is not 64 hexadecimal digits";
                bad("expect.body_sha256", message, "give the SHA-256 of the expected body, or null")
            })
        });
        Ok(Expect { status: self.status, body_length: self.body_length, body_sha256: body_sha256.transpose()? })
    }
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect();
    (digits.len() == 64).then(|| bytes.try_into().ok())?
}

impl RawRequest {
    fn encode(&self, target: &Target) -> Result<Vec<u8>, Trouble> {
        if target.host.is_empty() || target.host.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'/') {
            return Err(bad("target.host", "is not a host", "give a name or an address, without scheme or port"));
        }
        let body = STANDARD.decode(self.body_base64.as_deref().unwrap_or_default()).map_err(|error| {
            bad("request.body_base64", &error.to_string(), "give standard base64 with padding, or null")
        })?;
        let request = Request {
            method: &self.method,
            path: &self.path,
            host: &target.host,
            port: target.port,
            headers: &self.headers,
            body: &body,
        };
        request.encode().map_err(|why| {
            let field = match why {
                Unsendable::Method => "request.method".to_owned(),
                Unsendable::Path => "request.path".to_owned(),
                Unsendable::HeaderName(i) | Unsendable::HeaderValue(i) | Unsendable::HeaderFraming(i) => {
                    format!("request.headers[{i}]")
                }
            };
            bad(&field, &why.to_string(), "see RFC 9110 and 9112")
        })
    }
}

#[cfg(test)]
pub mod tests;
