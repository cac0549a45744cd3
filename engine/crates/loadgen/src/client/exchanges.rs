//! The requests in flight of a worker: how they begin, and how they end.
//!
//! It knows nothing of sockets and protocols. Who calls it has the connection of each request at hand.

use redline_traffic::Outcome;
use redline_wire::{Answer, ReadOptions, Verdict};

use super::activity::{Activity, ClientEvent, ClockReading, Completion};
use super::connection::Connection;
use super::flights::{Flight, Flights};
use super::scenario::Scenario;
use crate::demand::Task;
use crate::first_failures::Cause;
use crate::ids::{ConnectionId, FlightId};
use crate::sys::time::unix_ns;

/// How often a request may be written without an answer before it has failed, not counting what the server announced.
const MOST_TRIES: u8 = 2;

/// The requests in flight, and what the job says of them.
pub struct Exchanges {
    flights: Flights,
    scenario: Scenario,
}

impl Exchanges {
    pub fn new(scenario: Scenario) -> Self {
        Self { flights: Flights::new(), scenario }
    }

    pub fn len(&self) -> usize {
        self.flights.len()
    }

    pub fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// The request that was written first of all.
    pub fn oldest(&self) -> Option<FlightId> {
        self.flights.oldest()
    }

    /// When a request was written.
    pub fn written_ns(&self, flight: FlightId) -> u64 {
        self.flights.get(flight).written_ns
    }

    pub fn connection_of(&self, flight: FlightId) -> ConnectionId {
        self.flights.get(flight).connection
    }

    /// How the answer to a request is read.
    #[inline]
    pub fn read_options(&self, flight: FlightId) -> ReadOptions {
        self.scenario.read_options(self.flights.get(flight).request as usize)
    }

    /// Put a request on a connection, which has this number.
    ///
    /// # Errors
    /// The task, and why it could not be encoded: nothing of it was written.
    #[inline]
    pub fn put(
        &mut self,
        mut task: Task,
        number: ConnectionId,
        connection: &mut Connection,
        now_ns: u64,
    ) -> Result<(), (Task, String)> {
        let request = self.scenario.draw(&mut task);
        connection.count_request();
        let flight = self.flights.insert(task, now_ns, request as u32, number, connection.queue_mut());
        self.scenario.write(request, flight, connection).map_err(|why| {
            connection.refuse_requests();
            (self.remove(flight, connection).task, why)
        })
    }

    /// A request is no longer in flight: it has an answer, which is to be judged.
    #[inline]
    pub fn remove(&mut self, flight: FlightId, connection: &mut Connection) -> Flight {
        self.flights.remove(flight, connection.queue_mut())
    }

    /// Judge the answer to a request, and record its end. `cause` is asked what an answer that is wrong looks like.
    #[inline]
    pub fn judge(
        &self,
        flight: &Flight,
        answer: &Answer,
        body: &[u8],
        cause: impl FnOnce(String) -> Cause,
        now_ns: u64,
        activity: &mut Activity,
    ) {
        let Flight { task, written_ns, request, .. } = *flight;
        let judged = self.scenario.judge(request as usize, answer, body);
        if let Some(clock_ns) = judged.clock_ns {
            let (ours_ns, theirs_ns) = (i128::from(unix_ns()), i128::from(clock_ns));
            let since_written_ns = i128::from(now_ns.saturating_sub(written_ns));
            activity.events.push(ClientEvent::Clock(ClockReading {
                due_ns: task.due_ns,
                to_server_ns: theirs_ns - (ours_ns - since_written_ns),
                from_server_ns: ours_ns - theirs_ns,
            }));
        }
        let outcome = match judged.verdict {
            Verdict::Right => Outcome::Ok,
            Verdict::WrongStatus => Outcome::UnexpectedStatus,
            Verdict::WrongBody => Outcome::UnexpectedBody,
        };
        if outcome != Outcome::Ok {
            let reason = || cause(self.scenario.difference(request as usize, answer, body));
            activity.failures.note(outcome, now_ns, reason);
        }
        let (status, grpc_status) = (Some(answer.status), answer.grpc_status);
        let completion = Completion { task, written_ns: Some(written_ns), outcome, status, grpc_status };
        activity.events.push(ClientEvent::Ended(completion));
    }

    /// A request ends without a complete answer.
    pub fn fail(&mut self, flight: FlightId, connection: &mut Connection, outcome: Outcome, activity: &mut Activity) {
        let Flight { task, written_ns, .. } = self.remove(flight, connection);
        let completion = Completion { task, written_ns: Some(written_ns), outcome, status: None, grpc_status: None };
        activity.events.push(ClientEvent::Ended(completion));
    }

    /// All requests on a connection end with this outcome.
    pub fn fail_all(&mut self, connection: &mut Connection, outcome: Outcome, activity: &mut Activity) {
        while let Some(flight) = connection.first_flight() {
            self.fail(flight, connection, outcome, activity);
        }
    }

    /// A request is to be written again; it fails with this outcome and reason when it was written too often.
    pub fn retry(
        &mut self,
        flight: FlightId,
        connection: &mut Connection,
        (outcome, reason): (Outcome, &str),
        now_ns: u64,
        activity: &mut Activity,
    ) {
        if self.flights.get(flight).task.tries >= MOST_TRIES {
            activity.failures.note(outcome, now_ns, || Cause::words(reason));
            return self.fail(flight, connection, outcome, activity);
        }
        let Flight { task, written_ns, .. } = self.remove(flight, connection);
        let task = Task { tries: task.tries + 1, written_ns: Some(written_ns), ..task };
        activity.events.push(ClientEvent::Retry(task));
    }

    /// A request is to be written again, because its server announced that it would not process it. That is no failure, however
    /// often it happens: such a connection has an answer for another request.
    pub fn resend(&mut self, flight: FlightId, connection: &mut Connection, activity: &mut Activity) {
        let Flight { task, written_ns, .. } = self.remove(flight, connection);
        activity.events.push(ClientEvent::Resend(Task { written_ns: Some(written_ns), ..task }));
    }
}
