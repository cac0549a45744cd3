//! Standard input and output of the engine: the job, the commands after it, and the events. See
//! `docs/reference/engine-protocol.md`.

use std::io::{self, BufRead, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use redline_traffic::Event;
use serde::Deserialize;

use crate::shards::child::is_shard;
use crate::sys::process::end_now;

/// How often an engine that waits for a command checks whether it was stopped.
pub const CHECK_EVERY: Duration = Duration::from_millis(20);

/// Read the job: all of standard input, or its first line in a shard and where commands follow.
///
/// # Errors
/// When standard input cannot be read.
pub fn read_job() -> io::Result<String> {
    let mut text = String::new();
    let mut input = io::stdin().lock();
    input.read_line(&mut text)?;
    if !is_shard() && !commands_follow(&text) {
        input.read_to_string(&mut text)?;
    }
    Ok(text)
}

/// Whether commands follow the job on this line. None follow a job that has several lines.
fn commands_follow(line: &str) -> bool {
    #[derive(Deserialize)]
    struct CommandsKey {
        #[serde(default)]
        commands: bool,
    }
    serde_json::from_str::<CommandsKey>(line).is_ok_and(|job| job.commands)
}

/// A command, a line of JSON. Unknown keys are refused, so that later commands and keys cannot be taken for older ones.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
enum Command {
    /// The schedule of a part starts when the wall clock shows this time.
    Start { at_unix_ns: u64 },
    /// The warm-up is over: measure from the next end of an interval on, or from the first that is not before this time since
    /// the epoch.
    Measure {
        #[serde(default)]
        at_ns: Option<u64>,
    },
}

/// Executes the command `measure`, with the time that it names.
pub type OnMeasure = Box<dyn FnMut(Option<u64>) + Send>;

/// The thread that executes commands.
pub struct Commands {
    start: Receiver<u64>,
    measure: Sender<OnMeasure>,
}

impl Commands {
    /// Start the thread. Call this before the calling thread lowers its priority, which the new thread inherits.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn listen() -> io::Result<Self> {
        let (start_sender, start) = channel();
        let (measure, on_measure) = channel();
        thread::Builder::new()
            .name("commands".to_owned())
            .spawn(move || execute(io::stdin().lock(), &start_sender, &on_measure))?;
        Ok(Self { start, measure })
    }

    /// Wait for the command `start` while `goes_on` returns true. Returns its Unix time, or `None` without a command.
    pub fn wait_for_start(&self, mut goes_on: impl FnMut() -> bool) -> Option<u64> {
        loop {
            match self.start.recv_timeout(CHECK_EVERY) {
                Ok(at_unix_ns) => return Some(at_unix_ns),
                Err(RecvTimeoutError::Timeout) if goes_on() => {}
                Err(_) => return None,
            }
        }
    }

    /// Execute `measure` with this function from now on. Earlier commands have waited until now.
    pub fn on_measure(self, measure: OnMeasure) {
        // This fails if the thread has ended with standard input.
        let _ = self.measure.send(measure);
    }
}

/// Execute the commands on these lines. A line without a valid command is reported and changes nothing.
fn execute(lines: impl BufRead, start: &Sender<u64>, on_measure: &Receiver<OnMeasure>) {
    let mut measure = None;
    for line in lines.split(b'\n').map_while(Result::ok) {
        match serde_json::from_slice(&line) {
            // Only a part waits for it.
            Ok(Command::Start { at_unix_ns }) => drop(start.send(at_unix_ns)),
            Ok(Command::Measure { at_ns }) => {
                measure = measure.or_else(|| on_measure.recv().ok());
                let Some(measure) = &mut measure else {
                    return;
                };
                measure(at_ns);
            }
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(error) => eprintln!("redline-engine: a command cannot be understood: {error}"),
        }
    }
}

/// Write an event. When that fails, nobody reads the result, so the process ends.
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
        let lines =
            b"\n{\"command\":\"measure\"}\nmeasure\n{\"command\":\"measure\",\"for_ns\":7}\n{\"command\":\"end\"}\n\
            {\"command\":\"start\",\"at_unix_ns\":9}\n{\"command\": \"measure\", \"at_ns\": 7}";
        let ((start, started), (give, on_measure), (seen, measured)) = (channel(), channel(), channel());
        give.send(Box::new(move |at_ns| seen.send(at_ns).unwrap()) as OnMeasure).unwrap();
        execute(&lines[..], &start, &on_measure);
        drop((start, on_measure));
        assert_eq!(started.iter().collect::<Vec<_>>(), [9]);
        assert_eq!(measured.try_iter().collect::<Vec<Option<u64>>>(), [None, Some(7)]);
    }

    #[test]
    fn who_waits_for_the_start_ends_with_standard_input_or_when_it_is_stopped() {
        let (sender, start) = channel();
        let commands = Commands { start, measure: channel().0 };
        assert_eq!(commands.wait_for_start(|| false), None);
        sender.send(7).unwrap();
        assert_eq!(commands.wait_for_start(|| false), Some(7));
        drop(sender);
        assert_eq!(commands.wait_for_start(|| true), None);
    }
}
