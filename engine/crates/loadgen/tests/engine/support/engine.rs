//! The engine as a process of a test.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::EngineOutput;

/// A running engine. It is killed if it still runs when this is dropped.
pub struct Engine {
    child: Child,
    input: Option<ChildStdin>,
    out: Option<BufReader<ChildStdout>>,
    seen: Vec<Value>,
}

impl Engine {
    pub fn start(job: &str) -> Self {
        Self::start_with(job, |_| {})
    }

    pub fn start_with(job: &str, prepare: impl FnOnce(&mut Command)) -> Self {
        let mut engine = Self::start_heeding(job, prepare);
        engine.input = None;
        engine
    }

    /// Its standard input stays open, for later lines.
    pub fn start_heeding(job: &str, prepare: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redline-engine"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        prepare(&mut command);
        let mut child = command.spawn().unwrap();
        // The engine may refuse a job before it has read all of it.
        let mut input = child.stdin.take();
        let _ = input.as_mut().unwrap().write_all(job.as_bytes());
        let out = child.stdout.take().map(BufReader::new);
        Self { child, input, out, seen: Vec::new() }
    }

    /// Send it a line.
    pub fn say(&mut self, line: &str) {
        self.input.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Close its standard input.
    pub fn close_input(&mut self) {
        drop(self.input.take());
    }

    pub fn pid(&self) -> libc::pid_t {
        libc::pid_t::try_from(self.child.id()).unwrap()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: no memory is passed; the process is our child and has not been waited for.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    /// Limit its descriptors: from now on it gets none that is not below `most`.
    pub fn limit_open_files(&self, most: u64) {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: the limit is valid for reads, and the old limit is not requested.
        let set = unsafe { libc::prlimit(self.pid(), libc::RLIMIT_NOFILE, &raw const limit, std::ptr::null_mut()) };
        assert_eq!(set, 0);
    }

    /// Make the pipe of its output as small as the kernel allows.
    pub fn shrink_output(&self) {
        let out = self.out.as_ref().unwrap().get_ref();
        // SAFETY: no memory is passed; the descriptor is open.
        assert!(unsafe { libc::fcntl(out.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) } > 0);
    }

    /// Stop reading its output.
    pub fn stop_reading(&mut self) {
        drop(self.out.take());
    }

    fn read_event(&mut self) -> Option<&Value> {
        let mut line = String::new();
        if self.out.as_mut().unwrap().read_line(&mut line).unwrap() == 0 {
            return None;
        }
        self.seen.push(serde_json::from_str(&line).unwrap());
        self.seen.last()
    }

    /// Wait for an event for which this returns true.
    pub fn wait_until(&mut self, mut wanted: impl FnMut(&Value) -> bool) {
        while let Some(event) = self.read_event() {
            if wanted(event) {
                return;
            }
        }
        panic!("the engine ended without telling what was waited for: {:#?}", self.seen.last());
    }

    /// Wait for an interval of the measurement in which this count, named by its JSON pointer, is not 0.
    pub fn wait_for_measured(&mut self, count: &str) {
        self.wait_until(|event| event["phase"] == "measure" && event["counts"].pointer(count).unwrap() != 0);
    }

    /// Read its output to the end and wait for its exit.
    pub fn finish(mut self) -> EngineOutput {
        while self.read_event().is_some() {}
        let mut log = String::new();
        if let Some(mut err) = self.child.stderr.take() {
            err.read_to_string(&mut log).unwrap();
        }
        let code = self.exit_code();
        EngineOutput { code, events: std::mem::take(&mut self.seen), log }
    }

    /// Wait for its exit; a minute and a half exceeds every deadline of these tests.
    pub fn exit_code(&mut self) -> Option<i32> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(90) {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("the engine outlived its job");
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether all threads of a process are stopped by a signal. A thread that waits for a core stops only when it gets the core,
/// which may be long after the others.
pub fn is_stopped(pid: libc::pid_t) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.map(|task| task.unwrap().path().join("stat")).all(|path| {
        // A thread that has ended since needs no stop.
        std::fs::read_to_string(path).map_or(true, |stat| stat.rsplit_once(") ").unwrap().1.starts_with('T'))
    })
}

/// Limit the descriptors of a command, whatever this host allows.
pub fn limit_open_files(command: &mut Command, most: u64) {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the call that is made between fork and exec is async-signal-safe and touches no memory but the limit.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}
