//! The users of journeys as a client knows them: cookies, values that they took from answers, and rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use redline_traffic::Outcome;
use redline_visitor::{Dropped, Jar, Site};
use redline_wire::{Answer, GivenValue, MOST_KEPT_BODY, MessageText, Pointer, TraceContext, Values, values_in};

use super::draws::Draws;
use crate::ids::GlobalWorkerId;
use crate::job::{Job, Journey, RowUse};
use crate::request::{DueRequest, StepKind};
use crate::sys::time::{now_ns, unix_ns};

/// How many dropped cookies of a user are remembered, to be named.
const MOST_DROPPED: usize = 16;

/// The users of one worker.
pub struct Visitors {
    journey: Arc<Journey>,
    /// The site that each step sees.
    sites: Vec<Site>,
    all: Vec<Visitor>,
    /// The number of this worker, and of all workers.
    worker: u32,
    workers: u32,
    /// How many journeys have begun.
    begun: u64,
    /// The wall clock minus the monotonic clock, in nanoseconds.
    unix_minus_mono_ns: i64,
    /// Whose request is written, of which step, and when, in seconds since 1970.
    user: usize,
    step: usize,
    now_s: i64,
}

#[derive(Default)]
struct Visitor {
    jar: Jar,
    /// The cookies that were dropped, each once, with the number of the request that set it first.
    dropped: Vec<(usize, Dropped)>,
    values: Vec<Value>,
    row: usize,
    /// The target of the last request, which an answer's cookies belong to.
    target: Vec<u8>,
    gathered: Gathered,
}

/// The text of the messages that came in answer to the last request.
#[derive(Default)]
struct Gathered {
    text: Vec<u8>,
    /// How many messages counted, and how the first began that had no part of the text.
    messages: u64,
    first: String,
    is_too_long: bool,
}

/// A value that was taken, if it was.
#[derive(Clone, Default)]
struct Value {
    value: GivenValue,
    is_known: bool,
}

impl Visitors {
    /// None without a journey.
    pub fn of(job: &Job, worker: GlobalWorkerId) -> Option<Box<Self>> {
        let journey = job.journey.clone()?;
        let unix_minus_mono_ns = unix_ns() as i64 - now_ns() as i64;
        let site_of = |host: Option<&str>| Site::new(host.unwrap_or(&job.target.host), job.target.tls.is_some());
        let sites = journey.steps.iter().map(|step| site_of(step.host.as_deref())).collect();
        Some(Box::new(Self {
            journey,
            sites,
            all: Vec::new(),
            worker: worker.0,
            workers: job.shard.all_workers,
            begun: 0,
            unix_minus_mono_ns,
            user: 0,
            step: 0,
            now_s: 0,
        }))
    }

    /// The request of a step that is due. A first step begins a journey.
    #[inline]
    pub fn request_of(&mut self, due: &DueRequest) -> usize {
        if self.all.len() <= due.user as usize {
            self.grow_to(due.user);
        }
        if due.kind == StepKind::First && due.written_ns.is_none() {
            self.begin(due.user as usize);
        }
        self.journey.steps[due.step as usize].request as usize
    }

    fn grow_to(&mut self, user: u32) {
        let rows = self.journey.rows.as_ref().map_or(1, |rows| rows.values.len());
        for user in self.all.len()..=user as usize {
            let values = vec![Value::default(); self.journey.names.len()];
            let row = (user * self.workers as usize + self.worker as usize) % rows;
            self.all.push(Visitor { values, row, ..Visitor::default() });
        }
    }

    fn begin(&mut self, user: usize) {
        let visitor = &mut self.all[user];
        if !self.journey.lasts() {
            visitor.jar.clear();
            visitor.dropped.clear();
            visitor.values.iter_mut().for_each(|value| value.is_known = false);
        }
        if let Some(rows) = self.journey.rows.as_ref().filter(|rows| rows.r#use != RowUse::User) {
            let number = self.begun * u64::from(self.workers) + u64::from(self.worker);
            visitor.row = (number % rows.values.len() as u64) as usize;
        }
        self.begun += 1;
    }

    /// The request of a step is about to be written.
    ///
    /// # Errors
    /// When it needs a value that its user has not.
    #[inline]
    pub fn attend(&mut self, due: &DueRequest, now_ns: u64) -> Result<(), String> {
        self.user = due.user as usize;
        self.step = due.step as usize;
        self.now_s = self.unix_s(now_ns);
        let visitor = &mut self.all[self.user];
        if visitor.gathered.messages > 0 {
            visitor.gathered = Gathered::default();
        }
        let step = &self.journey.steps[due.step as usize];
        match step.needs.iter().find(|name| !visitor.values[**name as usize].is_known) {
            None => Ok(()),
            Some(name) => {
                let name = &self.journey.names[*name as usize];
                Err(format!("there is no value for `{name}`: the step that takes it was not sent"))
            }
        }
    }

    fn unix_s(&self, now_ns: u64) -> i64 {
        (now_ns as i64 + self.unix_minus_mono_ns) / 1_000_000_000
    }

    /// Whether the answer to a step may teach its user anything: cookies, values, or to take `once` again. [`Self::meet`] must be
    /// called with those that may. `head` is what was kept of its head.
    #[inline]
    pub fn learns(&self, due: &DueRequest, head: &[u8]) -> bool {
        !head.is_empty() || !self.journey.steps[due.step as usize].takes.is_empty() || !self.journey.again_at.is_empty()
    }

    /// Messages that count came in answer to a step, with these parts of a text. Those after `until` are left out.
    pub fn gather(&mut self, due: &DueRequest, texts: Vec<MessageText>, until: Option<u64>) {
        let Gathered { text, messages, first, is_too_long } = &mut self.all[due.user as usize].gathered;
        for part in texts {
            if until.is_some_and(|until| *messages >= until) {
                break;
            }
            *messages += 1;
            match part {
                Ok(part) if text.len() + part.len() > MOST_KEPT_BODY => *is_too_long = true,
                Ok(part) => text.extend_from_slice(part.as_bytes()),
                Err(began) if first.is_empty() => *first = began,
                Err(_) => {}
            }
        }
    }

    /// An answer came to a step, with this outcome. Returns the outcome for its user, and what is missing in the answer.
    #[inline(never)]
    pub fn meet(
        &mut self,
        due: &DueRequest,
        answer: &Answer,
        outcome: Outcome,
        head: &[u8],
        body: &[u8],
        now_ns: u64,
    ) -> (Outcome, Option<String>) {
        self.keep_cookies(due, head, now_ns);
        if self.asks_again(due, answer) {
            return (Outcome::Ok, None);
        }
        match outcome {
            Outcome::Ok => match self.take(due, head, body, now_ns) {
                Ok(()) => (outcome, None),
                Err(missing) => (Outcome::UnexpectedBody, Some(missing)),
            },
            _ => (outcome, None),
        }
    }

    /// An answer came to a step: keep its cookies.
    #[inline]
    fn keep_cookies(&mut self, due: &DueRequest, head: &[u8], now_ns: u64) {
        if !self.journey.keeps_cookies {
            return;
        }
        let seconds = self.unix_s(now_ns);
        let Visitor { jar, dropped, target, .. } = &mut self.all[due.user as usize];
        for value in values_in(head, b"set-cookie") {
            if let Some(new) = jar.set(value, target, &self.sites[due.step as usize], seconds)
                && dropped.len() < MOST_DROPPED
                && dropped.iter().all(|(_, known)| *known != new)
            {
                dropped.push((self.journey.steps[due.step as usize].request as usize, new));
            }
        }
    }

    /// Whether an answer makes the user take `once` again.
    #[inline]
    fn asks_again(&self, due: &DueRequest, answer: &Answer) -> bool {
        due.kind != StepKind::Repeated && self.journey.asks_again(due.step, answer.status)
    }

    /// A right answer came to a step: take its values.
    ///
    /// # Errors
    /// When it lacks a value.
    #[inline]
    fn take(&mut self, due: &DueRequest, head: &[u8], body: &[u8], now_ns: u64) -> Result<(), String> {
        let step = &self.journey.steps[due.step as usize];
        if step.takes.is_empty() {
            return Ok(());
        }
        let seconds = self.unix_s(now_ns);
        let Visitor { jar, values, gathered, .. } = &mut self.all[due.user as usize];
        for taken in &step.takes {
            let value = &mut values[taken.name as usize];
            let pointer = taken.take.gathers();
            let body = if pointer.is_some() { &gathered.text } else { body };
            let take = |bytes: &mut _| taken.take.take(head, body, jar, seconds, bytes);
            value.is_known = value.value.change(take) && !(pointer.is_some() && gathered.is_too_long);
            if !value.is_known {
                let name = &self.journey.names[taken.name as usize];
                return Err(match pointer {
                    Some(pointer) => gathered.missing(pointer, name),
                    None => format!("no value at {} for `{name}`", taken.take),
                });
            }
        }
        Ok(())
    }

    /// What else may be why a step failed: the cookies of its user that it was sent without. Steps have the numbers of their
    /// requests, from 1.
    pub fn missing_cookies(&self, due: &DueRequest) -> Vec<String> {
        let Some(Visitor { jar, dropped, target, .. }) = self.all.get(due.user as usize) else {
            return Vec::new();
        };
        // What a step sets itself comes too late for it.
        let own = self.journey.steps[due.step as usize].request as usize;
        let earlier = dropped.iter().filter(|(request, _)| *request != own);
        let dropped = earlier.map(|(request, dropped)| dropped.of_step(request + 1));
        let unsent = jar.unsent(target, &self.sites[due.step as usize], self.now_s);
        dropped.chain(unsent.map(|unsent| unsent.to_string())).collect()
    }

    /// The values that a step has taken, by their names.
    pub fn taken(&self, due: &DueRequest) -> BTreeMap<String, String> {
        let values = self.all.get(due.user as usize).map_or(&[][..], |visitor| &visitor.values);
        let takes = self.journey.steps[due.step as usize].takes.iter();
        let known = takes.filter_map(|taken| {
            let value = values.get(taken.name as usize).filter(|value| value.is_known)?;
            let name = self.journey.names[taken.name as usize].clone();
            Some((name, String::from_utf8_lossy(value.value.bytes()).into_owned()))
        });
        known.collect()
    }
}

impl Gathered {
    /// Why there is no text of this name, in words.
    fn missing(&self, pointer: &Pointer, name: &str) -> String {
        let Self { messages, first, .. } = self;
        match (self.is_too_long, first.as_str()) {
            (true, _) => format!("the text at {pointer} for `{name}` is longer than {MOST_KEPT_BODY} bytes"),
            (false, "") => format!("none of {messages} messages had a text at {pointer} for `{name}`"),
            (false, first) => {
                format!("none of {messages} messages had a text at {pointer} for `{name}`; the first was {first}")
            }
        }
    }
}

/// The values of a step's request.
pub struct VisitorValues<'a> {
    pub draws: &'a mut Draws,
    pub visitors: &'a mut Visitors,
}

impl Values for VisitorValues<'_> {
    fn seq(&mut self) -> u64 {
        self.draws.seq()
    }

    fn between(&mut self, a: i64, b: i64) -> i64 {
        self.draws.between(a, b)
    }

    fn pick(&mut self, n: usize) -> usize {
        self.draws.pick(n)
    }

    fn trace_context(&mut self) -> TraceContext {
        self.draws.trace_context()
    }

    fn taken(&self, index: usize) -> &GivenValue {
        &self.visitors.all[self.visitors.user].values[index].value
    }

    fn cell(&self, index: usize) -> &GivenValue {
        let row = self.visitors.all[self.visitors.user].row;
        &self.visitors.journey.cells(row)[index]
    }

    fn cookies(&mut self, path: &[u8]) -> &[u8] {
        let Visitors { all, user, step, now_s, sites, .. } = &mut *self.visitors;
        let Visitor { jar, target, .. } = &mut all[*user];
        target.clear();
        target.extend_from_slice(path);
        jar.header(path, &sites[*step], *now_s)
    }
}
