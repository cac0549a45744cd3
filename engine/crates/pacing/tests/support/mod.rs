//! Statistics of samples.
#![allow(dead_code, reason = "every test file uses its own part")]

/// The largest distance between the sample's distribution and the given distribution function.
pub fn kolmogorov_smirnov(mut sample: Vec<f64>, distribution: impl Fn(f64) -> f64) -> f64 {
    sample.sort_unstable_by(f64::total_cmp);
    let n = sample.len() as f64;
    sample
        .iter()
        .enumerate()
        .map(|(i, value)| {
            let expected = distribution(*value);
            (expected - i as f64 / n).abs().max(((i + 1) as f64 / n - expected).abs())
        })
        .fold(0.0, f64::max)
}

/// The critical distance at a level of 0.001 (Smirnov 1948). With fixed seeds the result never changes.
pub fn critical_distance(n: usize) -> f64 {
    1.95 / (n as f64).sqrt()
}

/// The distribution function of the exponential distribution.
pub fn exponential(mean: f64) -> impl Fn(f64) -> f64 {
    move |gap| 1.0 - (-gap / mean).exp()
}

/// Pearson's statistic of counts against expected counts, minus its mean, in standard deviations.
pub fn chi_square_excess(counts: &[u64], expected: &[f64]) -> f64 {
    let terms = counts.iter().zip(expected).map(|(count, mean)| (*count as f64 - mean).powi(2) / mean);
    let freedom = (counts.len() - 1) as f64;
    (terms.sum::<f64>() - freedom) / (2.0 * freedom).sqrt()
}
