//! The requests in flight: written, or about to be, and not answered.
//!
//! One array of them with two threads of links: by age, because all have the same timeout and the oldest is then always in
//! front; and by connection, in the order in which they were put on it. Every move is O(1), and memory is kept.

use crate::demand::Task;

const NONE: u32 = u32::MAX;

/// A request in flight.
#[derive(Clone, Copy)]
pub struct Flight {
    pub task: Task,
    /// When it was written.
    pub written_ns: u64,
    pub connection: u32,
    /// Which of the job's requests it is.
    pub request: u32,
    older: u32,
    newer: u32,
    before: u32,
    behind: u32,
}

/// The flights of one connection, first to last.
#[derive(Clone, Copy)]
pub struct Line {
    pub first: u32,
    last: u32,
    pub length: u32,
}

impl Line {
    pub const EMPTY: Self = Self { first: NONE, last: NONE, length: 0 };

    pub fn first(&self) -> Option<u32> {
        (self.length > 0).then_some(self.first)
    }
}

pub struct Flights {
    all: Vec<Flight>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    length: usize,
}

impl Flights {
    pub fn new() -> Self {
        Self { all: Vec::new(), free: Vec::new(), oldest: NONE, newest: NONE, length: 0 }
    }

    pub fn get(&self, flight: u32) -> &Flight {
        &self.all[flight as usize]
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// The one that was written first of all.
    pub fn oldest(&self) -> Option<&Flight> {
        (self.oldest != NONE).then(|| &self.all[self.oldest as usize])
    }

    pub fn oldest_index(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// A request takes off, last of all and last of its connection's line.
    #[inline]
    pub fn take_off(&mut self, task: Task, written_ns: u64, request: u32, connection: u32, line: &mut Line) -> u32 {
        let (older, before) = (self.newest, line.last);
        let flight = Flight { task, written_ns, connection, request, older, newer: NONE, before, behind: NONE };
        let index = if let Some(index) = self.free.pop() {
            self.all[index as usize] = flight;
            index
        } else {
            self.all.push(flight);
            (self.all.len() - 1) as u32
        };
        match older {
            NONE => self.oldest = index,
            older => self.all[older as usize].newer = index,
        }
        self.newest = index;
        match before {
            NONE => line.first = index,
            before => self.all[before as usize].behind = index,
        }
        line.last = index;
        line.length += 1;
        self.length += 1;
        index
    }

    /// A request has landed, well or not.
    #[inline]
    pub fn land(&mut self, index: u32, line: &mut Line) -> Flight {
        let flight = self.all[index as usize];
        match flight.older {
            NONE => self.oldest = flight.newer,
            older => self.all[older as usize].newer = flight.newer,
        }
        match flight.newer {
            NONE => self.newest = flight.older,
            newer => self.all[newer as usize].older = flight.older,
        }
        match flight.before {
            NONE => line.first = flight.behind,
            before => self.all[before as usize].behind = flight.behind,
        }
        match flight.behind {
            NONE => line.last = flight.before,
            behind => self.all[behind as usize].before = flight.before,
        }
        line.length -= 1;
        self.length -= 1;
        self.free.push(index);
        flight
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Flights, Line};
    use crate::demand::Task;

    proptest! {
        /// Against lists that are searched: the oldest of all, and the first of each line.
        #[test]
        fn they_are_in_the_order_of_their_age_and_of_their_lines(
            moves in prop::collection::vec((0_u32..4, any::<bool>(), any::<prop::sample::Index>()), 0..200),
        ) {
            let mut flights = Flights::new();
            let mut lines = [Line::EMPTY; 4];
            let mut known: Vec<(u32, u32, u64)> = Vec::new();
            for (i, (connection, begins, which)) in moves.into_iter().enumerate() {
                let line = &mut lines[connection as usize];
                let of_line: Vec<usize> = (0..known.len()).filter(|at| known[*at].1 == connection).collect();
                if begins || of_line.is_empty() {
                    let task = Task::new(i as u64, 0);
                    let flight = flights.take_off(task, 0, 0, connection, line);
                    known.push((flight, connection, i as u64));
                } else {
                    let (flight, _, due_ns) = known.remove(of_line[which.index(of_line.len())]);
                    prop_assert_eq!(flights.land(flight, line).task.due_ns, due_ns);
                }
                prop_assert_eq!(flights.length(), known.len());
                prop_assert_eq!(flights.oldest().map(|flight| flight.task.due_ns), known.first().map(|flight| flight.2));
                for (connection, line) in lines.iter().enumerate() {
                    let mut of_line = known.iter().filter(|flight| flight.1 == connection as u32);
                    prop_assert_eq!(line.first(), of_line.next().map(|flight| flight.0));
                    prop_assert_eq!(line.length as usize, known.iter().filter(|f| f.1 == connection as u32).count());
                }
            }
        }
    }
}
