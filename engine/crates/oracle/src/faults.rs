//! The faults of an answer, besides the time at which it is ready.

use crate::random::Random;

/// The most pieces of a slow body.
const PIECES: u64 = 64;

/// The faults of every answer.
#[derive(Debug, Clone)]
pub struct Faults {
    /// From the time at which the answer is ready to its first byte.
    pub first_byte_after_ns: u64,
    /// From the first byte of the head to the last byte of the body, which is sent in even pieces.
    pub body_over_ns: u64,
    /// From the head and the first half of the body to the rest; not with `body_over_ns`.
    pub rest_after_ns: u64,
    /// The body is so many events, and leaves one by one, each after this time; not with the other times of the body.
    pub events: Option<EventTimes>,
    /// Send every byte with a write of its own.
    pub bytewise: bool,
    /// Which answers are resets.
    pub resets: Resets,
}

/// When the events of a body leave.
#[derive(Debug, Clone, Copy)]
pub struct EventTimes {
    /// How many there are, at least 1.
    pub count: u64,
    /// From the head to the first, and from each to the next.
    pub gap_ns: u64,
}

/// A piece of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// When it is sent.
    pub at_ns: u64,
    /// Its length in bytes.
    pub length: usize,
    /// Whether it completes the answer.
    pub last: bool,
}

impl Faults {
    /// Whether answers are sent later than they are ready.
    pub const fn delay(&self) -> bool {
        self.first_byte_after_ns > 0 || self.body_over_ns > 0 || self.rest_after_ns > 0 || self.events.is_some()
    }

    /// How an answer is sent whose first byte is sent at `start_ns`: the head, and then piece i of n at i / n of the body's
    /// time; or the head with half of the body, and then the rest; or the head, and then event by event. An answer without a body has no pieces.
    pub fn pieces(&self, start_ns: u64, head: usize, body: usize) -> impl Iterator<Item = Piece> + use<> {
        let of_events = self.events.map_or(0, |events| events.count * events.gap_ns);
        let over_ns = self.body_over_ns + self.rest_after_ns + of_events;
        let body = body as u64;
        let (first, count) = if let Some(events) = self.events {
            // What is no stream is a refusal, without a body.
            (0, events.count.min(body))
        } else if over_ns == 0 {
            (body, 0)
        } else if self.rest_after_ns > 0 {
            (body / 2, body.min(1))
        } else {
            (0, body.min(PIECES))
        };
        let rest = body - first;
        (0..=count).map(move |index| {
            let length = match index {
                0 => head as u64 + first,
                // The end of the last chunk follows the last event.
                _ if of_events > 0 => rest / count + if index == count { rest % count } else { 0 },
                _ => rest * index / count - rest * (index - 1) / count,
            };
            let at_ns = start_ns + (over_ns * index).checked_div(count).unwrap_or(0);
            Piece { at_ns, length: length as usize, last: index == count }
        })
    }
}

/// Resets at random.
#[derive(Debug, Clone)]
pub struct Resets {
    share: f64,
    seed: u64,
    random: Random,
}

impl Resets {
    /// Each answer is a reset with probability `share`.
    pub const fn new(share: f64, seed: u64) -> Self {
        Self { share, seed, random: Random::new(seed) }
    }

    /// The same for another thread, with other draws, which are reproducible.
    pub fn of_thread(&self, index: usize) -> Self {
        // Any odd constant keeps seeds apart; the generator mixes them.
        Self::new(self.share, self.seed.wrapping_add((index as u64).wrapping_mul(0xd134_2543_de82_ef95)))
    }

    /// Whether the next answer is a reset.
    #[inline]
    pub fn draw(&mut self) -> bool {
        self.share > 0.0 && self.random.chance(self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::{EventTimes, Faults, Piece, Resets};
    use proptest::prelude::*;

    fn faults(first_byte_after_ns: u64, body_over_ns: u64) -> Faults {
        Faults {
            first_byte_after_ns,
            body_over_ns,
            rest_after_ns: 0,
            events: None,
            bytewise: false,
            resets: Resets::new(0.0, 1),
        }
    }

    #[test]
    fn the_rest_of_a_body_comes_at_its_time() {
        let faults = Faults { rest_after_ns: 100, ..faults(0, 0) };
        let pieces: Vec<Piece> = faults.pieces(7, 30, 5).collect();
        let (first, rest) = (Piece { at_ns: 7, length: 32, last: false }, Piece { at_ns: 107, length: 3, last: true });
        assert_eq!(pieces, [first, rest]);
        let empty: Vec<Piece> = faults.pieces(7, 30, 0).collect();
        assert_eq!(empty, [Piece { at_ns: 7, length: 30, last: true }]);
    }

    #[test]
    fn without_faults_an_answer_is_one_piece() {
        let pieces: Vec<Piece> = faults(0, 0).pieces(7, 30, 5).collect();
        assert_eq!(pieces, [Piece { at_ns: 7, length: 35, last: true }]);
        let empty: Vec<Piece> = faults(0, 100).pieces(7, 30, 0).collect();
        assert_eq!(empty, [Piece { at_ns: 7, length: 30, last: true }]);
    }

    #[test]
    fn events_leave_one_by_one() {
        let faults = Faults { events: Some(EventTimes { count: 3, gap_ns: 10 }), ..faults(0, 0) };
        let pieces: Vec<(u64, usize, bool)> =
            faults.pieces(7, 30, 27).map(|piece| (piece.at_ns, piece.length, piece.last)).collect();
        assert_eq!(pieces, [(7, 30, false), (17, 9, false), (27, 9, false), (37, 9, true)]);
        let chunked: Vec<usize> = faults.pieces(7, 30, 42 + 2).map(|piece| piece.length).collect();
        assert_eq!(chunked, [30, 14, 14, 16], "the end of the last chunk is no event");
        let refusal: Vec<Piece> = faults.pieces(7, 30, 0).collect();
        assert_eq!(refusal, [Piece { at_ns: 7, length: 30, last: true }]);
    }

    proptest! {
        #[test]
        fn a_slow_body_is_complete_at_its_time(
            over_ns in 1..86_400_000_000_000_u64, head in 1..100_usize, body in 1..1_000_000_000_usize,
        ) {
            let pieces: Vec<Piece> = faults(0, over_ns).pieces(1000, head, body).collect();
            prop_assert_eq!(pieces.iter().map(|piece| piece.length).sum::<usize>(), head + body);
            prop_assert_eq!(pieces[0].length, head);
            prop_assert_eq!(pieces[0].at_ns, 1000);
            prop_assert!(pieces[1..].iter().all(|piece| piece.length > 0));
            prop_assert!(pieces.is_sorted_by_key(|piece| piece.at_ns));
            let last = &pieces[pieces.len() - 1];
            prop_assert!(last.last && last.at_ns == 1000 + over_ns);
        }
    }

    #[test]
    fn resets_have_their_share_and_differ_by_thread() {
        let n = 100_000;
        let draws = |mut resets: Resets| (0..n).map(|_| resets.draw()).collect::<Vec<bool>>();
        let first = draws(Resets::new(0.1, 3));
        let share = first.iter().filter(|&&reset| reset).count() as f64 / f64::from(n);
        assert!((share - 0.1).abs() < 5.0 * (0.09 / f64::from(n)).sqrt(), "{share}");
        assert_eq!(first, draws(Resets::new(0.1, 3)));
        assert_ne!(first, draws(Resets::new(0.1, 3).of_thread(1)));
        assert!(!draws(Resets::new(0.0, 3)).contains(&true));
    }
}
