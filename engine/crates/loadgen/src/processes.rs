//! The processes of a server as they come and go, and the CPU time that they used.
//!
//! CPU time between two readings is known only if the same processes existed at both: what a process used before it was first
//! seen, or after its last reading, is unknown.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::sys::time::process_cpu_of;

/// The CPU time used until now by the present processes. When processes come or go, the `generation` changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    pub ns: u64,
    pub generation: u64,
}

/// The CPU time between two readings; `None` if processes came or went in between.
pub fn between(before: Option<Used>, after: Option<Used>) -> Option<u64> {
    let (before, after) = before.zip(after)?;
    if before.generation == after.generation { after.ns.checked_sub(before.ns) } else { None }
}

/// A process; `started` tells it from another process with the same number. `reaped` is the CPU time of its ended children.
struct Member {
    pid: u32,
    started: u64,
    reaped: u64,
}

/// The processes of a server, and all that they start. This process and its ancestors count without their children.
pub struct Processes {
    members: Vec<Member>,
    /// This process and its ancestors.
    above: Vec<u32>,
    generation: u64,
    /// Whether a process had ended at the last look: its parent may reap it later.
    ended: bool,
    /// Whether children ended that were never seen, so that their CPU time is unknown.
    missed: bool,
}

impl Processes {
    /// The processes with these numbers that still exist. The first reading adds the processes that they have started.
    pub fn new(pids: &[u32]) -> Self {
        let member =
            |pid: &u32| stat(*pid).map(|stat| Member { pid: *pid, started: stat.started, reaped: stat.reaped });
        let members: Vec<_> = pids.iter().filter_map(member).collect();
        Self {
            ended: members.len() < pids.len(),
            members,
            above: line_of(std::process::id()),
            generation: 0,
            missed: false,
        }
    }

    /// The CPU time used until now; `None` if it is not known. `born`: whether any process on this machine began since the last
    /// reading.
    pub fn used(&mut self, born: bool) -> Option<Used> {
        if born {
            self.look();
        }
        let ns = self.sum().or_else(|| {
            self.look();
            self.sum()
        })?;
        (!self.missed && !self.members.is_empty()).then_some(Used { ns, generation: self.generation })
    }

    fn sum(&self) -> Option<u64> {
        self.members.iter().map(|member| process_cpu_of(member.pid)).sum()
    }

    /// Update which processes exist.
    fn look(&mut self) {
        // A child disappears before its parent's time of ended children is read again: in this look or the next.
        let mut reaped = false;
        for member in &mut self.members {
            if let Some(now) = stat(member.pid).filter(|now| now.started == member.started) {
                reaped |= now.reaped > member.reaped && !self.above.contains(&member.pid);
                member.reaped = now.reaped;
            }
        }
        let before = self.members.len();
        self.members.retain(|member| stat(member.pid).is_some_and(|now| now.started == member.started));
        let ended = self.members.len() < before;
        self.missed |= reaped && !ended && !self.ended;
        self.ended = ended;
        let known = self.members.len();
        self.add_children();
        if ended || self.members.len() > known {
            self.generation += 1;
        }
    }

    fn add_children(&mut self) {
        let mut at = 0;
        while at < self.members.len() {
            let pid = self.members[at].pid;
            for child in if self.above.contains(&pid) { Vec::new() } else { children(pid) } {
                if self.members.iter().all(|member| member.pid != child)
                    && let Some(stat) = stat(child)
                {
                    self.members.push(Member { pid: child, started: stat.started, reaped: stat.reaped });
                }
            }
            at += 1;
        }
    }
}

/// Tells whether processes began on this machine, or in this container, since the last query.
pub struct Births {
    file: Option<File>,
    last: Option<u64>,
}

impl Births {
    pub fn open() -> Self {
        Self { file: File::open("/proc/loadavg").ok(), last: None }
    }

    /// Whether processes began; true if that is not known. The kernel reports the last number that it gave (`/proc/loadavg`,
    /// last field).
    pub fn any(&mut self) -> bool {
        let now = self.newest();
        let born = now.is_none() || now != self.last;
        self.last = now;
        born
    }

    fn newest(&self) -> Option<u64> {
        let mut text = [0; 128];
        let length = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        std::str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace().last()?.parse().ok()
    }
}

struct Stat {
    parent: u32,
    started: u64,
    reaped: u64,
}

/// Reads `/proc/PID/stat`. Its fields count from the last bracket, because the command's name may contain anything. Times are
/// in ticks.
fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat { parent: field(4)? as u32, started: field(22)?, reaped: field(16)? + field(17)? })
}

/// A process and its ancestors.
fn line_of(pid: u32) -> Vec<u32> {
    std::iter::successors(Some(pid), |pid| stat(*pid).map(|stat| stat.parent).filter(|parent| *parent > 0)).collect()
}

/// The processes that a process started or inherited; none if it has ended.
fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let texts: Vec<String> = threads.flatten().map(of_thread).collect();
    texts.iter().flat_map(|text| text.split_ascii_whitespace()).filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell that runs line after line, and reports when a line is done.
    struct Shell {
        process: Child,
        out: BufReader<std::process::ChildStdout>,
    }

    impl Shell {
        fn start() -> Self {
            let mut process =
                Command::new("sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("there is a shell");
            let out = BufReader::new(process.stdout.take().unwrap());
            Self { process, out }
        }

        fn run(&mut self, line: &str) {
            writeln!(self.process.stdin.as_mut().unwrap(), "{line}; echo done").unwrap();
            let mut said = String::new();
            self.out.read_line(&mut said).unwrap();
            assert_eq!(said, "done\n");
        }

        fn pid(&self) -> u32 {
            self.process.id()
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }

    const BURN: &str = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";

    #[test]
    fn what_a_process_used_while_none_came_or_went_is_known() {
        let mut shell = Shell::start();
        let mut processes = Processes::new(&[shell.pid()]);
        let before = processes.used(true);
        shell.run(BURN);
        let after = processes.used(true);
        assert!(between(before, after) > Some(1_000_000), "{before:?} {after:?}");
    }

    #[test]
    fn a_child_is_followed_from_when_it_was_found_until_it_ends() {
        let mut shell = Shell::start();
        let mut processes = Processes::new(&[shell.pid()]);
        let before = processes.used(true);
        shell.run("sleep 60 >/dev/null & child=$!");
        let first = processes.used(true);
        assert_eq!(between(before, first), None);
        shell.run(BURN);
        let known = processes.used(true);
        assert!(between(first, known) > Some(1_000_000), "{first:?} {known:?}");
        shell.run("kill $child; wait $child");
        let gone = processes.used(false);
        assert_eq!(between(known, gone), None);
        shell.run(BURN);
        assert!(between(gone, processes.used(true)) > Some(1_000_000));
    }

    #[test]
    fn children_that_lived_between_two_readings_leave_nothing_known() {
        let mut shell = Shell::start();
        let mut processes = Processes::new(&[shell.pid()]);
        assert!(processes.used(true).is_some());
        shell.run("(i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done)");
        assert_eq!(processes.used(true), None);
        shell.run(BURN);
        assert_eq!(processes.used(true), None);
    }

    #[test]
    fn who_is_gone_and_another_process_of_its_number_are_not_read() {
        let mut processes = Processes::new(&[4_194_304]);
        assert_eq!(processes.used(true), None);
        let shell = Shell::start();
        let mut reused = Processes::new(&[shell.pid()]);
        reused.members[0].started += 1;
        assert_eq!(reused.used(true), None);
        assert_eq!(Processes::new(&[]).used(true), None);
    }

    #[test]
    fn of_who_started_this_process_only_itself_counts() {
        let own = std::process::id();
        let mut processes = Processes::new(&[own]);
        let _child = Shell::start();
        let before = processes.used(true);
        assert_eq!(processes.members.len(), 1);
        assert!(between(before, processes.used(true)).is_some());
    }

    #[test]
    fn births_on_the_machine_are_seen() {
        let mut births = Births::open();
        assert!(births.any());
        Shell::start();
        assert!(births.any());
    }

    #[test]
    fn a_time_that_fell_is_not_known() {
        let at = |ns| Some(Used { ns, generation: 3 });
        assert_eq!(between(at(5), at(9)), Some(4));
        assert_eq!(between(at(9), at(5)), None);
        assert_eq!(between(at(5), Some(Used { ns: 9, generation: 4 })), None);
        assert_eq!(between(None, at(5)), None);
    }
}
