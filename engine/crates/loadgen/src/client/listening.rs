//! Each WebSocket whose user only listens: each request opens one, and the messages on it are a stream.

use redline_http2::End;
use redline_websocket::{Role, Session};
use redline_wire::KeptFields;

use super::activity::{Activity, ClientEvent, OpenError};
use super::sending::Client;
use crate::ids::ConnectionId;
use crate::io::Io;
use crate::sys::random::random_number;

/// What came after the answer that opened a WebSocket, and why nothing more comes, if that is known already.
pub(super) struct Rest {
    pub bytes: Vec<u8>,
    pub end: Option<End>,
}

impl<I: Io> Client<I> {
    /// The server answers the handshake of a request. Returns what came after its answer once the WebSocket is open.
    pub(super) fn listen(
        &mut self,
        connection: ConnectionId,
        bytes: &[u8],
        now_ns: u64,
        activity: &mut Activity,
    ) -> Result<Option<Rest>, OpenError> {
        let reader = self.pool.connection_mut(connection);
        let Some(pending) = reader.first_pending() else {
            return Ok(None);
        };
        let (Some(websocket), Some(mut layers)) = (self.requests.listens_on(pending).cloned(), reader.take_layers())
        else {
            return Ok(None);
        };
        let (opened, end) = match layers.feed_handshake(bytes, &websocket) {
            Ok(Some(opened)) => opened,
            waits => {
                reader.set_layers(layers);
                self.requests.begin(pending, now_ns);
                return waits.map(|_| None);
            }
        };
        let asked_ns = self.requests.written_ns(pending);
        activity.events.push(ClientEvent::Upgraded(now_ns.saturating_sub(asked_ns)));
        layers.handshake = None;
        layers.greeting_left = websocket.greeting;
        layers.websocket = Some(Session::new(Role::Client, random_number()).compressing(opened.deflate));
        layers.record = self.pool.record_of(&opened.head);
        if self.requests.read_options(pending).fields != KeptFields::None {
            layers.head = opened.head;
        }
        let writer = self.pool.connection_mut(connection);
        writer.set_layers(layers);
        self.requests.begin_listening(pending, writer, now_ns, activity);
        self.write(connection, now_ns, activity);
        Ok(Some(Rest { bytes: opened.rest, end }))
    }
}
