//! The requests in flight: written, or about to be written, and not yet answered.
//!
//! An array with two linked lists: by age, where the oldest is in front because all have the same timeout; and by connection,
//! in the order in which they were put on it. Every operation is O(1), and memory is reused.

use crate::ids::{ConnectionId, PendingId};
use crate::request::DueRequest;

const NONE: PendingId = PendingId(u32::MAX);

/// A request in flight.
#[derive(Clone, Copy)]
pub struct PendingRequest {
    pub due: DueRequest,
    /// When it was written.
    pub written_ns: u64,
    /// When the first byte of an answer came whose end came later; 0 before.
    pub first_ns: u64,
    /// Its answer is a stream that has begun.
    pub has_streamed: bool,
    pub connection: ConnectionId,
    /// The index of the request in the job.
    pub request: u32,
    older: PendingId,
    newer: PendingId,
    before: PendingId,
    behind: PendingId,
}

/// The pending requests of a connection, first to last.
#[derive(Clone, Copy)]
pub struct PendingQueue {
    first: PendingId,
    last: PendingId,
    length: u32,
}

impl PendingQueue {
    pub const EMPTY: Self = Self { first: NONE, last: NONE, length: 0 };

    #[inline]
    pub fn first(&self) -> Option<PendingId> {
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

pub struct PendingRequests {
    all: Vec<PendingRequest>,
    free: Vec<PendingId>,
    oldest: PendingId,
    newest: PendingId,
    length: usize,
}

impl PendingRequests {
    pub fn new() -> Self {
        Self { all: Vec::new(), free: Vec::new(), oldest: NONE, newest: NONE, length: 0 }
    }

    pub fn get(&self, pending: PendingId) -> &PendingRequest {
        &self.all[pending.index()]
    }

    /// The first byte of its answer came.
    pub fn begin(&mut self, pending: PendingId, now_ns: u64) {
        let first_ns = &mut self.all[pending.index()].first_ns;
        if *first_ns == 0 {
            *first_ns = now_ns;
        }
    }

    /// A stream has begun, whose head was read now and arrived at this time, unless its first byte was read before.
    pub fn begin_stream(&mut self, pending: PendingId, now_ns: u64, arrived_ns: u64) {
        let begun = &mut self.all[pending.index()];
        begun.has_streamed = true;
        if begun.first_ns == 0 || begun.first_ns == now_ns {
            begun.first_ns = arrived_ns;
        }
    }

    /// Remove a request from those that have an age: it never is the oldest again.
    pub fn outlive(&mut self, pending: PendingId) {
        self.leave_ages(pending);
        self.all[pending.index()].older = pending;
    }

    /// Remove a request from the list by age, if it is in it.
    #[inline]
    fn leave_ages(&mut self, index: PendingId) {
        let PendingRequest { older, newer, .. } = self.all[index.index()];
        if older == index {
            return;
        }
        match older {
            NONE => self.oldest = newer,
            older => self.all[older.index()].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.all[newer.index()].older = older,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub fn len(&self) -> usize {
        self.length
    }

    /// The request that was written first.
    pub fn oldest(&self) -> Option<PendingId> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Add a request at the end of both lists.
    #[inline]
    pub fn insert(
        &mut self,
        due: DueRequest,
        written_ns: u64,
        request: u32,
        connection: ConnectionId,
        queue: &mut PendingQueue,
    ) -> PendingId {
        let (older, before) = (self.newest, queue.last);
        let pending = PendingRequest {
            due,
            written_ns,
            first_ns: 0,
            has_streamed: false,
            connection,
            request,
            older,
            newer: NONE,
            before,
            behind: NONE,
        };
        let index = if let Some(index) = self.free.pop() {
            self.all[index.index()] = pending;
            index
        } else {
            self.all.push(pending);
            PendingId((self.all.len() - 1) as u32)
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

    /// Remove a request. `queue` is the queue of its connection.
    #[inline]
    pub fn remove(&mut self, index: PendingId, queue: &mut PendingQueue) -> PendingRequest {
        self.leave_ages(index);
        let pending = self.all[index.index()];
        match pending.before {
            NONE => queue.first = pending.behind,
            before => self.all[before.index()].behind = pending.behind,
        }
        match pending.behind {
            NONE => queue.last = pending.before,
            behind => self.all[behind.index()].before = pending.before,
        }
        queue.length -= 1;
        self.length -= 1;
        self.free.push(index);
        pending
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{PendingQueue, PendingRequests};
    use crate::ids::{ConnectionId, PendingId};
    use crate::request::DueRequest;

    proptest! {
        /// The order by age and by connection, compared with lists that are searched.
        #[test]
        fn pending_requests_are_ordered_by_age_and_by_connection(
            moves in prop::collection::vec((0_u32..4, any::<bool>(), any::<prop::sample::Index>()), 0..200),
        ) {
            let mut requests = PendingRequests::new();
            let mut queues = [PendingQueue::EMPTY; 4];
            let mut known: Vec<(PendingId, u32, u64)> = Vec::new();
            for (i, (connection, begins, which)) in moves.into_iter().enumerate() {
                let queue = &mut queues[connection as usize];
                let of_queue: Vec<usize> = (0..known.len()).filter(|at| known[*at].1 == connection).collect();
                if begins || of_queue.is_empty() {
                    let due = DueRequest::new(i as u64, 0);
                    let id = requests.insert(due, 0, 0, ConnectionId(connection), queue);
                    known.push((id, connection, i as u64));
                } else {
                    let (id, _, due_ns) = known.remove(of_queue[which.index(of_queue.len())]);
                    prop_assert_eq!(requests.remove(id, queue).due.due_ns, due_ns);
                }
                prop_assert_eq!(requests.is_empty(), known.is_empty());
                prop_assert_eq!(requests.oldest().map(|id| requests.get(id).due.due_ns), known.first().map(|first| first.2));
                for (connection, queue) in queues.iter().enumerate() {
                    let mut of_queue = known.iter().filter(|other| other.1 == connection as u32);
                    prop_assert_eq!(queue.first(), of_queue.next().map(|first| first.0));
                    prop_assert_eq!(queue.len() as usize, known.iter().filter(|other| other.1 == connection as u32).count());
                }
            }
        }
    }
}
