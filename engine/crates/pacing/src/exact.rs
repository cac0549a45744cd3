//! Times at equal distances without rounding error.

use crate::NS_PER_S;

/// The exact fraction of a positive normal number, in lowest powers of two.
pub fn as_fraction(rate: f64) -> (u128, u128) {
    let bits = rate.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1075;
    let mantissa = u128::from((bits & ((1 << 52) - 1)) | (1 << 52));
    let shift = mantissa.trailing_zeros().min(exponent.unsigned_abs());
    if exponent >= 0 { (mantissa << exponent, 1) } else { (mantissa >> shift, 1 << (exponent.unsigned_abs() - shift)) }
}

/// Due times at equal distances: whole nanoseconds and an exact remainder, as in Bresenham's algorithm.
#[derive(Clone, Debug)]
pub struct Steps {
    next_ns: u64,
    step_ns: u64,
    remainder: u128,
    step_remainder: u128,
    denominator: u128,
}

impl Steps {
    pub fn new(rate_per_s: f64, worker: u32, workers: u32) -> Self {
        let (numerator, denominator) = as_fraction(rate_per_s);
        let period = u128::from(NS_PER_S) * denominator;
        let first = u128::from(worker) * period;
        let step = u128::from(workers) * period;
        Self {
            next_ns: (first / numerator) as u64,
            step_ns: (step / numerator) as u64,
            remainder: first % numerator,
            step_remainder: step % numerator,
            denominator: numerator,
        }
    }

    pub fn advance(&mut self) -> u64 {
        let due = self.next_ns;
        self.remainder += self.step_remainder;
        let carry = self.remainder >= self.denominator;
        if carry {
            self.remainder -= self.denominator;
        }
        self.next_ns = self.next_ns.saturating_add(self.step_ns).saturating_add(u64::from(carry));
        due
    }
}
