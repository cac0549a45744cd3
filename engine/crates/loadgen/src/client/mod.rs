//! The connections of one worker, and the requests in flight on them.
//!
//! A [`Client`] opens connections, writes requests and handles the events of its backend, and records in an [`Activity`] what
//! happened to requests. It knows nothing of the load: the worker acts on the records.

mod activity;
mod closing;
mod connection;
mod continuing;
mod draws;
mod glimpse;
mod http1;
mod http2;
mod layers;
mod listening;
mod outbox;
mod pending;
mod pool;
mod receiving;
mod requests;
mod scenario;
mod sending;
mod streams;
mod tunnel;
mod visitors;
mod websocket;

pub use self::activity::{Activity, ClientEvent, ClockReading, OpenError, OpenFailure, StreamProgress};
pub use self::draws::TraceIds;
pub use self::pool::ConnectResult;
pub use self::sending::Client;
