//! The states of connections, and the order in which connections entered them.
//!
//! Seven queues over one array of links: every operation is O(1) and allocates nothing.

use crate::ids::ConnectionId;

const NONE: ConnectionId = ConnectionId(u32::MAX);

/// The state of a connection, which is in the queue of its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// Not needed: there are fewer users, or the pool has not grown so far.
    Parked,
    /// To be opened.
    Down,
    /// Closed by the peer while it was idle: to be opened when a request needs it.
    Resting,
    /// Being opened, including its TLS handshake.
    Opening,
    /// Open, without a request.
    Idle,
    /// Open, with requests in flight, and room for more.
    Busy,
    /// Open, without room for more requests.
    Full,
}

#[derive(Clone, Copy)]
struct Links {
    state: ConnectionState,
    previous: ConnectionId,
    next: ConnectionId,
}

#[derive(Clone, Copy)]
struct Queue {
    front: ConnectionId,
    back: ConnectionId,
    length: usize,
}

/// All connections of a worker, by their index.
pub struct ConnectionStates {
    links: Vec<Links>,
    queues: [Queue; 7],
}

impl ConnectionStates {
    /// `connections` connections, all parked.
    pub fn new(connections: usize) -> Self {
        let empty = Queue { front: NONE, back: NONE, length: 0 };
        let mut states = Self { links: Vec::with_capacity(connections), queues: [empty; 7] };
        for connection in 0..connections {
            states.links.push(Links { state: ConnectionState::Parked, previous: NONE, next: NONE });
            states.append(ConnectionId(connection as u32), ConnectionState::Parked);
        }
        states
    }

    pub fn state(&self, connection: ConnectionId) -> ConnectionState {
        self.links[connection.index()].state
    }

    /// The connection that has been in this state for the longest time.
    pub fn front(&self, state: ConnectionState) -> Option<ConnectionId> {
        let front = self.queues[state as usize].front;
        (front != NONE).then_some(front)
    }

    pub fn count(&self, state: ConnectionState) -> usize {
        self.queues[state as usize].length
    }

    /// Put a connection at the back of a state's queue.
    pub fn change(&mut self, connection: ConnectionId, state: ConnectionState) {
        self.unlink(connection);
        self.append(connection, state);
    }

    fn unlink(&mut self, connection: ConnectionId) {
        let Links { state, previous, next } = self.links[connection.index()];
        let queue = &mut self.queues[state as usize];
        queue.length -= 1;
        match previous {
            NONE => queue.front = next,
            previous => self.links[previous.index()].next = next,
        }
        match next {
            NONE => queue.back = previous,
            next => self.links[next.index()].previous = previous,
        }
    }

    fn append(&mut self, connection: ConnectionId, state: ConnectionState) {
        let queue = &mut self.queues[state as usize];
        let previous = queue.back;
        queue.back = connection;
        queue.length += 1;
        match previous {
            NONE => queue.front = connection,
            previous => self.links[previous.index()].next = connection,
        }
        self.links[connection.index()] = Links { state, previous, next: NONE };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::{ConnectionState, ConnectionStates};
    use crate::ids::ConnectionId;

    const STATES: [ConnectionState; 7] = [
        ConnectionState::Parked,
        ConnectionState::Down,
        ConnectionState::Resting,
        ConnectionState::Opening,
        ConnectionState::Idle,
        ConnectionState::Busy,
        ConnectionState::Full,
    ];

    proptest! {
        #[test]
        fn it_is_seven_queues(moves in prop::collection::vec((0_u32..7, 0_usize..7), 0..200)) {
            let mut states = ConnectionStates::new(7);
            let mut queues: [VecDeque<u32>; 7] = Default::default();
            queues[0].extend(0..7);
            for (connection, to) in moves {
                states.change(ConnectionId(connection), STATES[to]);
                for queue in &mut queues {
                    queue.retain(|member| *member != connection);
                }
                queues[to].push_back(connection);
                for (state, queue) in STATES.iter().zip(&queues) {
                    prop_assert_eq!(states.front(*state).map(|front| front.0), queue.front().copied());
                    prop_assert_eq!(states.count(*state), queue.len());
                }
                prop_assert_eq!(states.state(ConnectionId(connection)), STATES[to]);
            }
        }
    }
}
