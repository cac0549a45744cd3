//! How the server answers requests: when, with what, and with which faults.

use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redline_websocket::Deflate;

use crate::agenda::{Agenda, Due};
use crate::content::Content;
use crate::conversation::{Release, Respondent};
use crate::discipline::Discipline;
use crate::endings::{Ending, Endings};
use crate::faults::Faults;
use crate::report::Report;
use crate::sessions::{Asked, Reply};

/// How the server answers requests.
#[derive(Debug, Clone)]
pub struct Behaviour {
    /// When answers are ready.
    pub discipline: Discipline,
    /// The bodies of answers.
    pub content: Content,
    /// How answers are sent.
    pub faults: Faults,
    /// When connections end.
    pub endings: Endings,
    /// The messages that every WebSocket gets, if its own are not echoed.
    pub pushes: Option<PushTimes>,
    /// How messages on a WebSocket are compressed whose client offers that.
    pub deflate: Option<Deflate>,
    /// How many steps of arithmetic an answer takes.
    pub work: u64,
    /// What is counted, if anything is.
    pub report: Option<Arc<Mutex<Report>>>,
}

impl Behaviour {
    /// Whether an answer may have to wait, so that a clock is needed.
    pub const fn is_timed(&self) -> bool {
        !self.discipline.is_null() || self.faults.delay() || self.report.is_some() || self.pushes.is_some()
    }

    /// What is counted, if anything is.
    pub fn report(&self) -> Option<MutexGuard<'_, Report>> {
        self.report.as_ref().map(|report| report.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same behaviour for another thread.
    pub fn of_thread(&self, index: usize) -> Self {
        let mut behaviour = self.clone();
        behaviour.faults.resets = self.faults.resets.of_thread(index);
        behaviour
    }
}

/// The answers to the requests that arrived on a connection at the same instant.
pub struct Exchange<'a> {
    /// The connection.
    pub token: u64,
    /// The instant; ignored if the behaviour is not timed.
    pub arrival_ns: u64,
    /// When the last answer of the connection falls due.
    pub due_ns: &'a mut u64,
    /// How to answer.
    pub behaviour: &'a mut Behaviour,
    /// Where answers wait.
    pub agenda: &'a mut Agenda,
}

/// When messages are pushed on a WebSocket, and what they say.
#[derive(Debug, Clone, Copy)]
pub struct PushTimes {
    /// How many there are.
    pub count: u64,
    /// From the handshake to the first, and from each to the next.
    pub every_ns: u64,
    /// How much earlier than its time each says that it is.
    pub delay_ns: u64,
    /// How much later than its time every second one is sent.
    pub jitter_ns: u64,
}

impl Respondent for Exchange<'_> {
    fn pushes(&self) -> Option<PushTimes> {
        self.behaviour.pushes
    }

    fn deflate(&self) -> Option<Deflate> {
        self.behaviour.deflate
    }

    fn push(&mut self, after_ns: u64, length: usize) {
        let at_ns = self.arrival_ns + after_ns;
        *self.due_ns = (*self.due_ns).max(at_ns);
        let (arrival_ns, token) = (self.arrival_ns, self.token);
        self.agenda.add(Due { at_ns, arrival_ns, token, stream: 0, length, first: false, last: true });
    }

    #[inline]
    fn reply<'a>(&'a mut self, asked: Asked<'a>) -> Reply<'a> {
        let Behaviour { content, report, .. } = &mut *self.behaviour;
        let reply = content.reply(asked);
        if let Some(report) = report {
            let target = asked.name.split(|&byte| byte == b' ').next().unwrap_or_default();
            let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
            report.asked(target, asked.length, reply.status);
            if !reply.user.is_empty() {
                report.asked_by(reply.user);
            }
        }
        reply
    }

    #[inline]
    fn keeps_bodies(&self) -> bool {
        self.behaviour.content.keeps_bodies()
    }

    #[inline]
    fn resets(&mut self) -> bool {
        let resets = self.behaviour.faults.resets.draw();
        if resets && let Some(mut report) = self.behaviour.report() {
            report.reset += 1;
        }
        resets
    }

    #[inline]
    fn ending(&self, nth: u64) -> Ending {
        self.behaviour.endings.with(nth)
    }

    fn passed_over(&mut self, requests: u64) {
        if let Some(mut report) = self.behaviour.report() {
            report.passed_over += requests;
        }
    }

    fn upgraded(&mut self, name: &[u8], status: u16) {
        if let Some(mut report) = self.behaviour.report() {
            report.asked(name, 0, status);
        }
    }

    fn closed(&mut self, code: u16) {
        if let Some(mut report) = self.behaviour.report() {
            report.closed(code);
        }
    }

    fn message(&mut self, length: usize) {
        if let Some(mut report) = self.behaviour.report() {
            report.message(length as u64);
        }
    }

    #[inline]
    fn release(&mut self, stream: i32, head: usize, body: usize) -> Release {
        work(self.behaviour.work);
        let Behaviour { discipline, faults, report, .. } = &mut *self.behaviour;
        let ready_ns = discipline.completion_ns(self.arrival_ns);
        // What is reported is sent by the agenda, which knows when.
        if ready_ns <= self.arrival_ns && self.agenda.is_empty() && !faults.delay() && report.is_none() {
            return Release::Now;
        }
        // Answers of HTTP/1.1 are sent in the order of their requests (RFC 9112, 9.3.2), and an answer does not begin before the
        // last has ended. Streams do not wait for one another.
        let start_ns = ready_ns + faults.first_byte_after_ns;
        let start_ns = if stream == 0 { start_ns.max(*self.due_ns) } else { start_ns };
        for (index, piece) in faults.pieces(start_ns, head, body).enumerate() {
            *self.due_ns = (*self.due_ns).max(piece.at_ns);
            self.agenda.add(Due {
                at_ns: piece.at_ns,
                arrival_ns: self.arrival_ns,
                token: self.token,
                stream,
                length: piece.length,
                first: index == 0,
                last: piece.last,
            });
        }
        Release::Later
    }
}

/// Takes CPU time: this many steps, each depending on the previous step.
#[inline]
fn work(steps: u64) {
    let mut state = 1_u64;
    for _ in 0..steps {
        // Knuth's multiplier of a linear congruential generator; the hint keeps the loop.
        state = hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// Places for connections of all threads; without a limit none is counted.
#[derive(Debug, Clone, Default)]
pub struct Places(Option<Arc<AtomicUsize>>);

impl Places {
    /// This many places, or as many as the kernel allows.
    pub fn new(at_most: Option<usize>) -> Self {
        Self(at_most.map(|count| Arc::new(AtomicUsize::new(count))))
    }

    /// Takes a place. Returns false when there is none.
    pub fn take(&self) -> bool {
        let one_less = |free: usize| free.checked_sub(1);
        self.0.as_ref().is_none_or(|free| free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok())
    }

    /// Returns a place.
    pub fn give_back(&self) {
        if let Some(free) = &self.0 {
            free.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Behaviour, Exchange, Places};
    use crate::agenda::Agenda;
    use crate::content::Content;
    use crate::conversation::{Release, Respondent as _};
    use crate::discipline::Discipline;
    use crate::endings::Endings;
    use crate::faults::{Faults, Resets};
    use crate::queue::Queue;
    use crate::service::{Law, Service};

    fn behaviour(discipline: Discipline, first_byte_after_ns: u64, body_over_ns: u64) -> Behaviour {
        let resets = Resets::new(0.0, 1);
        let faults =
            Faults { first_byte_after_ns, body_over_ns, rest_after_ns: 0, events: None, bytewise: false, resets };
        Behaviour {
            discipline,
            content: Content::Name,
            faults,
            endings: Endings::default(),
            pushes: None,
            deflate: None,
            work: 0,
            report: None,
        }
    }

    /// When each of `count` answers with a body of one byte is complete, all requested at the same time on a single connection.
    fn ends_ns(behaviour: Behaviour, count: usize) -> Vec<u64> {
        ends_of_ns(behaviour, &vec![0; count])
    }

    /// The same for answers on these streams.
    fn ends_of_ns(mut behaviour: Behaviour, streams: &[i32]) -> Vec<u64> {
        let (mut agenda, mut due_ns) = (Agenda::default(), 0);
        for stream in streams {
            let mut exchange = Exchange {
                token: 1,
                arrival_ns: 100,
                due_ns: &mut due_ns,
                behaviour: &mut behaviour,
                agenda: &mut agenda,
            };
            assert_eq!(exchange.release(*stream, 30, 1), Release::Later);
        }
        let due = std::iter::from_fn(|| agenda.take_due(u64::MAX));
        due.filter(|due| due.last).map(|due| due.at_ns).collect()
    }

    #[test]
    fn faults_add_to_the_time_of_the_discipline() {
        assert_eq!(ends_ns(behaviour(Discipline::Null, 5, 0), 2), [105, 105]);
        assert_eq!(ends_ns(behaviour(Discipline::Null, 5, 7), 3), [112, 119, 126]);
        assert_eq!(ends_ns(behaviour(Discipline::Fixed { delay_ns: 20 }, 5, 7), 1), [132]);
    }

    #[test]
    fn streams_do_not_wait_for_one_another() {
        assert_eq!(ends_of_ns(behaviour(Discipline::Null, 5, 7), &[1, 3, 5]), [112, 112, 112]);
    }

    #[test]
    fn answers_of_one_connection_keep_their_order_with_several_workers() {
        let law = Law::Exponential { mean_ns: 1e6 };
        let queue = || Queue::new(Service::new(law, 9), 4);
        let ends = ends_ns(behaviour(Discipline::Queue(queue()), 0, 0), 50);
        let mut alone = queue();
        let (mut latest_ns, mut overtaken) = (0, false);
        for end_ns in ends {
            let completion_ns = alone.completion_ns(100);
            overtaken |= completion_ns < latest_ns;
            latest_ns = latest_ns.max(completion_ns);
            assert_eq!(end_ns, latest_ns);
        }
        assert!(overtaken);
    }

    #[test]
    fn places_are_as_many_as_there_are() {
        let places = Places::new(Some(1));
        assert!(places.take() && !places.clone().take());
        places.give_back();
        assert!(places.take());
        assert!((0..100).all(|_| Places::new(None).take()));
    }
}
