//! A histogram that takes memory only where it has counts: for one of many requests of a mix.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{HIGHEST_NS, Histogram, LOWEST_NS};

/// Buckets that are as fine as those of [`Histogram`]: 2048 below 2048 ns, then 1024 for every power of two.
const HALF: u64 = 1024;
/// Buckets that are allocated together, 2 KiB.
const CHUNK: usize = 256;

/// The counts of a [`Histogram`], which it is written as.
///
/// A histogram takes 270 KB, and a mix may have hundreds of requests for each worker. Response times lie in few of its buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparseHistogram(Vec<Option<Box<[u64; CHUNK]>>>);

impl SparseHistogram {
    /// Record a duration; one beyond the range is recorded at its end.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let place = place_of(ns.clamp(LOWEST_NS, HIGHEST_NS));
        match self.0.get_mut(place / CHUNK) {
            Some(Some(chunk)) => chunk[place % CHUNK] += 1,
            _ => self.chunk_mut(place / CHUNK)[place % CHUNK] += 1,
        }
    }

    /// Record a duration as often as this.
    pub fn record_n(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        let place = place_of(ns.clamp(LOWEST_NS, HIGHEST_NS));
        self.chunk_mut(place / CHUNK)[place % CHUNK] += count;
    }

    #[cold]
    fn chunk_mut(&mut self, chunk: usize) -> &mut [u64; CHUNK] {
        if chunk >= self.0.len() {
            self.0.resize(chunk + 1, None);
        }
        self.0[chunk].get_or_insert_with(|| Box::new([0; CHUNK]))
    }

    /// Add all counts of another histogram.
    pub fn add(&mut self, other: &Self) {
        for (number, chunk) in other.0.iter().enumerate() {
            if let Some(chunk) = chunk {
                self.chunk_mut(number).iter_mut().zip(chunk.iter()).for_each(|(sum, count)| *sum += count);
            }
        }
    }

    /// How many durations were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts().map(|(_, count)| count).sum()
    }

    /// The lowest durations of the buckets with counts, and these.
    fn counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().enumerate().filter_map(|(number, chunk)| Some((number, chunk.as_ref()?))).flat_map(
            |(number, chunk)| {
                let counted = chunk.iter().enumerate().filter(|(_, count)| **count > 0);
                counted.map(move |(at, count)| (lowest_of(number * CHUNK + at), *count))
            },
        )
    }

    /// The same counts with all buckets.
    #[must_use]
    pub fn to_histogram(&self) -> Histogram {
        let mut histogram = Histogram::new();
        self.counts().for_each(|(ns, count)| histogram.record_n(ns, count));
        histogram
    }
}

/// The bucket of a duration.
#[inline]
fn place_of(ns: u64) -> usize {
    let power = (u64::BITS - (ns | (2 * HALF - 1)).leading_zeros()) - (2 * HALF).trailing_zeros();
    (u64::from(power) * HALF + (ns >> power)) as usize
}

/// The shortest duration of a bucket.
fn lowest_of(place: usize) -> u64 {
    let place = place as u64;
    let power = (place / HALF).saturating_sub(1);
    (place - power * HALF) << power
}

impl Serialize for SparseHistogram {
    fn serialize<S: Serializer>(&self, format: S) -> Result<S::Ok, S::Error> {
        self.to_histogram().serialize(format)
    }
}

impl<'de> Deserialize<'de> for SparseHistogram {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let mut sparse = Self::default();
        Histogram::deserialize(source)?.for_each(|ns, count| sparse.record_n(ns, count));
        Ok(sparse)
    }
}
