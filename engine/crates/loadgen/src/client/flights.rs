//! The requests in flight: written, or about to be, and not answered.
//!
//! One array with two linked lists: by age, because all have the same timeout and the oldest is then in front; and by
//! connection, in the order in which they were put on it. Every operation is O(1), and memory is reused.

use crate::demand::Task;
use crate::ids::{ConnectionId, FlightId};

const NONE: FlightId = FlightId(u32::MAX);

/// A request in flight.
#[derive(Clone, Copy)]
pub struct Flight {
    pub task: Task,
    /// When it was written.
    pub written_ns: u64,
    pub connection: ConnectionId,
    /// Which of the job's requests it is.
    pub request: u32,
    older: FlightId,
    newer: FlightId,
    before: FlightId,
    behind: FlightId,
}

/// The flights of one connection, first to last.
#[derive(Clone, Copy)]
pub struct FlightQueue {
    first: FlightId,
    last: FlightId,
    length: u32,
}

impl FlightQueue {
    pub const EMPTY: Self = Self { first: NONE, last: NONE, length: 0 };

    #[inline]
    pub fn first(&self) -> Option<FlightId> {
        (self.length > 0).then_some(self.first)
    }

    #[inline]
    pub fn len(&self) -> u32 {
        self.length
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

pub struct Flights {
    all: Vec<Flight>,
    free: Vec<FlightId>,
    oldest: FlightId,
    newest: FlightId,
    length: usize,
}

impl Flights {
    pub fn new() -> Self {
        Self { all: Vec::new(), free: Vec::new(), oldest: NONE, newest: NONE, length: 0 }
    }

    pub fn get(&self, flight: FlightId) -> &Flight {
        &self.all[flight.index()]
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub fn len(&self) -> usize {
        self.length
    }

    /// The one that was written first of all.
    pub fn oldest(&self) -> Option<FlightId> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Add a request, last of all and last of its connection's queue.
    #[inline]
    pub fn insert(
        &mut self,
        task: Task,
        written_ns: u64,
        request: u32,
        connection: ConnectionId,
        queue: &mut FlightQueue,
    ) -> FlightId {
        let (older, before) = (self.newest, queue.last);
        let flight = Flight { task, written_ns, connection, request, older, newer: NONE, before, behind: NONE };
        let index = if let Some(index) = self.free.pop() {
            self.all[index.index()] = flight;
            index
        } else {
            self.all.push(flight);
            FlightId((self.all.len() - 1) as u32)
        };
        match older {
            NONE => self.oldest = index,
            older => self.all[older.index()].newer = index,
        }
        self.newest = index;
        match before {
            NONE => queue.first = index,
            before => self.all[before.index()].behind = index,
        }
        queue.last = index;
        queue.length += 1;
        self.length += 1;
        index
    }

    /// Remove a request; `queue` is that of its connection.
    #[inline]
    pub fn remove(&mut self, index: FlightId, queue: &mut FlightQueue) -> Flight {
        let flight = self.all[index.index()];
        match flight.older {
            NONE => self.oldest = flight.newer,
            older => self.all[older.index()].newer = flight.newer,
        }
        match flight.newer {
            NONE => self.newest = flight.older,
            newer => self.all[newer.index()].older = flight.older,
        }
        match flight.before {
            NONE => queue.first = flight.behind,
            before => self.all[before.index()].behind = flight.behind,
        }
        match flight.behind {
            NONE => queue.last = flight.before,
            behind => self.all[behind.index()].before = flight.before,
        }
        queue.length -= 1;
        self.length -= 1;
        self.free.push(index);
        flight
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{FlightQueue, Flights};
    use crate::demand::Task;
    use crate::ids::{ConnectionId, FlightId};

    proptest! {
        /// The oldest of all and the first of each connection, against lists that are searched.
        #[test]
        fn flights_are_ordered_by_age_and_by_connection(
            moves in prop::collection::vec((0_u32..4, any::<bool>(), any::<prop::sample::Index>()), 0..200),
        ) {
            let mut flights = Flights::new();
            let mut queues = [FlightQueue::EMPTY; 4];
            let mut known: Vec<(FlightId, u32, u64)> = Vec::new();
            for (i, (connection, begins, which)) in moves.into_iter().enumerate() {
                let queue = &mut queues[connection as usize];
                let of_queue: Vec<usize> = (0..known.len()).filter(|at| known[*at].1 == connection).collect();
                if begins || of_queue.is_empty() {
                    let task = Task::new(i as u64, 0);
                    let flight = flights.insert(task, 0, 0, ConnectionId(connection), queue);
                    known.push((flight, connection, i as u64));
                } else {
                    let (flight, _, due_ns) = known.remove(of_queue[which.index(of_queue.len())]);
                    prop_assert_eq!(flights.remove(flight, queue).task.due_ns, due_ns);
                }
                prop_assert_eq!(flights.is_empty(), known.is_empty());
                prop_assert_eq!(flights.oldest().map(|flight| flights.get(flight).task.due_ns), known.first().map(|flight| flight.2));
                for (connection, queue) in queues.iter().enumerate() {
                    let mut of_queue = known.iter().filter(|flight| flight.1 == connection as u32);
                    prop_assert_eq!(queue.first(), of_queue.next().map(|flight| flight.0));
                    prop_assert_eq!(queue.len() as usize, known.iter().filter(|f| f.1 == connection as u32).count());
                }
            }
        }
    }
}
