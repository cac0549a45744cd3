//! What falls due is taken up, and goes out where a connection has room for it.

use super::Worker;
use crate::demand::DueEvent;
use crate::io::Io;

impl<I: Io> Worker<I> {
    /// Everything that is due by now falls due, and goes out when there is a connection for it.
    #[inline]
    pub fn take_up(&mut self) {
        // Those that wait come first: after this nobody waits while a connection has room, so who falls due and finds room
        // has it, and who finds none waits.
        self.dispatch();
        while self.demand.next_due_ns() <= self.now_ns {
            match self.demand.pop_due() {
                DueEvent::Due(due_ns) => self.request_due(due_ns),
                DueEvent::Joined => self.pool.grow(1),
                DueEvent::Left => self.pool.shrink(),
                DueEvent::Nothing => {}
            }
        }
    }

    fn request_due(&mut self, due_ns: u64) {
        self.tally.due(due_ns, self.now_ns);
        self.count_down(due_ns);
        if self.pool.has_room() {
            self.dispatch();
            self.tick();
        } else if self.demand.is_open() {
            self.tally.waited(due_ns);
            self.pool.grow_for(self.demand.waiting());
        }
    }

    /// A measured request fell due: with the last of those that were asked for the measurement ends.
    pub(super) fn count_down(&mut self, due_ns: u64) {
        if let Some(left) = &mut self.count
            && due_ns >= self.measure_ns
        {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.end_at(self.now_ns.max(due_ns + 1));
                // Others may be due at the same moment: they are too many.
                self.demand.cut(0);
            }
        }
    }

    /// As long as a request waits and a connection has room, the first goes out. A closed load's users have their own
    /// connections, so that one is filled before the next; an open load's requests are spread.
    pub(super) fn dispatch(&mut self) {
        while self.demand.waiting() > 0 {
            let Some(connection) = self.pool.next_with_room() else {
                return;
            };
            let room = self.pool.room(connection);
            let burst = if self.demand.is_open() { room.min(1) } else { room };
            for _ in 0..burst {
                let Some(task) = self.demand.take() else {
                    break;
                };
                self.put(connection, task);
            }
            self.pool.settle(connection);
            self.flush(connection);
            if self.demand.waiting() > 0 {
                self.tick();
            }
        }
    }
}
