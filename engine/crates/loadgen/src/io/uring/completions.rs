//! What the kernel says of operations, as events.

use std::io;

use io_uring::cqueue;

use super::operations::{GENERATIONS, Kind};
use super::{BATCH, Uring};
use crate::io::{Chunk, Event};
use crate::sys::socket::is_to_itself;

impl Uring {
    pub(super) fn take_batch(&mut self) {
        self.batch.clear();
        self.next = 0;
        self.batch.extend(self.ring.completion().take(BATCH));
    }

    /// What a completion means; `None` when it is nothing to tell.
    pub(super) fn take(&mut self, completion: &cqueue::Entry) -> Option<Event> {
        let user_data = completion.user_data();
        let connection = user_data as u32;
        let kind = Kind::of(user_data);
        if kind == Kind::Timer {
            self.timer_ns = u64::MAX;
            return None;
        }
        if kind == Kind::Wake {
            // Once is enough: whoever asks to stop asks for good.
            return Some(Event::Woken);
        }
        let slot = &mut self.slots[connection as usize];
        if slot.generation != (user_data >> 32) as u32 & GENERATIONS {
            self.give_back_unused(completion);
            return None;
        }
        if kind != Kind::QuietSend && !cqueue::more(completion.flags()) {
            slot.pending = slot.pending.saturating_sub(1);
        }
        match kind {
            Kind::Connect => Some(self.connected(connection, completion.result())),
            Kind::Receive => self.received(connection, completion),
            _ => Some(match completion.result() {
                taken @ 0.. => Event::Taken(connection, taken as usize),
                error => Event::Unwritable(connection, io::Error::from_raw_os_error(-error)),
            }),
        }
    }

    /// Bytes of a socket that is closed.
    fn give_back_unused(&mut self, completion: &cqueue::Entry) {
        if let Some(buffer) = cqueue::buffer_select(completion.flags()) {
            self.buffers.give_back(buffer);
        }
    }

    fn connected(&mut self, connection: u32, result: i32) -> Event {
        if result < 0 {
            return Event::Refused(connection, io::Error::from_raw_os_error(-result));
        }
        let to_itself = self.slots[connection as usize].stream.as_ref().is_none_or(is_to_itself);
        if to_itself {
            return Event::Refused(connection, io::Error::from_raw_os_error(libc::ECONNREFUSED));
        }
        match self.receive(connection) {
            Ok(()) => Event::Opened(connection),
            Err(error) => Event::Refused(connection, error),
        }
    }

    fn received(&mut self, connection: u32, completion: &cqueue::Entry) -> Option<Event> {
        let (result, flags) = (completion.result(), completion.flags());
        let out_of_buffers = result == -libc::ENOBUFS;
        if (result > 0 || out_of_buffers)
            && !cqueue::more(flags)
            && let Err(error) = self.receive(connection)
        {
            self.give_back_unused(completion);
            return Some(Event::Broken(connection, error));
        }
        match result {
            1.. => {
                let buffer = cqueue::buffer_select(flags)?;
                // SAFETY: the buffer is the kernel's no more until it is given back, and does not move.
                let chunk = unsafe { Chunk::new(self.buffers.filled(buffer, result as usize), buffer) };
                Some(Event::Received { connection, chunk, more: cqueue::sock_nonempty(flags) })
            }
            0 => {
                self.give_back_unused(completion);
                Some(Event::Ended(connection))
            }
            _ if out_of_buffers => None,
            error => Some(Event::Broken(connection, io::Error::from_raw_os_error(-error))),
        }
    }
}
