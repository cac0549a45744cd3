//! What is said to the engine while it runs: one command a line on standard input, after a job that asks for it.

use std::io::{self, BufRead};
use std::thread;

use serde::Deserialize;

/// What may be said. Unknown keys are refused, so that later commands and keys cannot be taken for older ones.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
enum Command {
    /// The warm-up is over: measure from the next end of an interval on.
    Measure {},
}

#[derive(Deserialize)]
struct Asking {
    #[serde(default)]
    commands: bool,
}

/// Whether commands follow a job that stands on this line; a job of several lines has none.
pub fn follow(line: &str) -> bool {
    serde_json::from_str::<Asking>(line).is_ok_and(|asking| asking.commands)
}

/// Start the thread that does what is said. It has the core that it needs at once: the director may be in no hurry.
///
/// # Errors
/// When there can be no thread.
pub fn listen(measure: impl FnMut() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("commands".to_owned()).spawn(move || obey(io::stdin().lock(), measure))?;
    Ok(())
}

/// Do what is said until nothing is said any more. What cannot be understood is told and changes nothing.
fn obey(lines: impl BufRead, mut measure: impl FnMut()) {
    for line in lines.split(b'\n').map_while(Result::ok) {
        match serde_json::from_slice(&line) {
            Ok(Command::Measure {}) => measure(),
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(error) => eprintln!("redline-engine: a command cannot be understood: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_follow_a_job_of_one_line_that_says_so() {
        assert!(follow("{\"format\": \"redline.job/1\", \"commands\": true}\n"));
        for other in ["{\"commands\": false}", "{}", "{\"commands\": true", "{\n", "\"commands\"", ""] {
            assert!(!follow(other), "{other}");
        }
    }

    #[test]
    fn each_line_is_a_command_and_nonsense_is_passed_over() {
        let mut measured = 0;
        let said = b"\n{\"command\":\"measure\"}\nmeasure\n{\"command\":\"measure\",\"for_ns\":7}\n{\"command\":\"end\"}\n{\"command\": \"measure\"}";
        obey(&said[..], || measured += 1);
        assert_eq!(measured, 2);
    }
}
