//! How late the oracle itself was: from the instant at which an answer was due to the end of its write.

use std::io::{self, Write};

/// Buckets per power of two: a relative resolution of 1/1024.
const PARTS: u64 = 1024;
const BUCKETS: usize = (64 * PARTS) as usize;

/// A distribution of nanoseconds: the oracle's own error, to be reported with every expected value.
#[derive(Debug, Clone)]
pub struct Lateness {
    counts: Vec<u64>,
    max_ns: u64,
}

impl Lateness {
    /// An empty distribution.
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS], max_ns: 0 }
    }

    /// Its number and some quantiles, as an object of JSON.
    pub fn quantiles(&self) -> String {
        format!(
            r#"{{"count":{},"p50_ns":{},"p99_ns":{},"max_ns":{}}}"#,
            self.count(),
            self.quantile_ns(0.5),
            self.quantile_ns(0.99),
            self.max_ns
        )
    }

    /// Counts an answer.
    pub fn record(&mut self, late_ns: u64) {
        self.counts[bucket(late_ns)] += 1;
        self.max_ns = self.max_ns.max(late_ns);
    }

    /// Adds the counts of another distribution.
    pub fn add(&mut self, other: &Self) {
        for (ours, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *ours += theirs;
        }
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The value that a share `q` does not exceed, rounded up to its bucket's end; 0 when it is empty.
    fn quantile_ns(&self, q: f64) -> u64 {
        let wanted = (self.count() as f64 * q).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen >= wanted {
                return bucket_end_ns(index).min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// Writes it for [`read`](Self::read) in another process of the same program.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        let numbers = self.counts.iter().chain([&self.max_ns]);
        to.write_all(&numbers.flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>())
    }

    /// What [`write`](Self::write) wrote; after an incomplete write, as much as was written.
    pub fn read(bytes: &[u8]) -> Self {
        let mut read = Self::new();
        let numbers = bytes.as_chunks().0.iter().map(|number| u64::from_ne_bytes(*number));
        for (kept, number) in read.counts.iter_mut().chain([&mut read.max_ns]).zip(numbers) {
            *kept = number;
        }
        read
    }

    /// A line of JSON.
    pub fn summary(&self) -> String {
        format!(
            r#"{{"answered":{},"late_p50_ns":{},"late_p90_ns":{},"late_p99_ns":{},"late_p999_ns":{},"late_max_ns":{}}}"#,
            self.count(),
            self.quantile_ns(0.5),
            self.quantile_ns(0.9),
            self.quantile_ns(0.99),
            self.quantile_ns(0.999),
            self.max_ns
        )
    }
}

impl Default for Lateness {
    fn default() -> Self {
        Self::new()
    }
}

fn bucket(value_ns: u64) -> usize {
    if value_ns < PARTS {
        return value_ns as usize;
    }
    let shift = value_ns.ilog2() - PARTS.ilog2();
    ((u64::from(shift) * PARTS) + (value_ns >> shift)) as usize
}

const fn bucket_end_ns(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * PARTS {
        return index;
    }
    let shift = index / PARTS - 1;
    ((index % PARTS + PARTS) << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Lateness, bucket, bucket_end_ns};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_holds_its_value_to_one_part_in_1024(value_ns in any::<u64>()) {
            let index = bucket(value_ns);
            prop_assert!(index < BUCKETS);
            let end_ns = bucket_end_ns(index);
            prop_assert!(end_ns >= value_ns && end_ns - value_ns <= value_ns / 1024);
        }

        #[test]
        fn a_quantile_is_that_of_the_sorted_values(values in prop::collection::vec(0..1_000_000_000_u64, 1..200)) {
            let (mut whole, mut half) = (Lateness::new(), Lateness::new());
            for (index, &value_ns) in values.iter().enumerate() {
                if index % 2 == 0 { whole.record(value_ns) } else { half.record(value_ns) }
            }
            let mut written = Vec::new();
            half.write(&mut written).expect("a vector takes all");
            whole.add(&Lateness::read(&written));
            let mut sorted = values;
            sorted.sort_unstable();
            let median_ns = sorted[sorted.len().div_ceil(2) - 1];
            let reported_ns = whole.quantile_ns(0.5);
            prop_assert!(reported_ns >= median_ns && reported_ns - median_ns <= median_ns / 1024);
            prop_assert_eq!(Some(&whole.quantile_ns(1.0)), sorted.last());
        }
    }

    #[test]
    fn nothing_recorded_is_all_zeros() {
        assert!(Lateness::new().summary().starts_with(r#"{"answered":0,"late_p50_ns":0,"#));
    }
}
