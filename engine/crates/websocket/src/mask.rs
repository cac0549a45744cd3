//! Masking (RFC 6455, 5.3).

/// Masks or unmasks `bytes`, which begin `at` this byte of the payload.
#[inline]
pub fn mask(bytes: &mut [u8], key: [u8; 4], at: usize) {
    let turned = u32::from_ne_bytes([key[at % 4], key[(at + 1) % 4], key[(at + 2) % 4], key[(at + 3) % 4]]);
    let wide = u64::from(turned) | u64::from(turned) << 32;
    let mut words = bytes.chunks_exact_mut(8);
    for word in &mut words {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        word.copy_from_slice(&(u64::from_ne_bytes(eight) ^ wide).to_ne_bytes());
    }
    for (byte, key) in words.into_remainder().iter_mut().zip(wide.to_ne_bytes()) {
        *byte ^= key;
    }
}

/// Keys of masks: a fast generator (`SplitMix64`), whose seed is the caller's.
#[derive(Clone, Debug)]
pub struct Keys(u64);

impl Keys {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[inline]
    pub fn draw(&mut self) -> [u8; 4] {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) as u32).to_ne_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::mask;

    proptest! {
        /// However a payload is cut, each byte is masked by the byte of the key at its place.
        #[test]
        fn each_byte_is_masked_by_the_byte_of_its_place(
            payload in prop::collection::vec(any::<u8>(), 0..60), key: [u8; 4], cut in 0..60_usize,
        ) {
            let cut = cut.min(payload.len());
            let mut masked = payload.clone();
            mask(&mut masked[..cut], key, 0);
            mask(&mut masked[cut..], key, cut);
            let expected: Vec<u8> = payload.iter().enumerate().map(|(at, byte)| byte ^ key[at % 4]).collect();
            prop_assert_eq!(masked, expected);
        }
    }
}
