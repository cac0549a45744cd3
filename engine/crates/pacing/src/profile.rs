//! How a rate, or a number of users, changes over time: constant, then piecewise linear.

use std::sync::Arc;

use crate::NS_PER_S;
use crate::area::Area;

/// A straight line of a [`Profile`]: from the end of the previous line to `to`, over `over_ns`; 0 is a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// The value at the stage's end: requests per second, or users.
    pub to: f64,
    /// How long the stage takes, in nanoseconds.
    pub over_ns: u64,
}

/// A value over time: the first value until the stages begin, straight lines through them, and the last value for ever.
///
/// At a step the new value holds. Values should be finite and not negative; [`crate::Schedule::new`] fails
/// when they are not. Cloning allocates nothing.
#[derive(Clone, Debug)]
pub struct Profile(Arc<Course>);

#[derive(Debug)]
struct Course {
    begins_ns: u64,
    /// The constant line before the stages, and then the stages, without gaps.
    segments: Vec<Segment>,
    ends_ns: u64,
    area: Area,
    last: f64,
}

impl Profile {
    /// A value that never changes.
    #[must_use]
    pub fn constant(value: f64) -> Self {
        Self::new(value, &[], 0)
    }

    /// `start` holds until `begins_ns` (the end of the warm-up); the stages follow.
    #[must_use]
    pub fn new(start: f64, stages: &[Stage], begins_ns: u64) -> Self {
        Self::from(start, start, stages, begins_ns)
    }

    /// From 0 in a straight line to `first` at `begins_ns` (the end of the warm-up); the stages follow.
    #[must_use]
    pub fn rising(first: f64, stages: &[Stage], begins_ns: u64) -> Self {
        Self::from(0.0, first, stages, begins_ns)
    }

    fn from(start: f64, first: f64, stages: &[Stage], begins_ns: u64) -> Self {
        let mut course = Course { begins_ns, segments: Vec::new(), ends_ns: 0, area: Area::default(), last: start };
        course.append(Stage { to: first, over_ns: begins_ns });
        for stage in stages {
            course.append(*stage);
        }
        Self(Arc::new(course))
    }

    /// The value at `t_ns`.
    #[must_use]
    pub fn value_at(&self, t_ns: u64) -> f64 {
        let course = &*self.0;
        let passed = course.segments.partition_point(|segment| segment.end_ns() <= t_ns);
        course.segments.get(passed).map_or(course.last, |segment| segment.value_at(t_ns - segment.start_ns))
    }

    /// The highest value.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.values().fold(0.0, f64::max)
    }

    /// The value before the stages.
    #[must_use]
    pub fn start(&self) -> f64 {
        self.0.segments[0].from
    }

    /// When the stages begin, in nanoseconds since the epoch.
    #[must_use]
    pub fn begins_ns(&self) -> u64 {
        self.0.begins_ns
    }

    /// When the last stage ends; the value is constant afterwards.
    #[must_use]
    pub fn ends_ns(&self) -> u64 {
        self.0.ends_ns
    }

    /// Whether the profile has no stages.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.0.segments.len() == 1
    }

    /// The integral of the value from 0 to `t_ns`, in value · seconds: how many requests a rate has made due.
    #[must_use]
    pub fn area(&self, t_ns: u64) -> Area {
        let course = &*self.0;
        let passed = course.segments.partition_point(|segment| segment.end_ns() <= t_ns);
        course.segments.get(passed).map_or_else(
            || course.area.plus(Area::from_f64(course.last * (t_ns - course.ends_ns) as f64 / NS_PER_S as f64)),
            |segment| segment.before.plus(segment.area_at(t_ns - segment.start_ns)),
        )
    }

    /// The last nanosecond at which the integral is not past `area`, or `None` when it never exceeds it.
    ///
    /// An area that is reached on a stretch of 0 thus belongs to its end: a request that the integral reaches just as the rate
    /// becomes 0 is due when it rises again. In closed form, not by steps, so the error is that of a single rounding (below a
    /// nanosecond for stages of up to weeks) at any time.
    #[must_use]
    pub fn when(&self, area: Area) -> Option<u64> {
        let course = &*self.0;
        let passed = course.segments.partition_point(|segment| segment.end_area() <= area);
        if let Some(segment) = course.segments.get(passed) {
            return Some(segment.start_ns + segment.when(area.minus(segment.before)));
        }
        let over = area.minus(course.area).as_f64() * NS_PER_S as f64;
        (course.last > 0.0).then(|| course.ends_ns.saturating_add((over / course.last) as u64))
    }

    /// Every value at which a straight line begins or ends.
    pub(crate) fn values(&self) -> impl Iterator<Item = f64> + '_ {
        std::iter::once(self.start()).chain(self.0.segments.iter().map(|segment| segment.to))
    }

    /// The straight line with this index; 0 is the line before the stages.
    pub(crate) fn segment(&self, index: usize) -> Option<&Segment> {
        self.0.segments.get(index)
    }
}

impl Course {
    fn append(&mut self, stage: Stage) {
        let over_ns = stage.over_ns.min(u64::MAX - self.ends_ns);
        let area = Area::from_f64(rising_area(self.last, stage.to, over_ns, over_ns));
        let (start_ns, before, from) = (self.ends_ns, self.area, self.last);
        self.segments.push(Segment { start_ns, over_ns, from, to: stage.to, before, area });
        self.ends_ns += over_ns;
        self.area = self.area.plus(area);
        self.last = stage.to;
    }
}

/// A straight line, and the areas before and under it.
#[derive(Debug)]
pub struct Segment {
    pub start_ns: u64,
    pub over_ns: u64,
    pub from: f64,
    pub to: f64,
    before: Area,
    area: Area,
}

impl Segment {
    fn end_ns(&self) -> u64 {
        self.start_ns + self.over_ns
    }

    fn end_area(&self) -> Area {
        self.before.plus(self.area)
    }

    fn value_at(&self, into_ns: u64) -> f64 {
        self.from + (self.to - self.from) * (into_ns as f64 / self.over_ns as f64)
    }

    /// How far into the segment its line passes `value`, which lies between its ends. Immediately in a step.
    pub fn crosses_at(&self, value: f64) -> u64 {
        let share = (value - self.from) / (self.to - self.from);
        self.start_ns + ((share * self.over_ns as f64) as u64).min(self.over_ns)
    }

    // A falling line is a rising line seen from its end, so no result is the small difference of two large numbers.

    fn area_at(&self, into_ns: u64) -> Area {
        if self.to < self.from {
            let rest = rising_area(self.to, self.from, self.over_ns, self.over_ns - into_ns);
            return self.area.minus(Area::from_f64(rest));
        }
        Area::from_f64(rising_area(self.from, self.to, self.over_ns, into_ns))
    }

    fn when(&self, area: Area) -> u64 {
        let over = self.over_ns as f64;
        let into = if self.to < self.from {
            over - rising_when(self.to, self.from, over, self.area.minus(area).as_f64())
        } else {
            rising_when(self.from, self.to, over, area.as_f64())
        };
        (into as u64).min(self.over_ns)
    }
}

/// The area, in value · seconds, under the first `into_ns` of a line from `low` to `high` over `over_ns`.
fn rising_area(low: f64, high: f64, over_ns: u64, into_ns: u64) -> f64 {
    if over_ns == 0 {
        return 0.0;
    }
    let reached = (high - low) * (into_ns as f64 / over_ns as f64);
    (low + reached / 2.0) * into_ns as f64 / NS_PER_S as f64
}

/// The inverse of [`rising_area`], in nanoseconds: the root of a quadratic in the form that does not cancel.
fn rising_when(low: f64, high: f64, over_ns: f64, area: f64) -> f64 {
    let area_ns = area * NS_PER_S as f64;
    if high <= low {
        return area_ns / low;
    }
    let mean = area_ns / over_ns;
    if mean > 0.0 { over_ns * 2.0 * mean / (low + (low * low + 2.0 * (high - low) * mean).sqrt()) } else { 0.0 }
}
