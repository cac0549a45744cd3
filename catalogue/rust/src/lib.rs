//! What all servers share and no measurement depends on: their command line, their runtime and how they end.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, Interval, interval_at};

/// The largest request body that is accepted, in bytes.
pub const BODY_LIMIT: usize = 8 * 1024 * 1024;

/// The command line: `--port P [--host ADDRESS] [--routes N] [--threads N] [--protocol NAME --tls DIR]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Port to listen on.
    pub port: u16,
    /// Address to listen on.
    pub host: IpAddr,
    /// How many routes of each kind are served.
    pub routes: usize,
    /// Worker threads of the tokio runtime.
    pub threads: usize,
    /// Where the certificate and its key are, if the protocol is one over TLS.
    pub tls: Option<PathBuf>,
}

impl Options {
    /// Reads `--name value` pairs; the error says what is wrong.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut port, mut host, mut routes, mut threads, mut over_tls, mut tls) =
            (None, IpAddr::V4(Ipv4Addr::LOCALHOST), 128, 1, false, None);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(format!("{name} needs a value"))?;
            let wrong = |_| format!("{name} takes a number, not {value:?}");
            match name.as_str() {
                "--port" => port = Some(value.parse().map_err(wrong)?),
                "--host" => host = value.parse().map_err(|_| format!("{name} takes an address, not {value:?}"))?,
                "--routes" => routes = value.parse().map_err(wrong)?,
                "--threads" => threads = value.parse().map_err(wrong)?,
                "--protocol" => over_tls = value.ends_with("+tls"),
                "--tls" => tls = Some(PathBuf::from(value)),
                _ => return Err(format!("unknown option {name}")),
            }
        }
        if routes == 0 || threads == 0 {
            return Err("--routes and --threads are at least 1".into());
        }
        let port = port.ok_or("--port is missing")?;
        Ok(Self { port, host, routes, threads, tls: tls.filter(|_| over_tls) })
    }
}

/// The time since 1970 in `unit`, `ms` or `ns`, as decimal text; None for another unit.
#[must_use]
pub fn now_in(unit: &str) -> Option<String> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    match unit {
        "ms" => Some(since.as_millis().to_string()),
        "ns" => Some(since.as_nanos().to_string()),
        _ => None,
    }
}

/// When a `WebSocket` is pushed the time: every 100 ms, for the first time 100 ms from now.
#[must_use]
pub fn pushes() -> Interval {
    const EVERY: Duration = Duration::from_millis(100);
    interval_at(Instant::now() + EVERY, EVERY)
}

/// Reads the command line, starts a tokio runtime and serves until SIGTERM or SIGINT.
pub fn run<S, F>(serve: S) -> ExitCode
where
    S: FnOnce(Options) -> F,
    F: Future<Output = std::io::Result<()>>,
{
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!(
                "{message}\n  hint: --port P [--host ADDRESS] [--routes N] [--threads N] [--protocol NAME --tls DIR]"
            );
            return ExitCode::from(2);
        }
    };
    let (host, port) = (options.host, options.port);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(options.threads).enable_all().build();
    let ended = runtime.and_then(|runtime| {
        let ended = runtime.block_on(async { serve_until_told(serve(options)).await });
        runtime.shutdown_background();
        ended
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot serve on {host}:{port}: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve_until_told(server: impl Future<Output = std::io::Result<()>>) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        ended = server => ended,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::{Options, now_in};

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn reads_all_options() {
        let options = parse("--port 8080 --host 0.0.0.0 --routes 1 --threads 2");
        let host = Ipv4Addr::UNSPECIFIED.into();
        assert_eq!(options, Ok(Options { port: 8080, host, routes: 1, threads: 2, tls: None }));
        assert_eq!(parse("--port 8080").map(|options| options.host), Ok(Ipv4Addr::LOCALHOST.into()));
    }

    #[test]
    fn only_a_protocol_over_tls_needs_a_certificate() {
        let tls = |protocol: &str| parse(&format!("--port 1 --protocol {protocol} --tls made")).unwrap().tls;
        assert_eq!((tls("h1"), tls("h2c")), (None, None));
        assert_eq!((tls("h1+tls"), tls("h2+tls")), (Some("made".into()), Some("made".into())));
    }

    #[test]
    fn tells_the_time_in_two_units() {
        let (ms, ns) = (now_in("ms").unwrap(), now_in("ns").unwrap());
        assert_eq!(ns.len(), ms.len() + 6);
        assert_eq!(now_in("s"), None);
    }

    #[test]
    fn says_what_is_wrong() {
        assert!(parse("--port").is_err_and(|message| message.contains("needs a value")));
        assert!(parse("--port x").is_err_and(|message| message.contains("takes a number")));
        assert!(parse("--ports 1").is_err_and(|message| message.contains("unknown option --ports")));
        assert!(parse("--port 1 --routes 0").is_err_and(|message| message.contains("at least 1")));
        assert!(parse("").is_err_and(|message| message.contains("--port is missing")));
    }
}
