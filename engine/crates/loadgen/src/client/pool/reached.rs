//! How far the connections of a load ever came: whether each was open, had a request, and brought an answer.
//!
//! It is noted when a socket ends, and costs nothing while requests are answered.

use redline_traffic::Reach;

use super::Pool;
use crate::client::connection::Connection;
use crate::io::Io;

/// What the sockets of a connection came to.
#[derive(Clone, Copy, Default)]
pub struct Reached {
    pub opened: bool,
    asked: bool,
    answered: bool,
}

impl Reached {
    /// Add what the present socket came to.
    pub fn note(&mut self, connection: &Connection) {
        self.asked |= connection.carried() > 0;
        self.answered |= connection.carried() > 0 && connection.has_answered();
    }

    fn and(mut self, connection: &Connection) -> Reach {
        self.note(connection);
        Reach { opened: self.opened.into(), asked: self.asked.into(), answered: self.answered.into() }
    }
}

impl<I: Io> Pool<I> {
    /// How far the connections ever came.
    pub fn reach(&self) -> Reach {
        self.reached.iter().zip(&self.connections).map(|(past, now)| past.and(now)).fold(Reach::default(), Reach::and)
    }
}
