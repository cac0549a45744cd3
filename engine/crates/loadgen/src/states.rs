//! Which connection is in which state, and in which order they came there.
//!
//! Six queues over one array of links: every move is O(1) and allocates nothing.

const NONE: u32 = u32::MAX;

/// The state of a connection. It is in the queue of its state, and in no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not wanted now: there are fewer users, or the pool has not grown so far.
    Parked,
    /// Not open, and nobody is opening it.
    Down,
    /// Being opened, its handshake included.
    Opening,
    /// Open, without a request.
    Idle,
    /// Open, with requests in flight, and room for more.
    Busy,
    /// Open, and no more requests can be put on it for now.
    Full,
}

#[derive(Clone, Copy)]
struct Links {
    state: State,
    previous: u32,
    next: u32,
}

#[derive(Clone, Copy)]
struct Queue {
    front: u32,
    back: u32,
    length: usize,
}

/// All connections of a worker, by their index.
pub struct ConnectionStates {
    links: Vec<Links>,
    queues: [Queue; 6],
}

impl ConnectionStates {
    /// `connections` connections, all parked.
    pub fn new(connections: usize) -> Self {
        let empty = Queue { front: NONE, back: NONE, length: 0 };
        let mut roster = Self { links: Vec::with_capacity(connections), queues: [empty; 6] };
        for connection in 0..connections {
            roster.links.push(Links { state: State::Parked, previous: NONE, next: NONE });
            roster.append(connection as u32, State::Parked);
        }
        roster
    }

    pub fn state(&self, connection: u32) -> State {
        self.links[connection as usize].state
    }

    /// The one that has been in this state for the longest time.
    pub fn front(&self, state: State) -> Option<u32> {
        let front = self.queues[state as usize].front;
        (front != NONE).then_some(front)
    }

    pub fn length(&self, state: State) -> usize {
        self.queues[state as usize].length
    }

    /// Put a connection at the back of a state's queue.
    pub fn change(&mut self, connection: u32, state: State) {
        self.unlink(connection);
        self.append(connection, state);
    }

    fn unlink(&mut self, connection: u32) {
        let Links { state, previous, next } = self.links[connection as usize];
        let queue = &mut self.queues[state as usize];
        queue.length -= 1;
        match previous {
            NONE => queue.front = next,
            previous => self.links[previous as usize].next = next,
        }
        match next {
            NONE => queue.back = previous,
            next => self.links[next as usize].previous = previous,
        }
    }

    fn append(&mut self, connection: u32, state: State) {
        let queue = &mut self.queues[state as usize];
        let previous = queue.back;
        queue.back = connection;
        queue.length += 1;
        match previous {
            NONE => queue.front = connection,
            previous => self.links[previous as usize].next = connection,
        }
        self.links[connection as usize] = Links { state, previous, next: NONE };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::{ConnectionStates, State};

    const STATES: [State; 6] = [State::Parked, State::Down, State::Opening, State::Idle, State::Busy, State::Full];

    proptest! {
        #[test]
        fn it_is_six_queues(moves in prop::collection::vec((0_u32..7, 0_usize..6), 0..200)) {
            let mut roster = ConnectionStates::new(7);
            let mut queues: [VecDeque<u32>; 6] = Default::default();
            queues[0].extend(0..7);
            for (connection, to) in moves {
                roster.change(connection, STATES[to]);
                for queue in &mut queues {
                    queue.retain(|member| *member != connection);
                }
                queues[to].push_back(connection);
                for (state, queue) in STATES.iter().zip(&queues) {
                    prop_assert_eq!(roster.front(*state), queue.front().copied());
                    prop_assert_eq!(roster.length(*state), queue.len());
                }
                prop_assert_eq!(roster.state(connection), STATES[to]);
            }
        }
    }
}
