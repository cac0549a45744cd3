//! `redline-engine load`: a quick look at a server without the lab. It checks one answer, loads by this same program with a job
//! on its standard input, and prints the result.

mod answer;
mod flags;

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redline_traffic::{Ended, OwnedEvent, Slice, Summary};
use serde_json::{Value, json};

use crate::job::JOB_FORMAT;
use crate::stop::INTERRUPTED;
use crate::sys::process::{Signals, end_now, interrupt};
use crate::sys::time::unix_ns;
use answer::Intervals;
use flags::{Asked, Wrong, failed, wrong};

/// How much longer than its parts a load may take: connecting, and the end of the engine.
const SLACK_NS: u64 = 30_000_000_000;
/// What the hint adds where the answer came whole, with another status.
const STATUS_IS_RIGHT: &str = ", or say with --status that this status is right";
/// The engine that runs now, or 0: a signal is passed on to it, so that it still says what it has measured.
static ENGINE: AtomicI32 = AtomicI32::new(0);
static WAS_SIGNALLED: AtomicBool = AtomicBool::new(false);

/// Make the load of these arguments, those after `load`. Returns the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let asked = match flags::parse(arguments) {
        Ok(Some(asked)) => asked,
        Ok(None) => return print(flags::HELP, 0),
        Err(error) => return say(&error),
    };
    pass_signals_on();
    match check(&asked).and_then(|()| load(&asked)) {
        Ok((intervals, summary)) => {
            let answer = answer::answer(&asked, intervals, &summary);
            let code = match summary.ended {
                Ended::Interrupted => INTERRUPTED,
                Ended::Deadline => 1,
                Ended::Complete => answer.is_invalid.into(),
            };
            print(&answer.text, code)
        }
        Err(_) if WAS_SIGNALLED.load(Ordering::Relaxed) => INTERRUPTED,
        Err(error) => say(&error),
    }
}

fn pass_signals_on() {
    let signals = Signals::block();
    let pass_on = move || {
        while signals.wait(u64::MAX) {
            WAS_SIGNALLED.store(true, Ordering::Relaxed);
            match ENGINE.load(Ordering::Relaxed) {
                0 => end_now(INTERRUPTED.into()),
                engine => interrupt(engine),
            }
        }
    };
    // Without this thread the load cannot be interrupted; it ends by itself.
    let _ = thread::Builder::new().name("signals".to_owned()).spawn(pass_on);
}

/// Print to standard output. Returns the exit code: this one, also where the reader has left, or 1 where it cannot be written.
fn print(text: &str, code: u8) -> u8 {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say(&failed(format!("the result cannot be printed: {error}"), "print it where there is room"))
        }
        _ => code,
    }
}

/// Print what is wrong. Returns the exit code.
fn say(error: &Wrong) -> u8 {
    // Nothing is left to say it with if this fails.
    let _ = writeln!(io::stderr(), "redline-engine: {}\n  hint: {}", error.message, error.hint);
    error.code
}

/// Start this program once more, with a line on its standard input.
fn start(arguments: &[&str], line: &Value) -> io::Result<Child> {
    let mut engine = Command::new(std::env::current_exe()?)
        .args(arguments)
        .env("REDLINE_PARENT", std::process::id().to_string())
        .process_group(0) // Ctrl-C comes from here, and only once.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    ENGINE.store(engine.id() as i32, Ordering::Relaxed);
    if let Some(mut input) = engine.stdin.take() {
        input.write_all(format!("{line}\n").as_bytes())?;
    }
    Ok(engine)
}

fn no_engine(error: &io::Error) -> Wrong {
    failed(format!("the engine cannot be started: {error}"), "see the limits of this process")
}

fn target(asked: &Asked) -> Value {
    let place = &asked.place;
    let tls = if place.is_tls { json!({"insecure": asked.is_insecure}) } else { Value::Null };
    json!({"host": place.host, "port": place.port, "http": if asked.http2 { "2" } else { "1.1" }, "tls": tls})
}

fn request(asked: &Asked) -> Value {
    // A text may have placeholders.
    let text = asked.body.as_deref().and_then(|body| std::str::from_utf8(body).ok());
    let bytes = asked.body.as_ref().filter(|_| text.is_none());
    json!({
        "method": asked.method,
        "path": asked.place.path,
        "headers": asked.headers,
        "body_text": text,
        "body_base64": bytes.map(|body| STANDARD.encode(body)),
        "expect": {"status": asked.status},
    })
}

fn job(asked: &Asked) -> Value {
    let load = match asked.rate_per_s {
        None => json!({"closed": {"users": asked.connections, "depth": asked.depth}}),
        Some(per_s) => json!({"open": {
            "rate_per_s": per_s, "arrivals": asked.arrivals, "connections": asked.connections, "depth": asked.depth,
        }}),
    };
    json!({
        "format": JOB_FORMAT,
        "traces": {"seed": unix_ns()},
        "target": target(asked),
        "requests": [request(asked)],
        "load": load,
        "warmup_ns": asked.warmup_ns,
        "measure_ns": asked.duration_ns,
        "count": asked.count,
        "drain_ns": asked.timeout_ns,
        "timeout_ns": asked.timeout_ns,
        "interval_ns": 1_000_000_000,
        "deadline_ns": asked.warmup_ns + asked.duration_ns + 2 * asked.timeout_ns + SLACK_NS,
        "seed": asked.seed,
        "workers": asked.threads,
    })
}

/// Send the request once, and see whether the answer is right.
fn check(asked: &Asked) -> Result<(), Wrong> {
    let check = json!({
        "format": "redline.check/1", "target": target(asked), "request": request(asked), "picks": {},
        "timeout_ns": asked.timeout_ns, "keep_bytes": 0,
    });
    let done = start(&["check"], &check).and_then(Child::wait_with_output).map_err(|error| no_engine(&error))?;
    let seen: Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
    if seen["outcome"] == "ok" {
        return Ok(());
    }
    let of_engine = (&seen["message"], &seen["hint"]);
    if let (Value::String(message), Value::String(hint)) = of_engine {
        return Err(wrong(message, hint));
    }
    let place = format!("{}:{}", asked.place.host, asked.place.port);
    let reason = seen["failure"]["reason"].as_str().unwrap_or("the engine ended without an answer");
    if reason.contains("refused") && seen["outcome"] == "connect" {
        let hint = "see whether the server still runs, and what it printed";
        return Err(failed(format!("nothing listens at {place}: connection refused"), hint));
    }
    let may_be_right = if seen["outcome"] == "unexpected_status" { STATUS_IS_RIGHT } else { "" };
    Err(failed(
        format!("{place} does not answer as expected: {} {}: {reason}", asked.method, asked.place.path),
        format!("nothing was timed; see the whole exchange with `curl -v`{may_be_right}"),
    ))
}

/// Make the load.
fn load(asked: &Asked) -> Result<(Intervals, Summary<Box<Slice>>), Wrong> {
    let mut engine = start(&[], &job(asked)).map_err(|error| no_engine(&error))?;
    let mut intervals = Intervals::default();
    let mut result = Err(failed("the engine ended without a result", "see what it says above"));
    for line in engine.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()).map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(OwnedEvent::Interval(interval)) => intervals.add(interval.phase, &interval.slice, interval.end_ns),
            Ok(OwnedEvent::Result(summary)) => result = Ok(summary),
            Ok(OwnedEvent::Error(error)) => result = Err(failed(error.message, error.hint)),
            _ => {}
        }
    }
    let _ = engine.wait();
    result.map(|summary| (intervals, summary))
}
