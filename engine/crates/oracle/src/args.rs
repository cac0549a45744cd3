//! The command line.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use redline_websocket::Deflate;

use crate::behaviour::{Behaviour, PushTimes};
use crate::content::{ClockText, Content, NO_TOKENS};
use crate::discipline::Discipline;
use crate::endings::Endings;
use crate::faults::{EventTimes, Faults, Resets};
use crate::given::{self, Given, duration_ns, number, probability, time_ns};
use crate::pauses::Pauses;
use crate::queue::Queue;
use crate::report::Report;
use crate::service::{Law, Service};
use crate::sessions::Sessions;

const MODES: [&str; 7] = ["null", "fixed", "stall", "exponential", "deterministic", "bimodal", "lognormal"];

/// The command line.
#[derive(Debug)]
pub enum Command {
    /// Serve until a signal ends it.
    Serve(Box<Options>),
    /// Print the usage.
    Help,
    /// Print the version.
    Version,
}

/// How to serve.
#[derive(Debug)]
pub struct Options {
    /// What is done with requests.
    pub behaviour: Behaviour,
    /// Where to listen; port 0 takes a free port.
    pub address: SocketAddr,
    /// Worker threads of each process, at least 1.
    pub threads: usize,
    /// Processes, at least 1.
    pub processes: usize,
    /// How many connections may be open at the same time.
    pub connections_at_most: Option<usize>,
    /// When the server is stopped; times count from its start.
    pub pauses: Option<Pauses>,
}

/// Reads the arguments that follow the program's name; the error describes what is wrong.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut arguments = arguments;
    let mode = arguments.next().ok_or_else(|| format!("which mode: {}?", MODES.join(", ")))?;
    match mode.as_str() {
        "-h" | "--help" | "help" => return Ok(Command::Help),
        "-V" | "--version" => return Ok(Command::Version),
        mode if MODES.contains(&mode) => {}
        _ => return Err(format!("unknown mode {mode:?}: {}", MODES.join(", "))),
    }
    let Some(mut given) = Given::read(arguments)? else {
        return Ok(Command::Help);
    };
    let options = options(&mode, &mut given)?;
    given.none_left(&mode)?;
    Ok(Command::Serve(Box::new(options)))
}

fn options(mode: &str, given: &mut Given) -> Result<Options, String> {
    let reset_share = given.take("--reset-share", probability)?.unwrap_or(0.0);
    let draws = reset_share > 0.0 || given.has("--sessions") || matches!(mode, "exponential" | "bimodal" | "lognormal");
    let seed = if draws { given.take("--seed", number)?.unwrap_or(1) } else { 1 };
    let discipline = discipline(mode, given, seed)?;
    let faults = Faults {
        first_byte_after_ns: given.take("--first-byte-after", duration_ns)?.unwrap_or(0),
        body_over_ns: given.take("--body-over", duration_ns)?.unwrap_or(0),
        rest_after_ns: given.take("--rest-after", duration_ns)?.unwrap_or(0),
        events: event_times(given)?,
        bytewise: given.flag("--bytewise"),
        // A seed other than that of the service times.
        resets: Resets::new(reset_share, !seed),
    };
    let host = given.take("--host", given::address)?.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let port = given.take("--port", number)?.unwrap_or(0);
    let options = Options {
        behaviour: Behaviour {
            discipline,
            content: content(given, seed, faults.events)?,
            faults,
            endings: endings(given)?,
            pushes: push_times(given)?,
            deflate: given.take("--deflate", deflate)?,
            work: given.take("--work", number)?.unwrap_or(0),
            report: given.flag("--report").then(|| Arc::new(Mutex::new(Report::default()))),
        },
        address: SocketAddr::new(host, port),
        threads: given.take("--threads", given::count)?.unwrap_or(1),
        processes: given.take("--processes", given::count)?.unwrap_or(1),
        connections_at_most: given.take("--connections-at-most", given::integer)?,
        pauses: pauses(given)?,
    };
    if options.threads * options.processes > 1 && matches!(options.behaviour.discipline, Discipline::Queue(_)) {
        return Err(format!("{mode} has one queue, and so one thread and one process"));
    }
    if options.behaviour.faults.body_over_ns > 0 && options.behaviour.faults.rest_after_ns > 0 {
        return Err("a body is sent either --body-over a time or its --rest-after one".into());
    }
    let is_slow = options.behaviour.faults.body_over_ns > 0 || options.behaviour.faults.rest_after_ns > 0;
    if is_slow && options.behaviour.faults.events.is_some() {
        return Err(
            "a body of --events leaves event by event, so not --body-over a time or its --rest-after one".into()
        );
    }
    if options.processes > 1 && options.connections_at_most.is_some() {
        return Err("--connections-at-most counts in one process, so not with --processes".into());
    }
    if (options.processes > 1 || options.pauses.is_some()) && options.behaviour.report.is_some() {
        return Err("--report counts in the first process, so not with --processes or --pause-every".into());
    }
    if options.processes > 1 && options.behaviour.content.keeps_bodies() {
        return Err("--sessions are those of one process, so not with --processes".into());
    }
    Ok(options)
}

fn discipline(mode: &str, given: &mut Given, seed: u64) -> Result<Discipline, String> {
    let law = match mode {
        "fixed" => return Ok(Discipline::Fixed { delay_ns: given.need(mode, "--delay D", duration_ns)? }),
        "stall" => {
            let every_ns = given.need(mode, "--every T", duration_ns)?;
            let for_ns = given.need(mode, "--for S", duration_ns)?;
            if for_ns == 0 || for_ns >= every_ns {
                return Err("--for is more than 0 and less than --every".into());
            }
            return Ok(Discipline::Stall { every_ns, for_ns });
        }
        "exponential" => {
            let rate_per_s: f64 = given.need(mode, "--rate MU", number)?;
            if !(1e-3..=1e9).contains(&rate_per_s) {
                return Err(format!("--rate {rate_per_s} is not between 0.001 and 1e9 per second"));
            }
            Law::Exponential { mean_ns: 1e9 / rate_per_s }
        }
        "deterministic" => Law::Deterministic { service_ns: given.need(mode, "--service D", duration_ns)? },
        "bimodal" => Law::Bimodal {
            fast_ns: given.need(mode, "--fast D", duration_ns)?,
            slow_ns: given.need(mode, "--slow D", duration_ns)?,
            slow_share: given.need(mode, "--share P", probability)?,
        },
        "lognormal" => {
            let median_ns = given.need(mode, "--median D", time_ns)? as f64;
            let sigma: f64 = given.need(mode, "--sigma S", number)?;
            if !(0.0..=5.0).contains(&sigma) {
                return Err(format!("--sigma {sigma} is not between 0 and 5"));
            }
            Law::LogNormal { median_ns, sigma }
        }
        _ => return Ok(Discipline::Null),
    };
    let servers = given.take("--servers", given::count)?.unwrap_or(1);
    Ok(Discipline::Queue(Queue::new(Service::new(law, seed), servers)))
}

fn endings(given: &mut Given) -> Result<Endings, String> {
    let after = given.take("--close-after", given::ordinal)?;
    let silent = given.flag("--close-silently");
    if silent && after.is_none() {
        return Err("--close-silently needs --close-after N".into());
    }
    Ok(Endings { after, silent })
}

fn event_times(given: &mut Given) -> Result<Option<EventTimes>, String> {
    let Some(count) = given.take("--events", given::count)? else {
        return if given.has("--event-gap") { Err("--event-gap needs --events N".into()) } else { Ok(None) };
    };
    let gap_ns = given.need("--events", "--event-gap D", time_ns)?;
    Ok(Some(EventTimes { count: count as u64, gap_ns }))
}

fn deflate(parameters: &str) -> Result<Deflate, String> {
    let rest = if parameters.is_empty() { String::new() } else { format!("; {parameters}") };
    Deflate::agreed(&format!("permessage-deflate{rest}"))
}

/// The most messages that are pushed on a WebSocket: all are written when it opens.
const MOST_PUSHES: u64 = 20_000;

fn push_times(given: &mut Given) -> Result<Option<PushTimes>, String> {
    let Some(count) = given.take("--pushes", given::ordinal)? else {
        let alone = ["--push-every", "--push-delay", "--push-jitter"].into_iter().find(|name| given.has(name));
        return alone.map_or(Ok(None), |name| Err(format!("{name} needs --pushes N")));
    };
    if count > MOST_PUSHES {
        return Err(format!("--pushes are at most {MOST_PUSHES}"));
    }
    let every_ns = given.need("--pushes", "--push-every D", time_ns)?;
    let delay_ns = given.take("--push-delay", duration_ns)?.unwrap_or(0);
    let jitter_ns = given.take("--push-jitter", duration_ns)?.unwrap_or(0);
    if jitter_ns >= every_ns {
        return Err("--push-jitter is less than --push-every".into());
    }
    Ok(Some(PushTimes { count, every_ns, delay_ns, jitter_ns }))
}

fn content(given: &mut Given, seed: u64, events: Option<EventTimes>) -> Result<Content, String> {
    if let Some(events) = events {
        let (lines, tokens) = (given.flag("--ndjson"), given.flag("--tokens"));
        if tokens && (lines || events.count as usize <= NO_TOKENS) {
            return Err(format!("--tokens are more than {NO_TOKENS} server-sent events"));
        }
        for name in ["--body-bytes", "--server-time", "--sessions"] {
            if given.has(name) {
                return Err(format!("a body is either {name} or --events"));
            }
        }
        let count = events.count as usize;
        return Ok(if tokens { Content::tokens(count) } else { Content::events(count, lines) });
    }
    for name in ["--ndjson", "--tokens"] {
        if given.has(name) {
            return Err(format!("{name} needs --events N"));
        }
    }
    if given.flag("--sessions") {
        let most = given.take("--session-requests", given::ordinal)?.unwrap_or(u64::MAX);
        for name in ["--body-bytes", "--server-time"] {
            if given.has(name) {
                return Err(format!("a body is either {name} or that of --sessions"));
            }
        }
        return Ok(Content::Sessions(Sessions::new(most, seed)));
    }
    if given.has("--session-requests") {
        return Err("--session-requests needs --sessions".into());
    }
    let length = given.take("--body-bytes", given::length)?;
    let Some(unit_ns) = given.take("--server-time", given::unit_ns)? else {
        for name in ["--skew", "--server-time-json"] {
            if given.has(name) {
                return Err(format!("{name} needs --server-time UNIT"));
            }
        }
        return Ok(length.map_or(Content::Name, Content::filled));
    };
    if length.is_some() {
        return Err("a body is either --body-bytes or --server-time".into());
    }
    let skew_ns = given.take("--skew", given::signed_ns)?.unwrap_or(0);
    Ok(Content::Time(ClockText::new(unit_ns, skew_ns, given.flag("--server-time-json"))))
}

fn pauses(given: &mut Given) -> Result<Option<Pauses>, String> {
    let asked = ["--pause-every", "--pause-for", "--pause-after"].into_iter().find(|name| given.has(name));
    let Some(asked) = asked else {
        return Ok(None);
    };
    let every_ns = given.need(asked, "--pause-every T", time_ns)?;
    let for_ns = given.need(asked, "--pause-for S", time_ns)?;
    let after_ns = given.take("--pause-after", duration_ns)?.unwrap_or(every_ns);
    if for_ns >= every_ns {
        return Err("--pause-for is less than --pause-every".into());
    }
    Ok(Some(Pauses::new(after_ns, every_ns, for_ns)))
}

#[cfg(test)]
mod tests;
