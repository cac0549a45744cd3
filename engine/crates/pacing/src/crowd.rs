//! The users of a closed load that join and leave.

use crate::Profile;

/// What a user does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The user with this number, over all workers, begins.
    Join(u32),
    /// The user with this number gives up its connection once its requests are answered.
    Leave(u32),
}

/// The joining or leaving of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When, in nanoseconds since the epoch.
    pub at_ns: u64,
    /// Which user joins or leaves.
    pub change: Move,
    /// This user's position, from 0, among the users of all workers who join, or leave, in the same step; 0 on a slope.
    pub rank: u32,
    /// How many users of all workers join, or leave, in the same step; 1 on a slope.
    pub of: u32,
}

/// A worker's share of the changes, in order of time: an iterator that ends with the last change.
///
/// User *i* is present while the profile, rounded to a whole number, is more than *i*: it joins where the profile rises through
/// *i* + ½, and leaves where it falls through it. So a slope's changes are spread evenly over it, with half a distance at
/// either end, both upwards and downwards; the mean number of users is the profile's mean; and a slope to *n* ends with exactly
/// *n*, whatever the rounding. The users of the start join at 0. Worker *w* has the users *i* with *i* mod `workers` = *w*; the
/// last to join are the first to leave.
#[derive(Clone, Debug)]
pub struct Crowd {
    profile: Profile,
    worker: u32,
    workers: u32,
    /// The index of the present line; `None` is the step at 0 to the start value.
    line: Option<usize>,
    /// Users below this number are present, by the changes that this worker has returned.
    present: u32,
    /// Users who were present when the line started.
    began_with: u32,
}

impl Crowd {
    /// The changes of `worker` (from 0) of `workers` (at least 1), for a profile of users.
    #[must_use]
    pub fn new(profile: &Profile, worker: u32, workers: u32) -> Self {
        Self { profile: profile.clone(), worker, workers: workers.max(1), line: None, present: 0, began_with: 0 }
    }

    /// The most users of this worker who are ever present at once: the connections to reserve.
    #[must_use]
    pub fn most(profile: &Profile, worker: u32, workers: u32) -> u32 {
        let workers = workers.max(1);
        users(profile.most()).saturating_sub(worker).div_ceil(workers)
    }

    /// This worker's next user to join, at or above `present`.
    fn next_up(&self) -> Option<u32> {
        let behind = self.present.saturating_sub(self.worker).div_ceil(self.workers);
        behind.checked_mul(self.workers)?.checked_add(self.worker)
    }

    /// This worker's next user to leave, below `present`.
    fn next_down(&self) -> Option<u32> {
        let last = self.present.checked_sub(1)?.checked_sub(self.worker)?;
        Some(last / self.workers * self.workers + self.worker)
    }

    /// The next change on the way to `target` users; `None` when this worker has none left.
    fn toward(&mut self, target: u32) -> Option<Move> {
        if self.present < target {
            let user = self.next_up().filter(|user| *user < target)?;
            self.present = user + 1;
            return Some(Move::Join(user));
        }
        let user = self.next_down().filter(|user| *user >= target)?;
        self.present = user;
        Some(Move::Leave(user))
    }

    fn placed(&self, change: Move, target: u32) -> Change {
        let of = self.began_with.abs_diff(target);
        let (user, rank) = match change {
            Move::Join(user) => (user, user - self.began_with),
            Move::Leave(user) => (user, self.began_with - 1 - user),
        };
        match self.line.and_then(|index| self.profile.segment(index)) {
            None => Change { at_ns: 0, change, rank, of },
            Some(line) if line.over_ns == 0 => Change { at_ns: line.start_ns, change, rank, of },
            Some(line) => Change { at_ns: line.crosses_at(f64::from(user) + 0.5), change, rank: 0, of: 1 },
        }
    }
}

impl Iterator for Crowd {
    type Item = Change;

    fn next(&mut self) -> Option<Change> {
        loop {
            let target = match self.line {
                None => users(self.profile.start()),
                Some(index) => users(self.profile.segment(index)?.to),
            };
            if let Some(change) = self.toward(target) {
                return Some(self.placed(change, target));
            }
            self.present = target;
            self.began_with = target;
            self.line = Some(self.line.map_or(0, |index| index + 1));
        }
    }
}

/// The whole number of users for a value: the nearest, and the higher of two.
fn users(value: f64) -> u32 {
    (value + 0.5) as u32
}
