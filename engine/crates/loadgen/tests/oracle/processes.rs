//! Several processes, and pauses: which processes serve, which are stopped, and that none stays behind.

use std::collections::HashSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::rig::{BINARY, Oracle, bodies};

const GET: &[u8] = b"GET /name HTTP/1.1\r\n\r\n";

/// The fields after the name in `/proc/ID/stat`, the state first. None when the process is gone, or a zombie.
fn state(id: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let state = stat.rsplit(") ").next()?.chars().next()?;
    (state != 'Z').then_some(state)
}

fn children(id: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    listed.split_whitespace().map(|id| id.parse().expect("an id")).collect()
}

/// Waits for what must happen; ten seconds are enough on any machine.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Processes that hold an end of a connection to the oracle, by the inodes of their sockets.
fn sockets(id: u32) -> usize {
    let links = fs::read_dir(format!("/proc/{id}/fd")).expect("it runs");
    let links = links.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

#[test]
fn processes_share_a_port_and_their_lateness() {
    let oracle = Oracle::start(&["fixed", "--delay", "1ms", "--processes", "3", "--threads", "2"]);
    let ids = children(oracle.child.id());
    assert_eq!(ids.len(), 3);
    assert_eq!(sockets(oracle.child.id()), 0);
    let streams: Vec<_> = (0..60).map(|_| oracle.connect()).collect();
    for mut stream in &streams {
        stream.write_all(GET).expect("it reads");
        assert_eq!(bodies(stream.try_clone().expect("a socket can be cloned"), 1), ["name"]);
    }
    // Which process has a connection is random: the probability that one of three has none of 60 is below 1e-10.
    let held: Vec<usize> = ids.iter().map(|&id| sockets(id) - 2).collect();
    assert_eq!(held.iter().sum::<usize>(), 60);
    assert!(held.iter().all(|&count| count > 0), "{held:?}");
    let (code, rest) = oracle.terminate();
    assert_eq!(code, Some(0));
    assert!(rest.starts_with(r#"{"answered":60,"#), "{rest}");
    assert!(ids.into_iter().all(|id| state(id).is_none()));
}

#[test]
fn all_end_when_one_is_killed() {
    let mut oracle = Oracle::start(&["null", "--processes", "3"]);
    let ids = children(oracle.child.id());
    assert!(Command::new("kill").args(["-9", &ids[1].to_string()]).status().expect("kill runs").success());
    assert_eq!(oracle.child.wait().expect("it ends").code(), Some(1));
    eventually("a process stayed behind", || ids.iter().all(|&id| state(id).is_none()));
}

#[test]
fn all_end_with_their_parent_even_stopped() {
    let mut oracle = Oracle::start(&[
        "null",
        "--processes",
        "2",
        "--pause-after",
        "1ms",
        "--pause-every",
        "1000s",
        "--pause-for",
        "900s",
    ]);
    let ids = children(oracle.child.id());
    eventually("they are not stopped", || ids.iter().all(|&id| state(id) == Some('T')));
    oracle.child.kill().expect("it can be killed");
    oracle.child.wait().expect("it ends");
    eventually("a process stayed behind", || ids.iter().all(|&id| state(id).is_none()));
}

#[test]
fn a_stopped_server_still_ends_on_a_signal() {
    let oracle = Oracle::start(&["null", "--pause-after", "1ms", "--pause-every", "1000s", "--pause-for", "900s"]);
    let ids = children(oracle.child.id());
    eventually("it is not stopped", || ids.iter().all(|&id| state(id) == Some('T')));
    assert_eq!(oracle.terminate(), (Some(0), String::new()));
    assert!(ids.into_iter().all(|id| state(id).is_none()));
}

#[test]
fn a_pause_holds_everything_for_its_time_and_says_when_it_was() {
    let arguments = ["null", "--pause-every", "400ms", "--pause-for", "150ms", "--port", "0"];
    let mut child =
        Command::new(BINARY).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let id = child.id();
    let mut states = HashSet::new();
    eventually("it is not stopped", || {
        states.extend(children(id).into_iter().filter_map(state));
        states.contains(&'T')
    });
    eventually("it does not go on", || children(id).into_iter().filter_map(state).all(|state| state != 'T'));
    assert!(Command::new("kill").arg(id.to_string()).status().expect("kill runs").success());
    let mut errors = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut errors).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let line = errors.lines().next().expect("a line");
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!((words[0], words[1], words[2], words[4], words[6]), ("pause", "1:", "from", "for", "ns"), "{line}");
    // The pause ends at its time even if it began late.
    assert!(words[5].parse::<u64>().expect("a number") > 0, "{line}");
}
