//! When a request is answered, given its arrival: the truth, in closed form, without a clock.

use crate::queue::Queue;

/// How the server treats arrivals. All times are nanoseconds since the same origin.
#[derive(Debug, Clone)]
pub enum Discipline {
    /// Answers immediately.
    Null,
    /// Answers every request `delay_ns` after its arrival, all in parallel.
    Fixed {
        /// The delay.
        delay_ns: u64,
    },
    /// Workers serve in order of arrival, with service times of a known law.
    Queue(Queue),
    /// Answers immediately, except that requests that arrive in `[k * every_ns, k * every_ns + for_ns)`, k = 0, 1, ..., are
    /// answered at the end of that stall.
    Stall {
        /// The time between the starts of stalls.
        every_ns: u64,
        /// The length of a stall; less than `every_ns`.
        for_ns: u64,
    },
}

impl Discipline {
    /// The instant at which a request that arrives at `arrival_ns` is answered.
    ///
    /// Never before its arrival. Arrivals are passed in order; only a queue with several workers answers in another order.
    pub fn completion_ns(&mut self, arrival_ns: u64) -> u64 {
        match self {
            Self::Null => arrival_ns,
            Self::Fixed { delay_ns } => arrival_ns + *delay_ns,
            Self::Queue(queue) => queue.completion_ns(arrival_ns),
            Self::Stall { every_ns, for_ns } => {
                let into = arrival_ns % *every_ns;
                if into < *for_ns { arrival_ns - into + *for_ns } else { arrival_ns }
            }
        }
    }

    /// Whether every answer is sent immediately, so that no clock is needed.
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::Discipline;
    use crate::queue::Queue;
    use crate::service::{Law, Service};
    use proptest::prelude::*;

    fn any_discipline() -> impl Strategy<Value = Discipline> {
        prop_oneof![
            Just(Discipline::Null),
            (0..10_000_000_000_u64).prop_map(|delay_ns| Discipline::Fixed { delay_ns }),
            (1e3..1e9, any::<u64>()).prop_map(|(mean_ns, seed)| {
                Discipline::Queue(Queue::new(Service::new(Law::Exponential { mean_ns }, seed), 1))
            }),
            (2..10_000_000_000_u64)
                .prop_flat_map(|every_ns| (Just(every_ns), 1..every_ns))
                .prop_map(|(every_ns, for_ns)| Discipline::Stall { every_ns, for_ns }),
        ]
    }

    proptest! {
        #[test]
        fn answers_fall_due_in_order_and_never_early(
            mut discipline in any_discipline(),
            gaps in prop::collection::vec(0..5_000_000_000_u64, 1..200),
        ) {
            let (mut arrival_ns, mut earlier_ns) = (0, 0);
            for gap in gaps {
                arrival_ns += gap;
                let completion_ns = discipline.completion_ns(arrival_ns);
                prop_assert!(completion_ns >= arrival_ns);
                prop_assert!(completion_ns >= earlier_ns);
                earlier_ns = completion_ns;
            }
        }

        #[test]
        fn a_fixed_delay_is_exact(delay_ns in 0..10_000_000_000_u64, arrival_ns in 0..1_000_000_000_000_u64) {
            prop_assert_eq!(Discipline::Fixed { delay_ns }.completion_ns(arrival_ns), arrival_ns + delay_ns);
        }

        #[test]
        fn a_stall_ends_for_all_that_it_holds_at_once(
            every_ns in 2..10_000_000_000_u64, share in 0.0..1.0_f64, cycle in 0..1000_u64, at in 0.0..1.0_f64,
        ) {
            let for_ns = ((every_ns as f64 * share) as u64).clamp(1, every_ns - 1);
            let into = (every_ns as f64 * at) as u64 % every_ns;
            let start_ns = cycle * every_ns;
            let expected = if into < for_ns { start_ns + for_ns } else { start_ns + into };
            prop_assert_eq!(Discipline::Stall { every_ns, for_ns }.completion_ns(start_ns + into), expected);
        }
    }
}
