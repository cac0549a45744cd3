//! The bytes of an incomplete answer that are shown if it fails.

/// How many bytes a failure shows, and how many of them precede the position where the answer is wrong.
const SHOWN: usize = 128;
const BEFORE: u64 = 96;

/// The first and the last bytes that have arrived.
#[derive(Default)]
pub struct Glimpse {
    length: u64,
    first: Vec<u8>,
    last: Vec<u8>,
}

impl Glimpse {
    /// How many bytes have arrived.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// A piece arrived that does not complete the answer.
    pub fn add(&mut self, piece: &[u8]) {
        self.length += piece.len() as u64;
        let room = SHOWN - self.first.len();
        self.first.extend_from_slice(&piece[..piece.len().min(room)]);
        let kept = SHOWN.saturating_sub(piece.len()).min(self.last.len());
        self.last.drain(..self.last.len() - kept);
        self.last.extend_from_slice(&piece[piece.len().saturating_sub(SHOWN)..]);
    }

    /// The answer is complete.
    pub fn clear(&mut self) {
        self.length = 0;
        self.first.clear();
        self.last.clear();
    }

    /// Bytes around a position, or from the beginning, and the position of the first. `piece` arrived last; `None` if nothing
    /// did.
    pub fn around(&self, piece: &[u8], at: Option<u64>) -> Option<(u64, Vec<u8>)> {
        if self.length == 0 && piece.is_empty() {
            return None;
        }
        let begin = at.map_or(0, |at| at.saturating_sub(BEFORE));
        let end_known = self.length - self.last.len() as u64;
        let (from, mut bytes) = if begin < end_known && begin < self.first.len() as u64 {
            (0, self.first.clone())
        } else {
            (end_known, [&self.last, &piece[..piece.len().min(place(begin, end_known) + SHOWN)]].concat())
        };
        bytes.drain(..place(begin, from).min(bytes.len()));
        bytes.truncate(SHOWN);
        Some((from.max(begin), bytes))
    }
}

/// The distance from one position to a later position.
fn place(at: u64, from: u64) -> usize {
    usize::try_from(at.saturating_sub(from)).unwrap_or(usize::MAX - SHOWN)
}

/// The reason: the peer ended the connection too early, after these bytes of an answer.
pub fn ended_early(glimpsed: u64) -> String {
    match glimpsed {
        0 => "the connection ended before the answer".to_owned(),
        bytes => format!("the connection ended after {bytes} bytes of the answer"),
    }
}

/// The reason: of an answer only these bytes have come at this time.
pub fn unanswered(glimpsed: u64, time: &str) -> String {
    match glimpsed {
        0 => format!("no answer {time}"),
        bytes => format!("no whole answer {time}, but {bytes} bytes of it"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BEFORE, Glimpse, SHOWN};

    proptest! {
        /// However an answer is cut, both its ends are shown as they arrived.
        #[test]
        fn what_is_shown_is_part_of_the_answer(
            cuts in prop::collection::vec(0_usize..300, 0..8),
            rest in 0_usize..300,
            back in 0_u64..300,
            is_placed in any::<bool>(),
        ) {
            let total = cuts.iter().sum::<usize>() + rest;
            let answer: Vec<u8> = (0..total).map(|at| (at * 31 + at / 256) as u8).collect();
            let mut glimpse = Glimpse::default();
            let mut at = 0;
            for cut in cuts {
                glimpse.add(&answer[at..at + cut]);
                at += cut;
            }
            let wrong = is_placed.then(|| (total as u64).saturating_sub(back.min(rest as u64)));
            let Some((from, bytes)) = glimpse.around(&answer[at..], wrong) else {
                prop_assert_eq!(total, 0);
                return Ok(());
            };
            let begin = wrong.map_or(0, |at| at.saturating_sub(BEFORE)) as usize;
            prop_assert_eq!(from as usize, begin);
            prop_assert_eq!(&bytes[..], &answer[begin..total.min(begin + SHOWN)]);
        }
    }
}
