//! The closing handshake of each WebSocket (RFC 6455, section 7.1.2), when a load is over.

use std::io;

use super::activity::Activity;
use super::sending::Client;
use crate::io::Io;
use crate::sys::time::now_ns;

/// How long to wait for the close frames of servers.
const LIMIT_NS: u64 = 100_000_000;

impl<I: Io> Client<I> {
    /// Send a close frame on each open WebSocket, and wait a short time for those of the server. No message is in flight.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn close_websockets(&mut self) -> io::Result<()> {
        // What happens now is of no load.
        let mut activity = Activity::default();
        self.pool.close_websockets();
        let mut now = now_ns();
        let until_ns = now.saturating_add(LIMIT_NS);
        while self.pool.has_open_websockets() && now < until_ns {
            self.pool.wait(until_ns)?;
            now = now_ns();
            while let Some(event) = self.pool.next_event() {
                self.handle(event, now, &mut activity);
            }
        }
        Ok(())
    }
}
