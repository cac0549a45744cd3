//! Journeys under way: which step of a user is due next, and when.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use redline_traffic::{JourneyEnd, Outcome};

use crate::by_journey::Mark;
use crate::job::{Journey, RowUse};
use crate::request::{DueRequest, EndedRequest, NEVER, StepKind};

/// The user of a journey of an open load that has none.
pub const NOBODY: u32 = u32::MAX;

/// Separates the draws of think times within journeys from those between them.
const WITHIN: u64 = 0x7769_7468_696e_0000;

/// What a worker's walks need to know of the job.
#[derive(Clone)]
pub struct WalkRules {
    pub journey: Arc<Journey>,
    pub seed: u64,
    /// The number of this worker and of all workers.
    pub worker: u32,
    pub workers: u32,
    /// Journeys begin by a schedule, and take any user that is free.
    pub is_open: bool,
    /// Steps fall due at once, as in a check.
    pub skips_think: bool,
}

impl WalkRules {
    /// A worker's share of a number.
    fn share_of(&self, all: u64) -> u64 {
        let workers = u64::from(self.workers);
        all / workers + u64::from(u64::from(self.worker) < all % workers)
    }

    /// How many users of this worker keep their state from journey to journey.
    pub fn lasting_users(&self) -> u32 {
        if self.journey.lasts() { self.share_of(u64::from(self.journey.users)) as u32 } else { 0 }
    }
}

/// A user's journey.
#[derive(Clone, Copy, Default)]
struct Walk {
    /// The number of the journey among those of this worker: of its think times, with `drawn`.
    number: u32,
    drawn: u32,
    mark: Mark,
    /// The sum of the response times of its steps.
    spent_ns: u64,
    /// The next step, and the step that follows when `once` is taken again.
    next: u16,
    resume: u16,
    kind: StepKind,
    is_under_way: bool,
}

/// What the walks are for.
enum Purpose {
    /// Journeys of a load.
    Journeys,
    /// All users take `once`; so many have not done it yet.
    Once { left: u32 },
    /// A single step of a check.
    Single { is_done: bool },
}

/// The journeys of one worker that are under way.
pub struct Walks {
    rules: WalkRules,
    purpose: Purpose,
    all: Vec<Walk>,
    /// The statuses of answers by user and step, if steps have conditions; 0 for a step that was skipped.
    statuses: Vec<u16>,
    /// In an open load: users without a journey. With `once`, the one that has been free longest is in front.
    free: VecDeque<u32>,
    /// When steps will fall due, and for which user.
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    /// Steps that are due, and wait for a connection.
    waiting: VecDeque<DueRequest>,
    /// How many journeys began, and how many are due and have not ended.
    begun: u64,
    open: u64,
    /// How many more may begin because of rows that are used once.
    rows_left: Option<u64>,
    begins_are_over: bool,
    takes_again: bool,
    /// The steps that were skipped before the last step that fell due.
    skipped: Vec<u16>,
    /// The user and the step whose failure ended `once`, and how.
    pub failed: Option<(u32, u16, Outcome)>,
}

/// What follows the end of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterStep {
    /// Another step falls due later.
    Later,
    /// Another step is due at this time, which is now, and waits.
    Due(u64),
    /// The journey is over.
    Over(JourneyEnd),
    /// A user has done `once`, or failed; or a single step has ended.
    Done,
}

impl Walks {
    /// No journey under way.
    pub fn new(rules: WalkRules) -> Self {
        let rows = rules.journey.rows.as_ref().filter(|rows| rows.r#use == RowUse::Unique);
        let rows_left = rows.map(|rows| rules.share_of(rows.values.len() as u64));
        let lasting = if rules.is_open { rules.lasting_users() } else { 0 };
        let mut walks = Self {
            rules,
            purpose: Purpose::Journeys,
            all: Vec::new(),
            statuses: Vec::new(),
            free: (0..lasting).collect(),
            timers: BinaryHeap::new(),
            waiting: VecDeque::new(),
            begun: 0,
            open: 0,
            rows_left,
            begins_are_over: rows_left == Some(0),
            takes_again: false,
            skipped: Vec::new(),
            failed: None,
        };
        walks.grow_to(lasting);
        walks
    }

    /// All users take `once` now.
    pub fn once(rules: WalkRules, now_ns: u64) -> Self {
        let users = rules.lasting_users();
        let mut walks = Self::new(rules);
        walks.purpose = Purpose::Once { left: users };
        walks.grow_to(users);
        walks.waiting = (0..users).map(|user| DueRequest::new(now_ns, user)).collect();
        walks
    }

    /// The first step of user 0 is due now, then nothing, until [`Self::resume`].
    pub fn single(rules: WalkRules, now_ns: u64) -> Self {
        let mut walks = Self::new(rules);
        walks.purpose = Purpose::Single { is_done: false };
        walks.grow_to(1);
        walks.free.clear();
        walks.open = 1;
        walks.all[0].is_under_way = true;
        walks.all[0].resume = walks.rules.journey.once;
        if walks.rules.journey.once == 0 {
            walks.all[0].kind = StepKind::First;
        }
        walks.timers.push(Reverse((now_ns, 0)));
        walks
    }

    /// The load goes on at this time, after a pause: no step is due before.
    pub fn resume(&mut self, epoch_ns: u64) {
        let timers = std::mem::take(&mut self.timers);
        self.timers = timers.into_iter().map(|Reverse((due_ns, user))| Reverse((due_ns.max(epoch_ns), user))).collect();
        if let Purpose::Single { is_done } = &mut self.purpose {
            *is_done = false;
        }
    }

    /// The users who are on a journey, of which no step is in flight.
    pub fn users_under_way(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.all).filter(|(_, walk)| walk.is_under_way).map(|(user, _)| user)
    }

    /// The marks of the journeys that are under way.
    pub fn marks_under_way(&self) -> impl Iterator<Item = Mark> {
        self.all.iter().filter(|walk| walk.is_under_way).map(|walk| walk.mark)
    }

    fn grow_to(&mut self, users: u32) {
        if self.all.len() < users as usize {
            self.all.resize(users as usize, Walk::default());
            if self.rules.journey.has_conditions {
                self.statuses.resize(users as usize * self.rules.journey.steps.len(), 0);
            }
        }
    }

    /// When the next step falls due.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.timers.peek().map_or(NEVER, |Reverse((due_ns, _))| *due_ns)
    }

    /// The step that falls due next.
    pub fn upcoming(&self) -> Option<DueRequest> {
        let Reverse((due_ns, user)) = *self.timers.peek()?;
        let Walk { next: step, kind, .. } = self.all[user as usize];
        Some(DueRequest { kind, step, ..DueRequest::new(due_ns, user) })
    }

    /// Take the steps that were skipped before the last step that ended, or that is due now.
    pub fn take_skipped(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.skipped)
    }

    /// The next step falls due, and waits.
    pub fn pop_due(&mut self) -> Option<u64> {
        let due = self.upcoming()?;
        self.timers.pop();
        self.waiting.push_back(due);
        Some(due.due_ns)
    }

    /// The user whose step would fall due next has left. Returns the mark of its journey.
    pub fn drop_next(&mut self) -> Option<Mark> {
        let Reverse((_, user)) = self.timers.pop()?;
        Some(self.close(user))
    }

    /// A journey falls due. Returns whether its row is the last.
    pub fn begin(&mut self) -> bool {
        self.open += 1;
        if let Some(left) = &mut self.rows_left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.begins_are_over = true;
                return true;
            }
        }
        false
    }

    /// No further journey begins.
    pub fn end_begins(&mut self) {
        self.begins_are_over = true;
    }

    pub fn begins_are_over(&self) -> bool {
        self.begins_are_over
    }

    /// Whether nothing is left to do.
    pub fn is_done(&self) -> bool {
        match self.purpose {
            Purpose::Journeys => self.begins_are_over && self.open == 0,
            Purpose::Once { left } => left == 0 || self.failed.is_some(),
            Purpose::Single { is_done } => is_done,
        }
    }

    /// Whether waiting for a connection has no limit.
    pub fn is_patient(&self) -> bool {
        matches!(self.purpose, Purpose::Once { .. })
    }

    /// How many of these journeys that wait can begin.
    #[inline]
    pub fn can_begin(&self, waiting: u64) -> u64 {
        if self.rules.is_open && self.rules.journey.lasts() { waiting.min(self.free.len() as u64) } else { waiting }
    }

    /// Steps that wait.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// When the step that has waited longest was due.
    #[inline]
    pub fn oldest_due_ns(&self) -> u64 {
        self.waiting.front().map_or(NEVER, |due| due.due_ns)
    }

    #[inline]
    pub fn take(&mut self) -> Option<DueRequest> {
        self.waiting.pop_front()
    }

    /// A journey that waited begins: its first step is taken from the queue.
    #[inline]
    pub fn set_off(&mut self, due: DueRequest) -> DueRequest {
        let user = if self.rules.is_open { self.free_user() } else { due.user };
        let step = self.rules.journey.once;
        let due = DueRequest { user, kind: StepKind::First, step, ..due };
        if user != NOBODY {
            self.grow_to(user + 1);
            self.all[user as usize] =
                Walk { number: self.begun as u32, resume: step, is_under_way: true, ..Walk::default() };
            self.begun += 1;
        }
        due
    }

    fn free_user(&mut self) -> u32 {
        if self.rules.journey.lasts() {
            return self.free.pop_front().unwrap_or(NOBODY);
        }
        self.free.pop_back().unwrap_or(self.all.len() as u32)
    }

    /// Say whether the journey counts that a user has begun.
    #[inline]
    pub fn mark(&mut self, user: u32, mark: Mark) {
        if let Some(walk) = self.all.get_mut(user as usize) {
            walk.mark = mark;
        }
    }

    pub fn mark_of(&self, user: u32) -> Option<Mark> {
        self.all.get(user as usize).map(|walk| walk.mark)
    }

    /// A step has ended: what follows. `is_present`: whether its user is still there.
    #[inline]
    pub fn ended(&mut self, ended: &EndedRequest, now_ns: u64, end_ns: u64, is_present: bool) -> AfterStep {
        let DueRequest { user, step, kind, due_ns, .. } = ended.due;
        let is_once = matches!(self.purpose, Purpose::Once { .. });
        if let Purpose::Single { is_done } = &mut self.purpose {
            *is_done = true;
        }
        if user == NOBODY {
            self.open -= 1;
            return AfterStep::Over(end_of(ended.outcome, step));
        }
        let status = ended.status.unwrap_or(0);
        self.all[user as usize].spent_ns += now_ns.saturating_sub(due_ns);
        if self.rules.journey.has_conditions {
            let steps = self.rules.journey.steps.len();
            self.statuses[user as usize * steps + step as usize] = status;
        }
        if ended.outcome != Outcome::Ok {
            if is_once {
                self.failed.get_or_insert((user, step, ended.outcome));
                return AfterStep::Done;
            }
            self.close(user);
            return AfterStep::Over(end_of(ended.outcome, step));
        }
        let is_again = kind != StepKind::Repeated && self.rules.journey.asks_again(step, status);
        let (next, kind) = if is_again { (Some(0), StepKind::Again) } else { self.following(user, step) };
        let Some(next) = next else {
            if let Purpose::Once { left } = &mut self.purpose {
                *left -= 1;
                return AfterStep::Done;
            }
            let spent_ns = self.all[user as usize].spent_ns;
            self.close(user);
            return AfterStep::Over(JourneyEnd::Completed(spent_ns));
        };
        if !is_present {
            self.close(user);
            return AfterStep::Over(JourneyEnd::Unfinished);
        }
        if is_again {
            self.all[user as usize].resume = step;
            self.takes_again = true;
        }
        self.set_next(user, next, kind, now_ns, end_ns)
    }

    /// Whether the last step that ended has more to be counted than its own end: see [`Self::each_skipped`] and
    /// [`Self::takes_again`].
    #[inline]
    pub fn has_asides(&self) -> bool {
        self.takes_again || !self.skipped.is_empty()
    }

    /// Pass on the steps that were skipped, but those of a check, which asks for them itself.
    pub fn each_skipped(&mut self, mut pass: impl FnMut(u16)) {
        if !self.skipped.is_empty() && !matches!(self.purpose, Purpose::Single { .. }) {
            self.skipped.drain(..).for_each(&mut pass);
        }
    }

    /// Whether the last answer made its user take `once` again.
    pub fn takes_again(&mut self) -> bool {
        std::mem::take(&mut self.takes_again)
    }

    /// The step after this one. None if that was the last.
    #[inline]
    fn following(&mut self, user: u32, step: u16) -> (Option<u16>, StepKind) {
        let journey = &self.rules.journey;
        let is_once = step < journey.once;
        let end = if is_once { journey.once } else { journey.steps.len() as u16 };
        let mut next = step + 1;
        while journey.has_conditions && next < end && !self.is_met(user, next) {
            self.skipped.push(next);
            self.statuses[user as usize * self.rules.journey.steps.len() + next as usize] = 0;
            next += 1;
        }
        if next < end {
            (Some(next), StepKind::Next)
        } else if is_once && !matches!(self.purpose, Purpose::Once { .. }) {
            let resume = self.all[user as usize].resume;
            // In a check, the first journey begins when `once` is done.
            let begins = matches!(self.purpose, Purpose::Single { .. }) && self.begun == 0;
            self.begun += u64::from(begins);
            (Some(resume), if begins { StepKind::First } else { StepKind::Repeated })
        } else {
            (None, StepKind::Next)
        }
    }

    /// Whether a step's condition is met.
    fn is_met(&self, user: u32, step: u16) -> bool {
        let steps = &self.rules.journey.steps;
        steps[step as usize].when.as_ref().is_none_or(|(earlier, statuses)| {
            statuses.contains(&self.statuses[user as usize * steps.len() + *earlier as usize])
        })
    }

    #[inline]
    fn set_next(&mut self, user: u32, step: u16, kind: StepKind, now_ns: u64, end_ns: u64) -> AfterStep {
        let walk = &mut self.all[user as usize];
        let think = self.rules.journey.steps[step as usize].think;
        let is_first = matches!(kind, StepKind::Again | StepKind::First | StepKind::Repeated);
        let think_ns = if is_first || self.rules.skips_think {
            0
        } else {
            walk.drawn += 1;
            let number = walk.number.wrapping_mul(self.rules.workers).wrapping_add(self.rules.worker);
            think.draw(self.rules.seed ^ WITHIN, number, u64::from(walk.drawn))
        };
        let due_ns = now_ns.saturating_add(think_ns);
        if due_ns > now_ns || due_ns >= end_ns || matches!(self.purpose, Purpose::Single { .. }) {
            (walk.next, walk.kind) = (step, kind);
            self.timers.push(Reverse((due_ns, user)));
            return AfterStep::Later;
        }
        self.waiting.push_back(DueRequest { kind, step, ..DueRequest::new(due_ns, user) });
        AfterStep::Due(due_ns)
    }

    /// A user's journey is over. Returns its mark.
    fn close(&mut self, user: u32) -> Mark {
        let walk = &mut self.all[user as usize];
        walk.is_under_way = false;
        self.open -= 1;
        if self.rules.is_open {
            self.free.push_back(user);
        }
        walk.mark
    }
}

fn end_of(outcome: Outcome, step: u16) -> JourneyEnd {
    match outcome {
        Outcome::InFlight | Outcome::Unsent => JourneyEnd::Unfinished,
        _ => JourneyEnd::Abandoned(step),
    }
}
