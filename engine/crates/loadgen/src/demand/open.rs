//! An open load: requests fall due by a schedule, whether or not earlier ones are answered.
//!
//! The waiting requests are a contiguous part of the schedule, so two cursors describe any number of them: at the next request
//! to fall due, and at the oldest that waits.

use redline_pacing::Schedule;

use crate::request::{DueRequest, NEVER};

pub struct Open {
    ahead: Cursor,
    oldest: Option<Cursor>,
    pub waiting: u64,
}

#[derive(Clone)]
struct Cursor {
    schedule: Schedule,
    epoch_ns: u64,
    due_ns: u64,
    /// Its number among the requests of a replay.
    number: u32,
}

impl Cursor {
    fn new(mut schedule: Schedule, epoch_ns: u64) -> Self {
        let number = schedule.upcoming() as u32;
        let due_ns = next_after(&mut schedule, epoch_ns);
        Self { schedule, epoch_ns, due_ns, number }
    }

    fn advance(&mut self) -> u64 {
        self.number = self.schedule.upcoming() as u32;
        std::mem::replace(&mut self.due_ns, next_after(&mut self.schedule, self.epoch_ns))
    }
}

fn next_after(schedule: &mut Schedule, epoch_ns: u64) -> u64 {
    schedule.next().map_or(NEVER, |due| due.saturating_add(epoch_ns))
}

impl Open {
    pub fn new(schedule: Schedule, epoch_ns: u64) -> Self {
        Self { ahead: Cursor::new(schedule, epoch_ns), oldest: None, waiting: 0 }
    }

    pub fn next_due_ns(&self) -> u64 {
        self.ahead.due_ns
    }

    /// The next request falls due, and waits.
    pub fn pop_due(&mut self) -> u64 {
        if self.waiting == 0 {
            self.oldest = Some(self.ahead.clone());
        }
        self.waiting += 1;
        self.ahead.advance()
    }

    /// When the oldest waiting request was due; [`NEVER`] when none waits.
    pub fn oldest_due_ns(&self) -> u64 {
        match &self.oldest {
            Some(cursor) if self.waiting > 0 => cursor.due_ns,
            _ => NEVER,
        }
    }

    /// Take the oldest waiting request.
    pub fn take(&mut self) -> Option<DueRequest> {
        if self.waiting == 0 {
            return None;
        }
        self.waiting -= 1;
        self.oldest.as_mut().map(|oldest| {
            let number = oldest.number;
            DueRequest::new(oldest.advance(), number)
        })
    }
}
