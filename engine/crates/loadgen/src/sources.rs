//! The local addresses of connections.
//!
//! Two addresses and two ports identify a connection, so an address has at most as many connections to a target as there are
//! local ports, and the kernel takes long to pick a free port well before they run out. On loopback every address of
//! 127.0.0.0/8 is local, so there is always another.

use std::net::{IpAddr, Ipv4Addr};

use crate::peers::Peers;

/// The most connections from a loopback address. With 9 700 per address, 250 000 were connected in 13 s; with 19 000 in 166 s,
/// because so many of the 28 232 ports that Linux allows by default were taken.
pub const MOST_PER_LOOPBACK: u32 = 14_000;
/// The first loopback address that is used as a source: servers listen on the address before it.
const FIRST_LOOPBACK: u32 = u32::from_be_bytes([127, 0, 0, 2]);

/// The local addresses that connections start from, in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    choice: Choice,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    /// The kernel chooses the address.
    Kernel,
    Given(Vec<IpAddr>),
    /// This many loopback addresses.
    Loopback(u32),
}

impl Sources {
    /// The sources of a job with this many connections in all processes.
    pub fn new(target: &Peers, given: &[IpAddr], connections: u32) -> Self {
        let is_loopback = |ip| matches!(ip, IpAddr::V4(address) if address.is_loopback());
        let has_many = target.unix().is_none() && target.ips().all(is_loopback);
        let choice = if !given.is_empty() {
            Choice::Given(given.to_vec())
        } else if has_many && connections > MOST_PER_LOOPBACK {
            Choice::Loopback(connections.div_ceil(MOST_PER_LOOPBACK))
        } else {
            Choice::Kernel
        };
        Self { choice }
    }

    /// The source address of connection `i`; `None` lets the kernel choose. Consecutive numbers are spread evenly, so `i` may
    /// count the connections of the job, of a process or of a worker.
    pub fn of(&self, i: u32) -> Option<IpAddr> {
        match &self.choice {
            Choice::Kernel => None,
            Choice::Given(addresses) => Some(addresses[i as usize % addresses.len()]),
            Choice::Loopback(addresses) => Some(IpAddr::V4(Ipv4Addr::from(FIRST_LOOPBACK + i % addresses))),
        }
    }

    /// The number of different addresses.
    pub fn count(&self) -> u32 {
        match &self.choice {
            Choice::Kernel => 1,
            Choice::Given(addresses) => {
                let mut different = addresses.clone();
                different.sort_unstable();
                different.dedup();
                different.len() as u32
            }
            Choice::Loopback(addresses) => *addresses,
        }
    }
}

/// The index of the first given address from which a peer cannot be reached: its family is another, or the peer is a Unix socket.
pub fn unfit(target: &Peers, given: &[IpAddr]) -> Option<usize> {
    let reaches = |source: &IpAddr| target.ips().all(|ip| ip.is_ipv4() == source.is_ipv4());
    given.iter().position(|source| target.unix().is_some() || !reaches(source))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use std::net::SocketAddr;

    fn at(address: &str) -> Peers {
        SocketAddr::new(address.parse().unwrap(), 8080).into()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Connections are numbered through the job or in each worker.
        #[test]
        fn loopback_is_spread_evenly_and_thinly(connections in 14_001_u32..300_000, workers in 1_u32..20) {
            let sources = Sources::new(&at("127.0.0.1"), &[], connections);
            let mut from: HashMap<IpAddr, u32> = HashMap::new();
            for i in 0..connections {
                *from.entry(sources.of(i).unwrap()).or_default() += 1;
            }
            let (least, most) = (*from.values().min().unwrap(), *from.values().max().unwrap());
            prop_assert!(most <= MOST_PER_LOOPBACK && most - least <= 1);
            prop_assert_eq!(from.len() as u32, sources.count());
            prop_assert!(from.keys().all(|source| source.is_loopback() && Some(*source) != at("127.0.0.1").ip()));

            let mut by_worker: HashMap<IpAddr, u32> = HashMap::new();
            for worker in 0..workers {
                for i in 0..connections / workers + u32::from(worker < connections % workers) {
                    *by_worker.entry(sources.of(i).unwrap()).or_default() += 1;
                }
            }
            prop_assert!(by_worker.values().all(|count| *count <= MOST_PER_LOOPBACK + workers));
        }
    }

    #[test]
    fn few_connections_are_left_to_the_kernel() {
        for (address, connections) in
            [("127.0.0.1", 1), ("127.0.0.1", MOST_PER_LOOPBACK), ("::1", 1_000_000), ("192.0.2.1", 1_000_000)]
        {
            let sources = Sources::new(&at(address), &[], connections);
            assert_eq!((sources.of(0), sources.of(connections - 1), sources.count()), (None, None, 1));
        }
    }

    #[test]
    fn given_addresses_are_taken_in_turn() {
        let given: Vec<IpAddr> = ["192.0.2.7", "192.0.2.9", "192.0.2.7"].map(|text| text.parse().unwrap()).to_vec();
        for address in ["192.0.2.1", "127.0.0.1"] {
            let sources = Sources::new(&at(address), &given, 100_000);
            assert_eq!([sources.of(0), sources.of(1), sources.of(3)], [Some(given[0]), Some(given[1]), Some(given[0])]);
            assert_eq!(sources.count(), 2);
        }
        assert_eq!(unfit(&at("192.0.2.1"), &given), None);
        assert_eq!(unfit(&at("::1"), &given), Some(0));
    }
}
