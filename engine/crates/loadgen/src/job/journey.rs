//! The journey of a job: steps that a user takes in order, with values from answers and from rows.

use redline_pacing::{Arrivals, Think};
use redline_traffic::EngineError;
use redline_visitor::Take;
use redline_wire::{GivenValue, KeptFields, Pointer};
use serde::Deserialize;

use super::load::RawThink;
use super::requests::RawRequest;
use super::{Load, Shape, bad};

/// The most steps of a journey.
const MOST_STEPS: usize = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawJourney {
    #[serde(default)]
    once: Vec<RawStep>,
    #[serde(default)]
    again_at: Vec<u16>,
    steps: Vec<RawStep>,
    #[serde(default)]
    rows: Option<RawRows>,
    #[serde(default)]
    cookies: bool,
    #[serde(default)]
    users: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    request: u32,
    #[serde(default)]
    think: Option<RawThink>,
    #[serde(default)]
    when: Option<RawWhen>,
    #[serde(default)]
    take: Vec<RawTake>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWhen {
    step: usize,
    status: Vec<u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTake {
    name: String,
    from: RawPlace,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum RawPlace {
    Json(String),
    Header(String),
    Cookie(String),
    Regex(String),
    Text(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRows {
    columns: Vec<String>,
    values: Vec<Vec<String>>,
    r#use: RowUse,
}

/// Who gets which row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowUse {
    /// Every user has a row of its own.
    User,
    /// Every journey gets the next row, and the first after the last.
    Turn,
    /// Every journey gets the next row, until there are no more.
    Unique,
}

/// The journey of a job.
#[derive(Clone, Debug)]
pub struct Journey {
    /// Those of `once`, then the others. Positions in this list are the numbers of steps.
    pub steps: Vec<Step>,
    /// How many of the steps are of `once`: the number of a journey's first step.
    pub once: u16,
    /// The statuses at which a user takes `once` again.
    pub again_at: Vec<u16>,
    pub rows: Option<Rows>,
    /// Users send the cookies that they were given.
    pub cookies: bool,
    /// Users remember cookies: to send them, or to take values from them.
    pub keeps_cookies: bool,
    /// The names of values that are taken from answers.
    pub names: Vec<String>,
    /// How many users take the journeys of an open load with `once`, in turn.
    pub users: u32,
    /// Whether any step has a condition.
    pub has_conditions: bool,
}

/// A step of a journey.
#[derive(Clone, Debug)]
pub struct Step {
    /// The index of its request in the job.
    pub request: u32,
    /// The host that the request names, if it is another than the target's.
    pub host: Option<String>,
    /// The time between the answer before it and its due time.
    pub think: Think,
    /// The step is sent only if this earlier step was sent and answered with one of these statuses.
    pub when: Option<(u16, Vec<u16>)>,
    /// What is taken from its answer.
    pub takes: Vec<Taken>,
    /// Indexes of the names whose values its request needs.
    pub needs: Vec<u32>,
}

/// A value that is taken from an answer.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The index of its name.
    pub name: u32,
    pub take: Take,
}

/// Rows of values for placeholders.
#[derive(Clone, Debug)]
pub struct Rows {
    pub columns: Vec<String>,
    pub values: Vec<Vec<GivenValue>>,
    pub r#use: RowUse,
}

/// What is kept of answers so that values can be taken from them.
#[derive(Clone, Default)]
pub struct Keeps {
    pub body: bool,
    /// Where messages have parts of texts that are gathered.
    pub texts: Vec<Pointer>,
    pub fields: KeptFields,
}

impl Keeps {
    /// Refuse what cannot be taken from an answer that is a stream, or is none.
    pub fn check(&self, place: &str, is_stream: bool) -> Result<(), EngineError> {
        let (message, hint) = match (is_stream, self.texts.as_slice()) {
            (true, _) if self.body => ("the body of a stream is not kept", "take a text, a header or a cookie of it"),
            (false, [_, ..]) => {
                ("a text is gathered from messages, and this is no stream", "give `stream`, or take json")
            }
            (true, [first, rest @ ..]) if rest.iter().any(|other| other != first) => {
                ("one text is gathered of a stream", "take a single text")
            }
            _ => return Ok(()),
        };
        Err(bad(place, message, hint))
    }
}

impl Journey {
    /// Whether an answer with this status to this step makes the user take `once` again.
    #[inline]
    pub fn asks_again(&self, step: u16, status: u16) -> bool {
        !self.again_at.is_empty() && step >= self.once && self.again_at.contains(&status)
    }

    /// What must be kept of the answers to a request, besides what its expectation needs.
    pub fn keeps(&self, request: usize) -> Keeps {
        let steps = self.steps.iter().filter(|step| step.request as usize == request);
        let takes = || steps.clone().flat_map(|step| &step.takes);
        Keeps {
            body: takes().any(|taken| taken.take.reads_body()),
            texts: takes().filter_map(|taken| taken.take.gathers()).cloned().collect(),
            fields: if takes().any(|taken| taken.take.reads_fields()) {
                KeptFields::All
            } else if self.keeps_cookies {
                KeptFields::SetCookie
            } else {
                KeptFields::None
            },
        }
    }

    /// The columns of the rows.
    pub fn columns(&self) -> &[String] {
        self.rows.as_ref().map_or(&[], |rows| &rows.columns)
    }

    /// The cells of a row; none without rows.
    pub fn cells(&self, row: usize) -> &[GivenValue] {
        self.rows.as_ref().map_or(&[], |rows| &rows.values[row])
    }

    /// Whether the state of a user lasts from journey to journey.
    pub fn lasts(&self) -> bool {
        self.once > 0
    }
}

impl RawJourney {
    /// The journey of a single user, as in a check.
    pub fn for_one_user(self) -> Self {
        Self { users: None, ..self }
    }

    /// Validate the journey, for a load by this many workers in all.
    pub fn check(
        self,
        requests: &[RawRequest],
        load: &Load,
        workers: u32,
        is_duet: bool,
    ) -> Result<Journey, EngineError> {
        check_load(load)?;
        if self.steps.is_empty() {
            return Err(bad("journey.steps", "there is none", "give at least one step"));
        }
        if self.once.len() + self.steps.len() > MOST_STEPS {
            return Err(bad("journey.steps", &format!("there are more than {MOST_STEPS}"), "take fewer"));
        }
        if self.once.is_empty() && !self.again_at.is_empty() {
            let hint = "give the steps that a user takes again, or leave it out";
            return Err(bad("journey.again_at", "there is no `once`", hint));
        }
        let users = self.check_users(load, workers)?;
        let once = self.once.len();
        let rows = self.rows.map(|rows| rows.check(load, once > 0, users, is_duet)).transpose()?;
        let columns = rows.as_ref().map_or(&[][..], |rows| &rows.columns);
        let mut names: Vec<String> = Vec::new();
        let mut steps: Vec<Step> = Vec::new();
        let lists = [("once", self.once), ("steps", self.steps)];
        for (list, raw) in lists {
            let first = steps.len();
            for (i, step) in raw.into_iter().enumerate() {
                let place = format!("journey.{list}[{i}]");
                let step = step.check(&place, first, i, requests, &mut names)?;
                let request = &requests[step.request as usize];
                let uses_own_rows = rows.as_ref().is_some_and(|rows| rows.r#use == RowUse::User);
                let step = needs(step, request, &names, columns, list == "steps" || uses_own_rows)?;
                steps.push(step);
            }
        }
        // A step cannot need what only itself or later steps take.
        check_order(&steps, once, &names)?;
        Ok(Journey {
            once: once as u16,
            again_at: self.again_at,
            rows,
            cookies: self.cookies,
            keeps_cookies: self.cookies
                || steps.iter().flat_map(|step| &step.takes).any(|taken| matches!(taken.take, Take::Cookie(_))),
            names,
            users,
            has_conditions: steps.iter().any(|step| step.when.is_some()),
            steps,
        })
    }

    /// How many users there are, in a closed load, or an open load with `once`.
    fn check_users(&self, load: &Load, workers: u32) -> Result<u32, EngineError> {
        let most = load.connections();
        let is_open = matches!(load.shape, Shape::Open { .. });
        if !is_open || self.once.is_empty() {
            if self.users.is_some() {
                let hint = "leave it out: a closed load has its users, and journeys without `once` are of new visitors";
                return Err(bad("journey.users", "is only for an open load with `once`", hint));
            }
            return Ok(most);
        }
        let users = self.users.unwrap_or(most);
        if users < workers || users > 10_000_000 {
            let message = format!("{users} is not between {workers} and 10000000");
            return Err(bad("journey.users", &message, "each worker needs a user"));
        }
        Ok(users)
    }
}

/// Refuse loads that have no steps.
fn check_load(load: &Load) -> Result<(), EngineError> {
    match &load.shape {
        Shape::Closed { .. } if load.depth > 1 => {
            let message = "a user takes the steps of a journey one after the other";
            Err(bad("load.closed.depth", message, "leave out `depth`, or the journey"))
        }
        Shape::Open { arrivals: Arrivals::Replayed(_), .. } => {
            let message = "recorded requests are not the steps of a journey";
            Err(bad("load.open.arrivals", message, "give `uniform` or `poisson`, or leave out the journey"))
        }
        _ => Ok(()),
    }
}

impl RawStep {
    /// Validate a step. `first` is the number of the first step of its list, `i` its index in that list.
    fn check(
        self,
        place: &str,
        first: usize,
        i: usize,
        requests: &[RawRequest],
        names: &mut Vec<String>,
    ) -> Result<Step, EngineError> {
        if self.request as usize >= requests.len() {
            let message = format!("{} is not the number of a request", self.request);
            return Err(bad(&format!("{place}.request"), &message, "requests are numbered from 0"));
        }
        if i == 0 && self.think.is_some() {
            let hint = "leave it out: the `think` of the load is the time between journeys";
            return Err(bad(&format!("{place}.think"), "no answer comes before the first step", hint));
        }
        let when = self.when.map(|when| when.check(&format!("{place}.when"), first, i)).transpose()?;
        let mut takes = Vec::new();
        for (number, raw) in self.take.into_iter().enumerate() {
            takes.push(raw.check(&format!("{place}.take[{number}]"), names)?);
        }
        let think = RawThink::check(self.think.as_ref(), &format!("{place}.think"))?;
        let host = requests[self.request as usize].named_host().map(str::to_owned);
        Ok(Step { request: self.request, host, think, when, takes, needs: Vec::new() })
    }
}

impl RawWhen {
    fn check(self, place: &str, first: usize, i: usize) -> Result<(u16, Vec<u16>), EngineError> {
        if self.step >= i {
            let message = format!("{} is not an earlier step of this list", self.step);
            return Err(bad(&format!("{place}.step"), &message, "steps are numbered from 0"));
        }
        if self.status.is_empty() {
            return Err(bad(&format!("{place}.status"), "is an empty list", "give at least one status"));
        }
        Ok(((first + self.step) as u16, self.status))
    }
}

impl RawTake {
    fn check(self, place: &str, names: &mut Vec<String>) -> Result<Taken, EngineError> {
        if self.name.is_empty() || self.name.contains(['{', '}']) {
            return Err(bad(&format!("{place}.name"), "is empty, or has braces", "give a name for `{take:NAME}`"));
        }
        let take = match &self.from {
            RawPlace::Json(pointer) => Take::json(pointer).map_err(|why| ("json", why)),
            RawPlace::Header(name) => Ok(Take::header(name)),
            RawPlace::Cookie(name) => Ok(Take::cookie(name)),
            RawPlace::Text(pointer) => Take::text(pointer).map_err(|why| ("text", why)),
            RawPlace::Regex(expression) => Take::regex(expression).map_err(|why| ("regex", why)),
        };
        let take = take.map_err(|(key, why)| {
            let hint = "give a JSON Pointer (RFC 6901), or a regular expression of the `regex` crate";
            bad(&format!("{place}.from.{key}"), &why.to_string(), hint)
        })?;
        let name = names.iter().position(|known| *known == self.name).unwrap_or_else(|| {
            names.push(self.name);
            names.len() - 1
        });
        Ok(Taken { name: name as u32, take })
    }
}

impl RawRows {
    fn check(self, load: &Load, once: bool, users: u32, is_duet: bool) -> Result<Rows, EngineError> {
        if self.columns.is_empty() || self.values.is_empty() {
            return Err(bad("journey.rows", "there is no column, or no row", "give both, or leave it out"));
        }
        if let Some(i) = self.values.iter().position(|row| row.len() != self.columns.len()) {
            let message = format!("{} values for {} columns", self.values[i].len(), self.columns.len());
            return Err(bad(&format!("journey.rows.values[{i}]"), &message, "give a value for each column"));
        }
        if let Some(i) = (1..self.columns.len()).find(|i| self.columns[..*i].contains(&self.columns[*i])) {
            return Err(bad(&format!("journey.rows.columns[{i}]"), "is there twice", "name columns differently"));
        }
        match self.r#use {
            RowUse::User if matches!(load.shape, Shape::Open { .. }) && !once => {
                let message = "journeys of an open load without `once` are of new visitors";
                return Err(bad("journey.rows.use", message, "use `turn` or `unique`, or give `once`"));
            }
            RowUse::User if self.values.len() < users as usize => {
                let message = format!("{} rows for {users} users", self.values.len());
                return Err(bad("journey.rows.values", &message, "give a row for each user, or use `turn`"));
            }
            RowUse::Unique if is_duet => {
                let message = "a duet ends by time, not when its rows are used up";
                return Err(bad("journey.rows.use", message, "use `user` or `turn`, or leave out the duet"));
            }
            _ => {}
        }
        let cells = |row: Vec<String>| row.into_iter().map(|cell| cell.into_bytes().into()).collect();
        let values = self.values.into_iter().map(cells).collect();
        Ok(Rows { columns: self.columns, values, r#use: self.r#use })
    }
}

/// Add what a step's request needs. `rows_known`: the user has a row when it takes the step.
fn needs(
    mut step: Step,
    request: &RawRequest,
    names: &[String],
    columns: &[String],
    rows_known: bool,
) -> Result<Step, EngineError> {
    let place = format!("requests[{}]", step.request);
    for text in request.texts() {
        for name in placeholders(text, "{row:") {
            if !columns.iter().any(|column| column == name) {
                let message = format!("{{row:{name}}}: the journey's rows have no such column");
                return Err(bad(&place, &message, "give the column in `journey.rows`"));
            }
            if !rows_known {
                let message = format!("{{row:{name}}} in `once`, where only users have rows");
                return Err(bad(&place, &message, "set `journey.rows.use` to `user`"));
            }
        }
        for name in placeholders(text, "{take:") {
            // Names of later steps are not known here; `check_order` finds them missing.
            if let Some(known) = names.iter().position(|known| known == name) {
                step.needs.push(known as u32);
            } else {
                let message = format!("{{take:{name}}}: no earlier step takes it");
                return Err(bad(&place, &message, "let an earlier step take it from its answer"));
            }
        }
    }
    step.needs.sort_unstable();
    step.needs.dedup();
    Ok(step)
}

/// Check that an earlier step takes what a step needs.
fn check_order(steps: &[Step], once: usize, names: &[String]) -> Result<(), EngineError> {
    for (number, step) in steps.iter().enumerate() {
        let is_taken = |name: &u32| steps[..number].iter().any(|step| step.takes.iter().any(|take| take.name == *name));
        if let Some(name) = step.needs.iter().find(|name| !is_taken(name)) {
            let message = format!("{{take:{}}}: no earlier step takes it", names[*name as usize]);
            let list = if number < once { "once" } else { "steps" };
            let index = if number < once { number } else { number - once };
            let hint = format!("journey.{list}[{index}] sends it: let an earlier step take it from its answer");
            return Err(bad(&format!("requests[{}]", step.request), &message, &hint));
        }
    }
    Ok(())
}

/// The names in placeholders that begin like this. Two braces are a brace of the text.
fn placeholders<'a>(text: &'a str, begin: &'a str) -> impl Iterator<Item = &'a str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while let Some(brace) = rest.find('{') {
            rest = &rest[brace..];
            if let Some(after) = rest.strip_prefix("{{") {
                rest = after;
                continue;
            }
            let found = rest.strip_prefix(begin).and_then(|inner| inner.split_once('}'));
            rest = &rest[1..];
            if let Some((name, after)) = found {
                rest = after;
                return Some(name);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::placeholders;

    #[test]
    fn placeholders_are_read_where_they_are_no_text() {
        let of = |text| placeholders(text, "{take:").collect::<Vec<_>>();
        assert_eq!(of("/{take:a}/{row:b}?{{take:c}}&{take:d}{"), ["a", "d"]);
        assert_eq!(of("{{{take:e}}}"), ["e"]);
        assert_eq!(of("{take:f"), Vec::<&str>::new());
    }
}
