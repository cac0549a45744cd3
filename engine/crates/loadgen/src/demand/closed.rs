//! A closed load: users who join, send requests, think or keep a pace in between, and leave.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use redline_pacing::{Change, Crowd, Move, Pace, Think};

use super::DueEvent;
use crate::request::{DueRequest, NEVER};

/// The users of one worker.
#[derive(Clone)]
pub struct Users {
    pub crowd: Crowd,
    pub think: Think,
    pub pace: Option<Pace>,
    /// Requests that a user keeps in flight.
    pub depth: u32,
    pub seed: u64,
    /// The number of this worker and of all workers: its users are those whose number modulo `workers` is `worker`.
    pub worker: u32,
    pub workers: u32,
}

impl Users {
    /// How many are present when the load starts.
    pub fn at_start(&self) -> usize {
        let first = self.crowd.clone().take_while(|change| change.at_ns == 0);
        let moves = first.map(|change| if matches!(change.change, Move::Join(_)) { 1 } else { -1 });
        moves.sum::<i64>().unsigned_abs() as usize
    }
}

#[derive(Clone, Copy, Default)]
struct User {
    /// When it joined, or, with a pace, when its first request is due.
    start_ns: u64,
    /// How many of its requests have ended, and how many had ended when it last joined.
    turn: u64,
    turn_at_start: u64,
    /// How many of its requests are due, or will be due.
    in_play: u32,
    present: bool,
}

pub struct Closed {
    think: Think,
    pace: Option<Pace>,
    depth: u32,
    seed: u64,
    worker: u32,
    workers: u32,
    epoch_ns: u64,
    /// The next change of the number of users, and the later changes.
    change: Option<Change>,
    changes: Crowd,
    users: Vec<User>,
    /// When requests will fall due, and for which user.
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    pub waiting: VecDeque<DueRequest>,
}

impl Closed {
    /// `busy` are the users who are on a journey from before: they begin none.
    pub fn new(mut users: Users, epoch_ns: u64, busy: impl Iterator<Item = u32>) -> Self {
        let mut closed = Self {
            think: users.think,
            pace: users.pace,
            depth: users.depth,
            seed: users.seed,
            worker: users.worker,
            workers: users.workers,
            epoch_ns,
            change: users.crowd.next(),
            changes: users.crowd,
            users: Vec::new(),
            timers: BinaryHeap::new(),
            waiting: VecDeque::new(),
        };
        for user in busy {
            closed.users.resize(closed.users.len().max(user as usize + 1), User::default());
            closed.users[user as usize].in_play = 1;
        }
        while let Some(change) = closed.change.filter(|change| change.at_ns == 0) {
            closed.take_change();
            closed.apply(change);
        }
        closed
    }

    /// When a user joins or leaves, or a request falls due.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        let due_ns = self.timers.peek().map_or(NEVER, |Reverse((due_ns, _))| *due_ns);
        due_ns.min(self.next_change_ns())
    }

    fn next_change_ns(&self) -> u64 {
        self.change.map_or(NEVER, |change| self.epoch_ns.saturating_add(change.at_ns))
    }

    fn take_change(&mut self) -> Option<Change> {
        std::mem::replace(&mut self.change, self.changes.next())
    }

    pub fn pop_due(&mut self) -> DueEvent {
        let due_ns = self.timers.peek().map_or(NEVER, |Reverse((due_ns, _))| *due_ns);
        if self.next_change_ns() <= due_ns
            && let Some(change) = self.take_change()
        {
            return self.apply(change);
        }
        let Some(Reverse((due_ns, user))) = self.timers.pop() else {
            return DueEvent::Nothing;
        };
        let user_state = &mut self.users[user as usize];
        if !user_state.present {
            user_state.in_play -= 1;
            return DueEvent::Nothing;
        }
        self.waiting.push_back(DueRequest::new(due_ns, user));
        DueEvent::Due(due_ns)
    }

    fn apply(&mut self, change: Change) -> DueEvent {
        let at_ns = self.epoch_ns.saturating_add(change.at_ns);
        match change.change {
            Move::Join(number) => {
                let start_ns = self.pace.map_or(at_ns, |pace| pace.start_of(at_ns, change.rank, change.of));
                self.join(number / self.workers, start_ns);
                DueEvent::Joined
            }
            Move::Leave(number) => {
                self.users[(number / self.workers) as usize].present = false;
                DueEvent::Left
            }
        }
    }

    #[inline]
    pub fn is_present(&self, user: u32) -> bool {
        self.users.get(user as usize).is_some_and(|user| user.present)
    }

    /// What a user who has left had still to do is over.
    pub fn left(&mut self, user: u32) {
        self.users[user as usize].in_play -= 1;
    }

    fn join(&mut self, index: u32, start_ns: u64) {
        if self.users.len() <= index as usize {
            self.users.resize(index as usize + 1, User::default());
        }
        let user = &mut self.users[index as usize];
        // Unanswered requests from before the user left count.
        let begins = self.depth - user.in_play;
        // With a pace, the first request is due when those have ended.
        let turn_at_start = user.turn + u64::from(begins == 0);
        *user = User { start_ns, turn_at_start, in_play: self.depth, present: true, ..*user };
        for _ in 0..begins {
            self.timers.push(Reverse((start_ns, index)));
        }
    }

    /// A user's request has ended. Returns the due time of the user's next request if that is due now, and waits.
    #[inline]
    pub fn ended(&mut self, due: DueRequest, now_ns: u64, end_ns: u64) -> Option<u64> {
        let user = &mut self.users[due.user as usize];
        if !user.present {
            user.in_play -= 1;
            return None;
        }
        user.turn += 1;
        let due_ns = match self.pace {
            Some(pace) => pace.due(user.start_ns, user.turn - user.turn_at_start),
            None if self.think == Think::None => now_ns,
            None => {
                let number = due.user * self.workers + self.worker;
                now_ns.saturating_add(self.think.draw(self.seed, number, user.turn))
            }
        };
        if due_ns >= end_ns {
            return None;
        }
        if due_ns > now_ns {
            self.timers.push(Reverse((due_ns, due.user)));
            return None;
        }
        self.waiting.push_back(DueRequest::new(due_ns, due.user));
        Some(due_ns)
    }
}
