//! The duet of a job: the targets that are loaded in turn, and how long the turns are.

use redline_traffic::EngineError;
use serde::Deserialize;

use super::bad;
use super::target::RawTarget;

/// The shortest and the longest slice: a millisecond and a minute.
const SHORTEST_SLICE_NS: u64 = 1_000_000;
const LONGEST_SLICE_NS: u64 = 60_000_000_000;
/// The most targets of a duet.
const MOST_TARGETS: usize = 64;
/// The most blocks that a duet may insist on.
const MOST_OF_FEWEST: u64 = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawDuet {
    targets: Vec<RawTarget>,
    slice_ns: u64,
    longest_slice_ns: Option<u64>,
    guard_ns: u64,
    #[serde(default)]
    fewest_blocks: u64,
    #[serde(default)]
    longest_ns: u64,
    #[serde(default)]
    pids: Vec<Vec<u32>>,
    #[serde(default)]
    parallel: bool,
    #[serde(default)]
    last_is_first: bool,
}

/// Several targets, loaded in short slices in turn, or at the same time.
#[derive(Clone, Debug)]
pub struct Duet {
    /// The number of targets, including the job's own.
    pub targets: usize,
    /// The planned length of a slice, including its guard, if a target answers fast enough.
    pub slice_ns: u64,
    /// The planned length if no target does.
    pub longest_slice_ns: u64,
    /// How long the beginning of a slice is not measured.
    pub guard_ns: u64,
    /// Where the time has no room for so many measured blocks, the warm-up ends early for them, and the measurement goes on
    /// until they are made or it would last longer than this in all.
    pub fewest_blocks: u64,
    pub longest_ns: u64,
    /// The processes of each target, whose CPU time is read at both ends of a slice; empty for a target without processes.
    pub pids: Vec<Vec<u32>>,
    /// Whether all targets are loaded at the same time, by workers of their own.
    pub parallel: bool,
    /// Whether the last target is the same server as target 0: the two share its slices, so that it serves as many requests as
    /// any other.
    pub last_is_first: bool,
}

impl RawDuet {
    /// The duet, and the targets besides the job's own.
    pub fn check(self) -> Result<(Duet, Vec<RawTarget>), EngineError> {
        let targets = self.targets.len() + 1;
        if !(2..=MOST_TARGETS).contains(&targets) {
            let message = format!("{targets} targets are not 2 to {MOST_TARGETS}");
            return Err(bad("duet.targets", &message, "give those that are compared with the job's target"));
        }
        if !(SHORTEST_SLICE_NS..=LONGEST_SLICE_NS).contains(&self.slice_ns) {
            let message = format!("{} is not between {SHORTEST_SLICE_NS} and {LONGEST_SLICE_NS}", self.slice_ns);
            return Err(bad("duet.slice_ns", &message, "durations are in nanoseconds"));
        }
        let longest_slice_ns = self.longest_slice_ns.unwrap_or(self.slice_ns);
        if !(self.slice_ns..=LONGEST_SLICE_NS).contains(&longest_slice_ns) {
            let message = format!("{longest_slice_ns} is not between {} and {LONGEST_SLICE_NS}", self.slice_ns);
            return Err(bad("duet.longest_slice_ns", &message, "give `slice_ns` at least"));
        }
        if self.guard_ns >= self.slice_ns {
            let message = format!("{} leaves nothing of a slice of {}", self.guard_ns, self.slice_ns);
            return Err(bad("duet.guard_ns", &message, "give less than `slice_ns`"));
        }
        if self.fewest_blocks > MOST_OF_FEWEST || self.longest_ns > LONGEST_SLICE_NS * 60 {
            let message = format!("{} blocks within {} ns are too many", self.fewest_blocks, self.longest_ns);
            return Err(bad("duet.fewest_blocks", &message, "give at most 100, and an hour"));
        }
        if !self.pids.is_empty() && self.pids.len() != targets {
            let message = format!("{} lists for {targets} targets", self.pids.len());
            return Err(bad("duet.pids", &message, "give a list for each target, the job's own first"));
        }
        if self.last_is_first && self.parallel {
            let message = "a server cannot share its slices with itself at the same time";
            return Err(bad("duet.last_is_first", message, "leave out `parallel`"));
        }
        let Self { targets: others, slice_ns, guard_ns, fewest_blocks, longest_ns, .. } = self;
        let Self { pids, parallel, last_is_first, .. } = self;
        let duet = Duet {
            targets,
            slice_ns,
            longest_slice_ns,
            guard_ns,
            fewest_blocks,
            longest_ns,
            pids,
            parallel,
            last_is_first,
        };
        Ok((duet, others))
    }
}
