//! Random draws for a request, which depend only on its number and the seed, so that the order of requests does not matter.

use std::sync::Arc;

use crate::Impossible;

/// 2⁻⁵³: from 53 random bits to a number in [0, 1).
const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
/// 2⁶⁴ / golden ratio, odd: consecutive numbers are mapped far apart.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Separates the choice among weights from other draws with the same seed.
const WEIGHTS: u64 = 0x7765_6967_6874_7300;

/// A number in [0, 1) from the upper 53 bits.
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * UNIT
}

/// Every bit of `z` reaches every bit of the result (Stafford's variant 13 of `MurmurHash3`'s finalizer, as in `SplitMix64`).
const fn finalize(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 64 random bits that depend only on these three numbers: `SplitMix64` (Steele, Lea, Flood 2014), reseeded by each of them.
pub fn mixed(seed: u64, first: u64, second: u64) -> u64 {
    let state = finalize(seed.wrapping_add(GOLDEN));
    let state = finalize(state.wrapping_add(first.wrapping_mul(GOLDEN)).wrapping_add(GOLDEN));
    finalize(state.wrapping_add(second.wrapping_mul(GOLDEN)).wrapping_add(GOLDEN))
}

/// 64 random bits for request `seq`; `salt` separates several draws of a request.
#[must_use]
pub fn random_bits(seed: u64, seq: u64, salt: u64) -> u64 {
    mixed(seed, seq, salt)
}

/// A whole number from `a` to `b`, inclusive, all equally likely, for request `seq`; `salt` separates several draws of a
/// request. The ends may be in either order.
///
/// Multiplication and a rare rejection, without bias (Lemire, *Fast Random Integer Generation in an Interval*, 2019).
#[must_use]
pub fn uniform_between(seed: u64, seq: u64, salt: u64, a: i64, b: i64) -> i64 {
    let low = a.min(b);
    let mut bits = random_bits(seed, seq, salt);
    let Some(size) = a.abs_diff(b).checked_add(1) else {
        return bits as i64;
    };
    let rejected = size.wrapping_neg() % size;
    loop {
        let product = u128::from(bits) * u128::from(size);
        if product as u64 >= rejected {
            return low.wrapping_add((product >> 64) as i64);
        }
        bits = finalize(bits.wrapping_add(GOLDEN));
    }
}

/// A choice among indexes with given weights, in constant time: Walker's alias method in Vose's form (1991).
///
/// Cloning allocates nothing.
#[derive(Clone, Debug)]
pub struct Weights(Arc<[Column]>);

/// One of *n* columns of equal height: its own index up to `own` / 2⁶⁴ of it, the other index above.
#[derive(Clone, Copy, Debug)]
struct Column {
    own: u64,
    other: u32,
}

impl Weights {
    /// Chooses index *i* with a probability proportional to `weights[i]`, never when that is 0.
    ///
    /// # Errors
    /// [`Impossible::Weight`] when there are none, a weight is negative or not a number, or their sum is 0 or not finite.
    pub fn new(weights: &[f64]) -> Result<Self, Impossible> {
        if let Some(bad) = weights.iter().find(|weight| !(0.0..f64::INFINITY).contains(*weight)) {
            return Err(Impossible::Weight(*bad));
        }
        let sum: f64 = weights.iter().sum();
        if !(sum > 0.0 && sum.is_finite()) {
            return Err(Impossible::Weight(sum));
        }
        let mut heights: Vec<f64> = weights.iter().map(|weight| weight / sum * weights.len() as f64).collect();
        let mut columns: Vec<Column> = (0..weights.len() as u32).map(|i| Column { own: u64::MAX, other: i }).collect();
        let (mut lower, mut higher): (Vec<u32>, Vec<u32>) =
            (0..weights.len() as u32).partition(|i| heights[*i as usize] < 1.0);
        while let (Some(low), Some(high)) = (lower.pop(), higher.last().copied()) {
            let height = heights[low as usize];
            columns[low as usize] = Column { own: (height * 2.0_f64.powi(64)) as u64, other: high };
            heights[high as usize] -= 1.0 - height;
            if heights[high as usize] < 1.0 {
                higher.pop();
                lower.push(high);
            }
        }
        Ok(Self(columns.into()))
    }

    /// The index for 64 random bits.
    #[must_use]
    pub fn choose(&self, bits: u64) -> usize {
        let product = u128::from(bits) * self.0.len() as u128;
        let index = (product >> 64) as usize;
        let column = self.0[index];
        if (product as u64) < column.own { index } else { column.other as usize }
    }

    /// The index for request `seq`.
    #[must_use]
    pub fn pick(&self, seed: u64, seq: u64) -> usize {
        if self.0.len() == 1 { 0 } else { self.choose(random_bits(seed, seq, WEIGHTS)) }
    }
}
