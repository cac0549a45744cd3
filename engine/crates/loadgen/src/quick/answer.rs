//! What a quick look prints: the answer first, then a few lines, in the words of `redline load`.

use std::fmt::Write as _;

use redline_traffic::{Ended, Histogram, Outcome, Phase, Slice, Summary};

use super::flags::Asked;

/// The percentiles that are shown.
const LEVELS: [(&str, f64); 6] =
    [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];
/// A percentile is known if so many requests lie beyond it.
const ENOUGH_BEYOND: f64 = 10.0;
// The thresholds of the lab's findings `errors`, `rate-missed`, `client-saturated` and `send-lateness`.
const ERRORS: f64 = 0.01;
const MISSED: f64 = 0.05;
const BUSY: f64 = 0.95;
const LATE: f64 = 0.5;
/// Two intervals.
const SILENT_NS: u64 = 2_000_000_000;

/// What a load came to.
pub struct Answer {
    pub text: String,
    pub is_invalid: bool,
}

/// What the intervals of a load tell, besides its result. Times are those of its events.
#[derive(Clone, Copy, Default)]
pub struct Intervals {
    /// Requests that were sent in the warm-up.
    pub warmed: u64,
    /// When the last interval with a right answer ended, or else the warm-up.
    answered_ns: u64,
}

impl Intervals {
    /// An interval has ended.
    pub fn add(&mut self, phase: Phase, slice: &Slice, end_ns: u64) {
        match phase {
            Phase::Warmup => {
                self.warmed += slice.counts.sent;
                self.answered_ns = end_ns;
            }
            Phase::Measure if slice.counts.completed > 0 => self.answered_ns = end_ns,
            Phase::Measure | Phase::Drain => {}
        }
    }
}

/// Judge and word a result.
pub fn answer(asked: &Asked, intervals: Intervals, summary: &Summary<Box<Slice>>) -> Answer {
    let (slice, window_ns) = (&summary.slice, summary.measure_end_ns - summary.measure_start_ns);
    let counts = &slice.counts;
    let silent_ns = summary.measure_end_ns.saturating_sub(intervals.answered_ns.max(summary.measure_start_ns));
    let (doubts, is_invalid) = doubts(asked, slice, window_ns, silent_ns);
    let at_least = if doubts.iter().any(|doubt| doubt.starts_with("the load generator")) { "at least " } else { "" };
    let throughput = match (counts.completed, window_ns) {
        (0, _) | (_, 0) => "not known: no right answers".to_owned(),
        (completed, _) => format!("{at_least}{}", rate(completed as f64 * 1e9 / window_ns as f64)),
    };
    let so_far = if summary.ended == Ended::Complete { "" } else { " (interrupted)" };
    let mut text = format!("throughput  {throughput}{so_far}");
    for (name, q) in [LEVELS[0], LEVELS[4]] {
        if let Some(ns) = known(&slice.response, q) {
            let _ = write!(text, ", {name} {}{}", at_most(slice, q), duration(ns));
        }
    }
    let lasted = (summary.ended != Ended::Complete).then(|| duration(window_ns));
    let _ = writeln!(text, "\n{}  {}", asked.url, load_text(asked, lasted));
    text += &table(asked, slice);
    let check = "requests  1 to check the answer";
    let warm_up = if asked.warmup_ns > 0 {
        format!(", {} in {} of warm-up", integer(intervals.warmed), duration(asked.warmup_ns))
    } else {
        String::new()
    };
    let _ = writeln!(text, "{check}{warm_up}, {} measured", integer(counts.sent));
    let _ = writeln!(text, "outcomes  {}", outcomes(slice));
    // An interrupt leaves requests in flight, which is no failure.
    let is_ours = |outcome| outcome == Outcome::InFlight && summary.ended == Ended::Interrupted;
    let mut failures = summary.failures.as_slice().iter();
    if let Some(failure) = failures.find(|failure| failure.outcome != Outcome::Ok && !is_ours(failure.outcome)) {
        let _ = writeln!(text, "first failure  {}", failure.reason);
    }
    for doubt in doubts {
        let _ = writeln!(text, "{}: {doubt}", if is_invalid { "invalid" } else { "warn" });
    }
    text += "Not judged: whether the server was steady, warm or disturbed. `redline load` does that.\n";
    Answer { text, is_invalid }
}

/// `closed, 64 users, 10.0 s`, as the lab says it; `lasted`: how long an interrupted load did.
fn load_text(asked: &Asked, lasted: Option<String>) -> String {
    let length = match (lasted, asked.count) {
        (Some(lasted), _) => lasted,
        (None, Some(count)) => format!("{} requests, {} at most", integer(count), duration(asked.duration_ns)),
        (None, None) => duration(asked.duration_ns),
    };
    let depth = if asked.depth > 1 { format!(", depth {}", asked.depth) } else { String::new() };
    match asked.rate_per_s {
        None => format!("closed, {} users{depth}, {length}", integer(asked.connections.into())),
        Some(per_s) => format!(
            "open, {} {}, {} connections{depth}, {length}",
            rate(per_s),
            asked.arrivals,
            integer(asked.connections.into())
        ),
    }
}

/// A line for each percentile. Users send when they are answered, so a closed load has one column.
fn table(asked: &Asked, slice: &Slice) -> String {
    let mut columns = vec![("response", &slice.response)];
    if asked.rate_per_s.is_some() {
        columns.extend([("service", &slice.service), ("engine lateness", &slice.lateness)]);
    }
    let mut rows = vec![(String::new(), columns.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>())];
    let level = |q: f64| {
        let bound = |name: &str| if name == "response" { at_most(slice, q) } else { "" };
        let shown = |(name, times): &(&str, &Histogram)| {
            known(times, q).map_or("—".to_owned(), |ns| format!("{}{}", bound(name), duration(ns)))
        };
        columns.iter().map(shown).collect()
    };
    rows.extend(
        LEVELS
            .iter()
            .filter(|(_, q)| known(&slice.response, *q).is_some())
            .map(|(name, q)| ((*name).to_owned(), level(*q))),
    );
    if !slice.response.is_empty() {
        rows.push(("max".to_owned(), columns.iter().map(|(_, times)| duration(times.max_ns())).collect()));
    }
    let width = |column: usize| rows.iter().map(|(_, cells)| cells[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    for (name, cells) in &rows {
        let _ = write!(text, "{name:>5}");
        for (cell, width) in cells.iter().zip(&widths) {
            let _ = write!(text, "  {}{cell}", " ".repeat(width - cell.chars().count()));
        }
        text.push('\n');
    }
    text
}

/// `≤ ` where the engine's lateness makes up most of a percentile of response times, so that it is a bound.
fn at_most(slice: &Slice, q: f64) -> &'static str {
    if late_share(slice, q) > LATE { "≤ " } else { "" }
}

fn late_share(slice: &Slice, q: f64) -> f64 {
    slice.lateness.quantile_ns(q) as f64 / slice.response.quantile_ns(q).max(1) as f64
}

/// What speaks against the numbers, and whether any of it makes them invalid. `silent_ns`: how long no right answer came at last.
fn doubts(asked: &Asked, slice: &Slice, window_ns: u64, silent_ns: u64) -> (Vec<String>, bool) {
    let counts = &slice.counts;
    let (due, mut doubts, mut is_invalid) = (counts.due as f64, Vec::new(), false);
    if counts.due == 0 {
        return (vec!["no request fell due".to_owned()], true);
    }
    let failed = (counts.outcomes.total() - counts.outcomes.ok) as f64 / due;
    if failed > ERRORS {
        doubts.push(format!("{:.1}% of the requests failed", failed * 100.0));
        is_invalid = true;
    }
    if fell_silent(slice, window_ns, silent_ns) {
        doubts.push(format!("no right answer came in the last {}", duration(silent_ns)));
        is_invalid = true;
    }
    // A count ends the measurement when its last request falls due.
    let answered = if asked.count.is_some() { counts.outcomes.ok } else { counts.completed };
    let missed = 1.0 - answered as f64 / due;
    if asked.rate_per_s.is_some() && missed > MISSED && missed > failed {
        doubts.push(format!("{:.1}% of what was due had no right answer in time", missed * 100.0));
        is_invalid = true;
    }
    let busy = slice.engine_cpu_ns as f64 / (window_ns as f64 * f64::from(asked.threads));
    if asked.rate_per_s.is_none() && busy > BUSY {
        doubts.push(format!(
            "the load generator was busy for {:.0}% of the time: give it more -t",
            busy.min(1.0) * 100.0
        ));
    }
    if asked.rate_per_s.is_some() {
        let late = LEVELS.iter().filter(|(_, q)| known(&slice.response, *q).is_some());
        if let Some((name, share)) =
            late.map(|(name, q)| (name, late_share(slice, *q))).find(|(_, share)| *share > LATE)
        {
            let share = share.min(1.0) * 100.0;
            doubts.push(format!("at {name} {share:.0}% of the response time is the engine's lateness: ≤ is a bound"));
        }
    }
    (doubts, is_invalid)
}

/// Whether no right answer came at last for so long that it is no chance, and longer than answers take: users of a slow server are
/// answered together.
fn fell_silent(slice: &Slice, window_ns: u64, silent_ns: u64) -> bool {
    let usual_ns = window_ns / slice.counts.completed.max(1);
    let answer_ns = slice.response.quantile_ns(0.5);
    slice.counts.completed > 0 && silent_ns >= SILENT_NS.max(10 * usual_ns).max(3 * answer_ns)
}

fn outcomes(slice: &Slice) -> String {
    let counts = &slice.counts;
    let kinds = serde_json::to_value(counts.outcomes).unwrap_or_default();
    let kinds: Vec<_> = kinds
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(kind, number)| Some((kind.replace('_', " "), number.as_u64().filter(|number| *number > 0)?)))
        .map(|(kind, number)| format!("{} {kind}", integer(number)))
        .collect();
    if kinds.is_empty() { "no request".to_owned() } else { kinds.join(", ") }
}

fn known(times: &Histogram, q: f64) -> Option<u64> {
    (times.count() as f64 * (1.0 - q) >= ENOUGH_BEYOND - 1e-6).then(|| times.quantile_ns(q))
}

/// `312 ns`, `1.24 µs`, `12.4 ms`, `1.20 s`.
fn duration(ns: u64) -> String {
    scaled(ns as f64, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")])
}

/// `987 /s`, `182 k/s`, `1.23 M/s`.
fn rate(per_s: f64) -> String {
    scaled(per_s, &[(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")])
}

/// Three significant digits in the largest unit in which the value is at least 1.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let last = units[units.len() - 1];
    let (scale, unit) = units.iter().find(|(scale, _)| value / scale >= 0.9995).copied().unwrap_or(last);
    let value = value / scale;
    let places = match value {
        _ if (scale - 1.0).abs() < f64::EPSILON && value.fract() == 0.0 => 0,
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.places$} {unit}")
}

/// `1,234,567`.
fn integer(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use redline_traffic::{Failures, KeptRequests, Reach};

    use super::*;
    use crate::quick::flags;

    fn asked(line: &str) -> Asked {
        flags::parse(line.split(' ').map(Into::into)).unwrap().unwrap()
    }

    fn answered(line: &str, summary: &Summary<Box<Slice>>) -> Answer {
        answer(&asked(line), Intervals { warmed: 0, answered_ns: summary.measure_end_ns }, summary)
    }

    /// A window of a second in which so many requests were answered after 2 ms, and others timed out.
    fn summary(ok: u64, timed_out: u64) -> Summary<Box<Slice>> {
        let mut slice = Slice::default();
        (slice.counts.due, slice.counts.sent) = (ok + timed_out, ok + timed_out);
        slice.counts.completed = ok;
        (slice.counts.outcomes.ok, slice.counts.outcomes.timeout) = (ok, timed_out);
        slice.response.record_n(2_000_000, ok);
        slice.response.record_n(5_000_000_000, timed_out);
        Summary {
            ended: Ended::Complete,
            measure_start_ns: 0,
            measure_end_ns: 1_000_000_000,
            clocks: None,
            failures: Failures::default(),
            requests: Vec::new(),
            journeys: None,
            reach: Reach::default(),
            kept: KeptRequests::default(),
            slice: Box::new(slice),
        }
    }

    #[test]
    fn the_answer_comes_first_in_few_lines() {
        let answer =
            answer(&asked("localhost -c 8 -d 1s"), Intervals { warmed: 1_234, answered_ns: 0 }, &summary(2_000, 0));
        let lines: Vec<_> = answer.text.lines().collect();
        assert_eq!(lines[0], "throughput  2.00 k/s, p50 2.00 ms, p99 2.00 ms");
        assert_eq!(lines[1], "http://localhost  closed, 8 users, 1.00 s");
        assert_eq!(lines[2..4], ["       response", "  p50   2.00 ms"]);
        assert!(lines.contains(&"requests  1 to check the answer, 1,234 in 1.00 s of warm-up, 2,000 measured"));
        assert!(lines.contains(&"outcomes  2,000 ok"));
        assert!(lines.len() <= 13 && !answer.is_invalid, "{lines:#?}");
    }

    #[test]
    fn a_percentile_needs_ten_requests_beyond_it() {
        let answer = answered("localhost -d 1s", &summary(500, 0)).text;
        assert!(answer.starts_with("throughput  500 /s, p50 2.00 ms\n") && !answer.contains("p99"), "{answer}");
    }

    #[test]
    fn failures_and_missed_rates_are_invalid() {
        let few = answered("localhost", &summary(1_000, 9));
        assert!(!few.is_invalid && few.text.contains("outcomes  1,000 ok, 9 timeout"), "{}", few.text);
        let many = answered("localhost", &summary(900, 100));
        assert!(many.is_invalid && many.text.contains("invalid: 10.0% of the requests failed"), "{}", many.text);
        let mut late = summary(1_000, 0);
        late.slice.counts.completed = 900;
        let missed = answered("localhost -R 1000", &late);
        assert!(missed.is_invalid && missed.text.contains("10.0% of what was due"), "{}", missed.text);
        assert!(answered("localhost", &summary(0, 0)).is_invalid);
    }

    #[test]
    fn a_load_of_a_count_is_judged_by_all_its_requests() {
        let mut last = summary(4, 0);
        last.slice.counts.completed = 3;
        assert!(!answered("localhost -R 5 --count 4", &last).is_invalid);
        assert!(answered("localhost -R 5", &last).is_invalid);
    }

    #[test]
    fn a_server_that_fell_silent_is_said_to() {
        let mut longer = summary(1_000, 9);
        longer.measure_end_ns = 3_000_000_000;
        let intervals = Intervals { warmed: 0, answered_ns: 1_000_000_000 };
        let silent = answer(&asked("localhost"), intervals, &longer);
        assert!(
            silent.is_invalid && silent.text.contains("no right answer came in the last 2.00 s"),
            "{}",
            silent.text
        );
        assert!(!answered("localhost", &longer).is_invalid);
        // At less than an answer in 300 ms two seconds are chance, and where answers take a second so are they.
        let mut rare = summary(9, 0);
        rare.measure_end_ns = 3_000_000_000;
        assert!(!answer(&asked("localhost"), intervals, &rare).is_invalid);
        longer.slice.response = Histogram::default();
        longer.slice.response.record_n(1_000_000_000, 1_009);
        assert!(!answer(&asked("localhost"), intervals, &longer).is_invalid);
    }

    #[test]
    fn an_interrupted_load_says_how_long_it_was() {
        let mut cut = summary(1_000, 0);
        cut.ended = Ended::Interrupted;
        let text = answered("localhost -c 8 -d 9s", &cut).text;
        assert!(text.contains("closed, 8 users, 1.00 s\n"), "{text}");
    }

    #[test]
    fn a_busy_engine_makes_the_throughput_a_bound() {
        let mut busy = summary(1_000, 0);
        busy.slice.engine_cpu_ns = 990_000_000;
        let answer = answered("localhost", &busy);
        assert!(answer.text.starts_with("throughput  at least 1.00 k/s") && !answer.is_invalid, "{}", answer.text);
        assert!(answer.text.contains("warn: the load generator was busy for 99% of the time"));
    }

    #[test]
    fn times_with_a_late_engine_are_bounds() {
        let mut late = summary(1_000, 0);
        late.slice.lateness.record_n(1_500_000, 1_000);
        let answer = answered("localhost -R 1000", &late);
        assert!(!answer.is_invalid && answer.text.contains("warn: at p50 75% of the response time"), "{}", answer.text);
        assert!(answer.text.starts_with("throughput  1.00 k/s, p50 ≤ 2.00 ms, p99 ≤ 2.00 ms\n"), "{}", answer.text);
    }

    #[test]
    fn quantities_have_three_digits() {
        let shown = [12, 999, 1_240, 99_960, 12_400_000, 1_200_000_000].map(duration);
        assert_eq!(shown, ["12 ns", "999 ns", "1.24 µs", "100 µs", "12.4 ms", "1.20 s"]);
        assert_eq!([12.5, 182_300.0].map(rate), ["12.5 /s", "182 k/s"]);
        assert_eq!([0, 999, 1_000, 1_234_567].map(integer), ["0", "999", "1,000", "1,234,567"]);
    }
}
