//! Random numbers, from the source of entropy of the standard library.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// A number that nobody can guess.
pub fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Bytes that nobody can guess.
pub fn random_bytes() -> [u8; 16] {
    (u128::from(random_number()) << 64 | u128::from(random_number())).to_ne_bytes()
}
