//! Standard input and output of the engine: the job, the commands after it, and the events. See
//! `docs/reference/engine-protocol.md`.

use std::io::{self, BufRead, Read, Write};
use std::thread;

use redline_traffic::Event;
use serde::Deserialize;

use crate::shards::child::is_shard;
use crate::sys::process::end_now;

/// Read the job: all of standard input, or its first line for a shard and where commands follow.
///
/// # Errors
/// When it cannot be read.
pub fn read_job() -> io::Result<String> {
    let mut text = String::new();
    let mut input = io::stdin().lock();
    input.read_line(&mut text)?;
    if !is_shard() && !commands_follow(&text) {
        input.read_to_string(&mut text)?;
    }
    Ok(text)
}

/// Whether commands follow a job on this line. None follow a job of several lines.
fn commands_follow(line: &str) -> bool {
    #[derive(Deserialize)]
    struct Job {
        #[serde(default)]
        commands: bool,
    }
    serde_json::from_str::<Job>(line).is_ok_and(|job| job.commands)
}

/// A command, one a line. Unknown keys are refused, so that later commands and keys cannot be taken for older ones.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
enum Command {
    /// The warm-up is over: measure from the next end of an interval on.
    Measure {},
}

/// Start the thread that executes commands. To be called before this thread lowers its priority, which the new one inherits.
///
/// # Errors
/// When the thread cannot be started.
pub fn listen_for_commands(measure: impl FnMut() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("commands".to_owned()).spawn(move || execute(io::stdin().lock(), measure))?;
    Ok(())
}

/// Execute the commands on these lines. A line that is not one is reported and changes nothing.
fn execute(lines: impl BufRead, mut measure: impl FnMut()) {
    for line in lines.split(b'\n').map_while(Result::ok) {
        match serde_json::from_slice(&line) {
            Ok(Command::Measure {}) => measure(),
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(error) => eprintln!("redline-engine: a command cannot be understood: {error}"),
        }
    }
}

/// Write one event. When that fails, nobody reads the result, so the process ends.
pub fn emit(event: &Event<'_>) {
    if let Err(error) = write(event) {
        if error.kind() != io::ErrorKind::BrokenPipe {
            let _ = writeln!(io::stderr(), "redline-engine: cannot write to standard output: {error}");
        }
        end_now(1);
    }
}

fn write(event: &Event<'_>) -> io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_follow_a_job_of_one_line_with_that_key() {
        assert!(commands_follow("{\"format\": \"redline.job/1\", \"commands\": true}\n"));
        for other in ["{\"commands\": false}", "{}", "{\"commands\": true", "{\n", "\"commands\"", ""] {
            assert!(!commands_follow(other), "{other}");
        }
    }

    #[test]
    fn each_line_is_a_command_and_other_lines_are_skipped() {
        let mut measured = 0;
        let lines = b"\n{\"command\":\"measure\"}\nmeasure\n{\"command\":\"measure\",\"for_ns\":7}\n{\"command\":\"end\"}\n{\"command\": \"measure\"}";
        execute(&lines[..], || measured += 1);
        assert_eq!(measured, 2);
    }
}
