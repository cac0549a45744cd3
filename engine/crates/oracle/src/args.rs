//! The command line.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::discipline::{Discipline, Fifo};

/// What `--help` prints.
pub const USAGE: &str = "\
redline-oracle: a server with known answers

Usage: redline-oracle MODE [OPTIONS]

Modes:
  null                               answers at once: the ceiling of this machine
  fixed --delay D                    answers each request D after its arrival
  exponential --rate MU [--seed S]   one worker, exponential service, MU per second: M/M/1 under Poisson arrivals
  stall --every T --for S            answers at once, but what arrives in [kT, kT+S) is answered at kT+S

Options:
  --host H      address to listen on (127.0.0.1)
  --port P      port to listen on; 0 takes a free one (0)
  --threads N   threads, each with a listener of its own (1; exponential has one worker and takes 1)

Durations are written 250us, 5ms, 1.5s. GET /X is answered with X, POST /X with X and the length of the body.
";

/// What the command line asks for.
#[derive(Debug)]
pub enum Command {
    /// Serve until told to end.
    Serve(Options),
    /// Print the usage.
    Help,
    /// Print the version.
    Version,
}

/// How to serve.
#[derive(Debug)]
pub struct Options {
    /// When requests are answered.
    pub discipline: Discipline,
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// Worker threads, at least 1.
    pub threads: usize,
}

/// Reads the arguments that follow the program's name; the error says what is wrong.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut arguments = arguments;
    let mode = arguments.next().ok_or("which mode: null, fixed, exponential or stall?")?;
    match mode.as_str() {
        "-h" | "--help" | "help" => return Ok(Command::Help),
        "-V" | "--version" => return Ok(Command::Version),
        "null" | "fixed" | "exponential" | "stall" => {}
        _ => return Err(format!("unknown mode {mode:?}: null, fixed, exponential or stall")),
    }
    let Some(mut given) = Given::read(arguments)? else {
        return Ok(Command::Help);
    };
    let discipline = discipline(&mode, &mut given)?;
    let host = given.take("--host", address)?.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let port = given.take("--port", number)?.unwrap_or(0);
    let threads = given.take("--threads", number)?.unwrap_or(1);
    if threads == 0 {
        return Err("--threads is at least 1".into());
    }
    if threads > 1 && matches!(discipline, Discipline::Exponential(_)) {
        return Err("exponential has one worker, and so one thread".into());
    }
    given.none_left(&mode)?;
    Ok(Command::Serve(Options { discipline, address: SocketAddr::new(host, port), threads }))
}

fn discipline(mode: &str, given: &mut Given) -> Result<Discipline, String> {
    let needs = |name: &str| format!("{mode} needs {name}");
    match mode {
        "fixed" => {
            let delay_ns = given.take("--delay", duration_ns)?.ok_or_else(|| needs("--delay D"))?;
            Ok(Discipline::Fixed { delay_ns })
        }
        "exponential" => {
            let rate_per_s: f64 = given.take("--rate", number)?.ok_or_else(|| needs("--rate MU"))?;
            let seed = given.take("--seed", number)?.unwrap_or(1);
            if !(1e-3..=1e9).contains(&rate_per_s) {
                return Err(format!("--rate {rate_per_s} is not between 0.001 and 1e9 per second"));
            }
            Ok(Discipline::Exponential(Fifo::new(rate_per_s, seed)))
        }
        "stall" => {
            let every_ns = given.take("--every", duration_ns)?.ok_or_else(|| needs("--every T"))?;
            let for_ns = given.take("--for", duration_ns)?.ok_or_else(|| needs("--for S"))?;
            if for_ns == 0 || for_ns >= every_ns {
                return Err("--for is more than 0 and less than --every".into());
            }
            Ok(Discipline::Stall { every_ns, for_ns })
        }
        _ => Ok(Discipline::Null),
    }
}

/// The options as they were given, until each is taken.
struct Given(Vec<(String, String)>);

impl Given {
    /// `--name value` and `--name=value`; `None` when help was asked for.
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        while let Some(argument) = arguments.next() {
            if argument == "-h" || argument == "--help" {
                return Ok(None);
            }
            let (name, value) = if let Some((name, value)) = argument.split_once('=') {
                (name.to_owned(), value.to_owned())
            } else {
                let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
                (argument, value)
            };
            if pairs.iter().any(|(earlier, _)| *earlier == name) {
                return Err(format!("{name} is given twice"));
            }
            pairs.push((name, value));
        }
        Ok(Some(Self(pairs)))
    }

    fn take<T>(&mut self, name: &str, read: fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
        let Some(index) = self.0.iter().position(|(given, _)| given == name) else {
            return Ok(None);
        };
        let (_, value) = self.0.swap_remove(index);
        read(&value).map(Some).map_err(|wrong| format!("{name} {value}: {wrong}"))
    }

    fn none_left(&self, mode: &str) -> Result<(), String> {
        self.0.first().map_or(Ok(()), |(name, _)| Err(format!("{mode} has no option {name}")))
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "not a number in range".into())
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "not an IP address".into())
}

/// `250us`, `5ms` or `1.5s` in nanoseconds, at most a day.
fn duration_ns(text: &str) -> Result<u64, String> {
    let wrong = || "not a duration such as 250us, 5ms or 1.5s, of at most a day".to_owned();
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let scale = match &text[unit..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(wrong()),
    };
    let nanoseconds = text[..unit].parse::<f64>().map_err(|_| wrong())? * scale;
    if (0.0..=86_400e9).contains(&nanoseconds) { Ok(nanoseconds.round() as u64) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::{Command, Options, parse};
    use crate::discipline::Discipline;

    fn read(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(String::from))
    }

    fn options(line: &str) -> Options {
        match read(line) {
            Ok(Command::Serve(options)) => options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn reads_each_mode() {
        let null = options("null --port 8080 --threads=2 --host ::1");
        assert!(matches!(null.discipline, Discipline::Null));
        assert_eq!((null.address.to_string().as_str(), null.threads), ("[::1]:8080", 2));
        let fixed = options("fixed --delay 1.5ms");
        assert!(matches!(fixed.discipline, Discipline::Fixed { delay_ns: 1_500_000 }));
        assert_eq!(fixed.address.to_string(), "127.0.0.1:0");
        assert!(matches!(options("exponential --rate 1000").discipline, Discipline::Exponential(_)));
        assert!(matches!(
            options("stall --for 100ms --every 1s").discipline,
            Discipline::Stall { every_ns: 1_000_000_000, for_ns: 100_000_000 }
        ));
    }

    #[test]
    fn says_what_is_wrong() {
        for (line, message) in [
            ("", "which mode"),
            ("nul", "unknown mode"),
            ("null --delay 5ms", "null has no option --delay"),
            ("null --port", "--port needs a value"),
            ("null --port 70000", "--port 70000: not a number in range"),
            ("null --port 1 --port 2", "given twice"),
            ("null --host localhost", "not an IP address"),
            ("null --threads 0", "at least 1"),
            ("fixed", "fixed needs --delay D"),
            ("fixed --delay 5", "not a duration"),
            ("fixed --delay -5ms", "not a duration"),
            ("exponential", "needs --rate MU"),
            ("exponential --rate 0", "not between"),
            ("exponential --rate nan", "not between"),
            ("exponential --rate 10 --threads 2", "one worker"),
            ("stall --every 1s --for 1s", "less than --every"),
            ("stall --every 1s", "needs --for S"),
        ] {
            let told = read(line).err().unwrap_or_default();
            assert!(told.contains(message), "{line}: {told}");
        }
    }

    #[test]
    fn gives_help_and_version() {
        assert!(matches!(read("--help"), Ok(Command::Help)));
        assert!(matches!(read("fixed --help"), Ok(Command::Help)));
        assert!(matches!(read("--version"), Ok(Command::Version)));
    }
}
