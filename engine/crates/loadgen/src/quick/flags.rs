//! The flags of `redline-engine load`: some of those of `redline load`, with the same words and meanings.

use std::net::{IpAddr, UdpSocket};
use std::path::PathBuf;

/// Why a command line cannot be done, and what to write in its place.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    pub message: String,
    pub hint: String,
    /// The exit code.
    pub code: u8,
}

/// What is wrong with the command line.
pub fn wrong(message: impl Into<String>, hint: impl Into<String>) -> Wrong {
    Wrong { message: message.into(), hint: hint.into(), code: 2 }
}

/// Why it could not be done.
pub fn failed(message: impl Into<String>, hint: impl Into<String>) -> Wrong {
    Wrong { code: 1, ..wrong(message, hint) }
}

/// Where a URL leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub is_tls: bool,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// With the query.
    pub path: String,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// As it is shown.
    pub url: String,
    pub place: Place,
    pub connections: u32,
    pub depth: u32,
    /// Of an open load.
    pub rate_per_s: Option<f64>,
    pub arrivals: &'static str,
    pub duration_ns: u64,
    pub warmup_ns: u64,
    pub timeout_ns: u64,
    pub count: Option<u64>,
    pub threads: u32,
    pub seed: u64,
    pub method: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    pub status: u16,
    pub is_insecure: bool,
    pub http2: bool,
}

pub const HELP: &str = "\
Usage: redline-engine load [OPTIONS] URL

  Load a running server, and print latency and throughput: a quick look.

  The load is closed with -c users, or open with -R requests per second. The flags are those of `redline load`, which
  also judges whether the server was steady, warm and undisturbed, and keeps what it measured.

Options:
  -c, --connections, --users N  Connections; users in a closed load.  [default: 64]
  -d, --duration TIME           How long to measure.  [default: 10s]
  -R, --rate N                  Open load: requests per second.
  --arrivals poisson|uniform    Open load: when requests are due; poisson.
  --depth N                     Requests in flight on a connection: pipelined, or streams.  [default: 1]
  --count N                     Stop when this many requests were due; without --warmup, send no others.
  -t, --threads N               Engine workers, at most one per connection.  [default: 1]
  --warmup TIME                 Load before it: 1s, or 0s with --count.
  --seed N                      Seed of everything random, such as arrivals.  [default: 1]
  -H, --header 'K: V'           A request header.
  -X, --method METHOD           GET by default, POST with a body.
  --body TEXT|@FILE             The body.
  --status N                    The right status; every other answer is an error.  [default: 200]
  --timeout TIME                When a request without a complete answer has failed.  [default: 5s]
  --http2                       HTTP/2: over TLS by ALPN, else by prior knowledge.
  -k, --insecure                Trust any certificate.
  --target-is-mine HOST         This other machine is yours, and may be loaded.
  -h, --help                    Show this message and exit.

Exit codes: 0 done, 1 could not run or invalid, 2 wrong input, 130 interrupted.
";

/// Read the arguments after `load`. `None` asks for the help.
pub fn parse(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Option<Asked>, Wrong> {
    use lexopt::prelude::*;

    let mut parser = lexopt::Parser::from_args(arguments);
    let (mut url, mut mine, mut warmup_ns, mut method, mut arrivals) = (None, Vec::new(), None, None, None);
    let mut given: Vec<String> = Vec::new();
    let mut asked = Asked {
        url: String::new(),
        place: Place::default(),
        connections: 64,
        depth: 1,
        rate_per_s: None,
        arrivals: "poisson",
        duration_ns: 10_000_000_000,
        warmup_ns: 1_000_000_000,
        timeout_ns: 5_000_000_000,
        count: None,
        threads: 1,
        seed: 1,
        method: String::new(),
        headers: Vec::new(),
        body: None,
        status: 200,
        is_insecure: false,
        http2: false,
    };
    while let Some(argument) = parser.next().map_err(|error| of_lexopt(&error))? {
        let name = match &argument {
            Short(letter) => format!("-{letter}"),
            Long(word) => format!("--{word}"),
            Value(text) => {
                let text = text.to_string_lossy().into_owned();
                if let Some(first) = url.replace(text.clone()) {
                    return Err(wrong(format!("two URLs are given: {first} and {text}"), "load one of them"));
                }
                continue;
            }
        };
        let flag = long_of(&name);
        if given.iter().any(|before| before == flag) && !REPEATED.contains(&flag) {
            return Err(wrong(format!("{name} is given twice"), "give it once"));
        }
        given.push(flag.to_owned());
        let mut value = || -> Result<String, Wrong> {
            let text = parser.value().map_err(|error| of_lexopt(&error))?;
            text.into_string().map_err(|_| wrong(format!("{name} is not UTF-8"), "write it in UTF-8"))
        };
        match flag {
            "--help" => return Ok(None),
            "--connections" => asked.connections = whole(&name, &value()?, 1, 1_000_000)? as u32,
            "--duration" => asked.duration_ns = duration(&name, &value()?, 1)?,
            "--rate" => asked.rate_per_s = Some(rate(&name, &value()?)?),
            "--arrivals" => arrivals = Some(one_of(&name, &value()?, &["poisson", "uniform"])?),
            "--depth" => asked.depth = whole(&name, &value()?, 1, 1000)? as u32,
            "--count" => asked.count = Some(whole(&name, &value()?, 1, u64::MAX)?),
            "--threads" => asked.threads = whole(&name, &value()?, 1, 1024)? as u32,
            "--warmup" => warmup_ns = Some(duration(&name, &value()?, 0)?),
            "--seed" => asked.seed = whole(&name, &value()?, 0, (1 << 53) - 1)?,
            "--header" => asked.headers.push(header(&value()?)?),
            "--method" => method = Some(value()?.to_uppercase()),
            "--body" => asked.body = Some(body(value()?)?),
            "--status" => asked.status = whole(&name, &value()?, 200, 599)? as u16,
            "--timeout" => asked.timeout_ns = duration(&name, &value()?, 1)?,
            "--http2" => asked.http2 = true,
            "--insecure" => asked.is_insecure = true,
            "--target-is-mine" => mine.push(plain(&value()?)),
            _ => {
                return Err(wrong(
                    format!("no such option: {name}"),
                    "`redline load` has more of them; see `redline-engine load --help`",
                ));
            }
        }
    }
    let url = url.ok_or_else(|| wrong("no URL is given", "write one, such as http://127.0.0.1:8080/"))?;
    asked.place = place(&url)?;
    asked.arrivals = match (arrivals, asked.rate_per_s) {
        (Some(_), None) => {
            return Err(wrong("--arrivals is for an open load", "give the requests per second: -R 5000"));
        }
        (arrivals, _) => arrivals.unwrap_or(asked.arrivals),
    };
    if asked.is_insecure && !asked.place.is_tls {
        return Err(wrong("--insecure is for https://", "leave it out, or load a URL of https://"));
    }
    asked.url = if url.contains("://") { url } else { format!("http://{url}") };
    asked.method = method.unwrap_or_else(|| if asked.body.is_some() { "POST" } else { "GET" }.to_owned());
    asked.warmup_ns = warmup_ns.unwrap_or(if asked.count.is_some() { 0 } else { asked.warmup_ns });
    if asked.threads > asked.connections {
        let message = format!("{} workers for {} connections", asked.threads, asked.connections);
        return Err(wrong(message, "give at most as many: a connection belongs to one worker"));
    }
    check_target(&asked.place.host, &mine)?;
    Ok(Some(asked))
}

/// Flags that may be given several times.
const REPEATED: [&str; 2] = ["--header", "--target-is-mine"];

/// The one name of a flag that has several.
fn long_of(name: &str) -> &str {
    match name {
        "-c" | "--users" => "--connections",
        "-d" => "--duration",
        "-R" => "--rate",
        "-t" => "--threads",
        "-H" => "--header",
        "-X" => "--method",
        "-k" => "--insecure",
        "-h" => "--help",
        _ => name,
    }
}

fn of_lexopt(error: &lexopt::Error) -> Wrong {
    wrong(error.to_string(), "see `redline-engine load --help`")
}

fn whole(name: &str, text: &str, least: u64, most: u64) -> Result<u64, Wrong> {
    text.parse().ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        wrong(
            format!("{name} {text}: not a whole number from {least} to {most}"),
            format!("write one, such as {least}"),
        )
    })
}

fn one_of(name: &str, text: &str, known: &[&'static str]) -> Result<&'static str, Wrong> {
    let found = known.iter().find(|known| **known == text).copied();
    found.ok_or_else(|| wrong(format!("{name} {text}: not known"), format!("write {}", known.join(" or "))))
}

/// `25s`, `250ms`, `1.5s`, `1m30s`, from `least_ns` to a day.
fn duration(name: &str, text: &str, least_ns: u64) -> Result<u64, Wrong> {
    const DAY_NS: f64 = 86_400e9;
    let mut total_ns = 0.0;
    let (mut rest, mut before) = (text.trim(), f64::INFINITY);
    while !rest.is_empty() {
        let number_ends = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(number_ends);
        let unit_ends = behind.find(|letter: char| letter.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit_ends);
        let unit_ns = match unit.trim() {
            "h" => 3_600e9,
            "m" => 60e9,
            "s" => 1e9,
            "ms" => 1e6,
            "us" | "µs" => 1e3,
            "ns" => 1.0,
            _ => return Err(no_duration(name, text)),
        };
        let number: f64 = number.parse().map_err(|_| no_duration(name, text))?;
        if unit_ns >= before {
            return Err(no_duration(name, text));
        }
        (total_ns, before, rest) = (total_ns + number * unit_ns, unit_ns, behind);
    }
    if before.is_infinite() || total_ns > DAY_NS || (total_ns as u64) < least_ns {
        return Err(no_duration(name, text));
    }
    Ok(total_ns.round() as u64)
}

fn no_duration(name: &str, text: &str) -> Wrong {
    wrong(
        format!("{name} {text}: not a duration of a day at most"),
        "write a number with a unit (h, m, s, ms, us, ns), such as 250ms, 25s or 1m30s",
    )
}

/// `5000`, `5000/s`, `300/min`, `100/h`.
fn rate(name: &str, text: &str) -> Result<f64, Wrong> {
    let (number, seconds) = match text.split_once('/') {
        None => (text, 1.0),
        Some((number, "s")) => (number, 1.0),
        Some((number, "min")) => (number, 60.0),
        Some((number, "h")) => (number, 3600.0),
        Some(_) => ("", 1.0),
    };
    let per_s = number.trim().parse::<f64>().ok().map(|number| number / seconds);
    per_s.filter(|per_s| (1e-6..=1e7).contains(per_s)).ok_or_else(|| {
        wrong(format!("{name} {text}: not a rate"), "write requests per second, such as 5000, 300/min or 100/h")
    })
}

fn header(text: &str) -> Result<(String, String), Wrong> {
    let (name, value) = text
        .split_once(':')
        .filter(|(name, _)| !name.trim().is_empty())
        .ok_or_else(|| wrong(format!("-H {text}: not a header"), "write 'Name: value'"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn body(text: String) -> Result<Vec<u8>, Wrong> {
    let Some(file) = text.strip_prefix('@') else {
        return Ok(text.into_bytes());
    };
    std::fs::read(file).map_err(|error| wrong(format!("--body {text}: {error}"), "name a file that can be read"))
}

/// Take a URL apart; `http://` may be left out.
fn place(url: &str) -> Result<Place, Wrong> {
    let bad = |message: &str, hint: &str| wrong(format!("{url}: {message}"), hint);
    if !url.is_empty() && url.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad("a port without a host", &format!("write http://127.0.0.1:{url}/")));
    }
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let is_tls = match scheme.to_ascii_lowercase().as_str() {
        "http" => false,
        "https" => true,
        _ => return Err(bad("not a URL of http:// or https://", "`redline load` knows WebSockets and Unix sockets")),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let path = path.split('#').next().unwrap_or_default();
    if authority.contains('@') || !authority.is_ascii() {
        return Err(bad("a user, or a name that is not ASCII", "give a header by -H, or the name in Punycode"));
    }
    let (host, port) = match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    let port = match port {
        None => Ok(if is_tls { 443 } else { 80 }),
        Some(port) => port.parse::<u16>(),
    };
    match port {
        Ok(port) if port > 0 && !host.is_empty() => Ok(Place {
            is_tls,
            host: host.replace("%25", "%"),
            port,
            path: encoded(if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }),
        }),
        _ => Err(bad("it has no host, or a wrong port", "write one such as http://127.0.0.1:8080/")),
    }
}

/// A path whose spaces and other characters that no URL has are percent-encoded, as browsers do.
fn encoded(path: String) -> String {
    if path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return path;
    }
    let shown = |byte: u8| if byte.is_ascii_graphic() { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    path.bytes().map(shown).collect()
}

/// A load can take a server down: refuse other machines that nobody has called theirs.
fn check_target(host: &str, mine: &[String]) -> Result<(), Wrong> {
    if is_this_machine(host) || mine.contains(&plain(host)) || confirmed().contains(&plain(host)) {
        return Ok(());
    }
    Err(wrong(
        format!("{host} is another machine, and a load can take a server down"),
        format!("if it is yours, say so: --target-is-mine {}", plain(host)),
    ))
}

fn plain(host: &str) -> String {
    host.trim().trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_lowercase()
}

/// Whether connections to this host stay here. Names but `localhost` are not looked up.
fn is_this_machine(host: &str) -> bool {
    let name = plain(host);
    let address = name.split('%').next().unwrap_or_default().parse::<IpAddr>();
    name == "localhost"
        || name.ends_with(".localhost")
        || address.is_ok_and(|ip| {
            ip.is_loopback() || ip.is_unspecified() || (!ip.is_multicast() && UdpSocket::bind((ip, 0)).is_ok())
        })
}

/// The hosts that the user has confirmed with `redline load --target-is-mine`.
fn confirmed() -> Vec<String> {
    let folder = |name: &str| std::env::var_os(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
    let text = config.and_then(|folder| std::fs::read_to_string(folder.join("redline").join("targets")).ok());
    text.unwrap_or_default().lines().filter(|line| !line.starts_with('#')).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Asked, Wrong> {
        parse(line.split(' ').map(Into::into)).map(Option::unwrap)
    }

    fn message(line: &str) -> String {
        read(line).unwrap_err().message
    }

    #[test]
    fn flags_are_those_of_the_lab() {
        let asked =
            read("127.0.0.1:8080/a?b=1 -c8 -d 1m1.5s --rate=300/min -t 2 --warmup 0s --arrivals uniform -H K:v")
                .unwrap();
        let place = Place { is_tls: false, host: "127.0.0.1".to_owned(), port: 8080, path: "/a?b=1".to_owned() };
        assert_eq!((&asked.place, asked.url.as_str()), (&place, "http://127.0.0.1:8080/a?b=1"));
        assert_eq!((asked.connections, asked.threads, asked.rate_per_s), (8, 2, Some(5.0)));
        assert_eq!((asked.duration_ns, asked.warmup_ns), (61_500_000_000, 0));
        assert_eq!((asked.headers, asked.arrivals), (vec![("K".to_owned(), "v".to_owned())], "uniform"));
    }

    #[test]
    fn a_count_has_no_warm_up_and_a_body_is_posted() {
        let asked = read("localhost --count 5 --body hello").unwrap();
        assert_eq!((asked.count, asked.warmup_ns, asked.place.port), (Some(5), 0, 80));
        assert_eq!((asked.method.as_str(), asked.body), ("POST", Some(b"hello".to_vec())));
        assert_eq!(read("https://[::1]:8443 --count 5 --warmup 1s").unwrap().warmup_ns, 1_000_000_000);
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        for (line, part) in [
            ("-c 1", "no URL"),
            ("localhost localhost", "two URLs"),
            ("localhost -d 5", "not a duration"),
            ("localhost -d 1s1m", "not a duration"),
            ("localhost -d 0s", "not a duration"),
            ("localhost -d 25h", "not a duration"),
            ("localhost -R 0", "not a rate"),
            ("localhost -R 5/day", "not a rate"),
            ("localhost -c 0", "from 1 to 1000000"),
            ("localhost -c 1 -t 2", "2 workers for 1 connections"),
            ("localhost -R 1 --arrivals often", "not known"),
            ("localhost --arrivals uniform", "is for an open load"),
            ("localhost -k", "is for https://"),
            ("localhost -c 2 --users 3", "--users is given twice"),
            ("8080", "a port without a host"),
            ("localhost -H nothing", "not a header"),
            ("localhost --objective p99<1s", "no such option: --objective"),
            ("localhost -c", "missing argument"),
            ("ws://localhost/", "not a URL of http"),
            ("http://me:pass@localhost/", "a user"),
            ("http://localhost:0/", "wrong port"),
            ("localhost --body @/nowhere/at-all", "--body @/nowhere"),
        ] {
            assert!(message(line).contains(part), "{line}: {}", message(line));
        }
    }

    #[test]
    fn another_machine_has_to_be_called_ones_own() {
        assert!(message("http://shop.example/").contains("another machine"));
        assert!(message("http://192.0.2.7/ --target-is-mine 192.0.2.8").contains("another machine"));
        assert_eq!(read("http://Shop.example./ --target-is-mine shop.example").unwrap().place.host, "Shop.example.");
        for here in ["127.0.0.2", "0.0.0.0", "[::1]", "a.localhost"] {
            assert!(read(here).is_ok(), "{here}");
        }
    }
}
