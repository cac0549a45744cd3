//! What stands in the way of so many connections: said before the first is opened, by arithmetic on [`Facts`].

use std::net::SocketAddr;

use redline_traffic::{ErrorKind, Trouble};

use super::facts::Facts;
use super::split::{Plan, Room};

/// What the kernel keeps for one end of a connection: measured with 250 000 idle ones, rounded up.
const SOCKET_BYTES: u64 = 5_000;
/// Threads of a process that are not workers: the main one, the one that waits for signals, the one that listens to the
/// coordinator, and the two with which the coordinator listens to it.
const OTHER_THREADS: u64 = 5;

/// What a job needs.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    pub connections: u32,
    pub target: SocketAddr,
    /// Different addresses that connections start from.
    pub sources: u32,
    /// Memory of the engine for each connection, in bytes.
    pub engine_bytes: u64,
    /// Whether each connection is watched by epoll.
    pub watched: bool,
    pub room: Room,
    /// `None` when there are no processes enough.
    pub plan: Option<Plan>,
}

/// A limit that is too low.
struct Obstacle {
    what: String,
    /// How many connections it allows.
    allows: u64,
    /// How to raise it.
    raise: String,
}

/// Whether the machine allows what the job needs.
///
/// # Errors
/// A `limit`: the lowest of those that stand in the way, how many connections it allows, and how to raise it; and the others.
pub fn check(need: &Need, facts: &Facts) -> Result<(), Trouble> {
    let connections = need.connections;
    let checks = [descriptors, open_files, ports, memory, processes, watches, tracked];
    let too_low = |obstacle: &Obstacle| obstacle.allows < u64::from(connections);
    let mut obstacles: Vec<_> = checks.iter().filter_map(|check| check(need, facts)).filter(too_low).collect();
    obstacles.sort_by_key(|obstacle| obstacle.allows);
    if obstacles.is_empty() {
        return Ok(());
    }
    let told = |obstacle: &Obstacle| format!("{} for {}", obstacle.what, spelt(obstacle.allows));
    let all: Vec<_> = obstacles.iter().map(told).collect();
    let raise: Vec<_> = obstacles.iter().map(|obstacle| obstacle.raise.as_str()).collect();
    Err(Trouble {
        kind: ErrorKind::Limit,
        message: format!("{connections} connections are asked for, and {}", all.join("; ")),
        hint: format!("ask for fewer connections, or {}", raise.join("; and ")),
    })
}

fn spelt(connections: u64) -> String {
    if connections == 0 { "none".to_owned() } else { format!("{connections} of them") }
}

/// As long as processes can be added this is no limit, but each needs room for a connection, and there are not endlessly many.
fn descriptors(need: &Need, _: &Facts) -> Option<Obstacle> {
    if need.plan.is_some() {
        return None;
    }
    let Room { descriptors, .. } = need.room;
    Some(Obstacle {
        what: format!(
            "the {descriptors} descriptors that one process may hold (`ulimit -Hn`) are enough, in as many processes as the \
             engine starts,"
        ),
        allows: need.room.processes() * need.room.connections(),
        raise:
            "raise the hard limit of descriptors (LimitNOFILE in systemd, /etc/security/limits.conf; not past sysctl \
                fs.nr_open)"
                .to_owned(),
    })
}

fn open_files(_: &Need, facts: &Facts) -> Option<Obstacle> {
    let left = facts.open_files_left?;
    let ends = ends(facts);
    Some(Obstacle {
        what: format!("the {left} files that this machine may still open (fs.file-max) are enough{}", both(ends)),
        allows: left / ends,
        raise: "raise it: `sysctl -w fs.file-max=…`".to_owned(),
    })
}

fn ports(need: &Need, facts: &Facts) -> Option<Obstacle> {
    let ports = facts.local_ports?;
    let Need { target, sources, .. } = need;
    let from = if *sources == 1 { "one local address".to_owned() } else { format!("{sources} local addresses") };
    let more = if target.ip().is_loopback() && target.is_ipv6() {
        "reach the server at 127.0.0.1, where there are many addresses to connect from (IPv6 has one, ::1)"
    } else {
        "name more local addresses in target.sources"
    };
    Some(Obstacle {
        what: format!(
            "the {ports} local ports (net.ipv4.ip_local_port_range without those that are reserved) from {from} to {target} \
             are enough"
        ),
        allows: ports * u64::from(*sources),
        raise: format!("{more}, or widen the range: `sysctl -w net.ipv4.ip_local_port_range='1024 65535'`"),
    })
}

fn memory(need: &Need, facts: &Facts) -> Option<Obstacle> {
    let available = facts.memory_available?;
    let ends = ends(facts);
    let each = need.engine_bytes + ends * SOCKET_BYTES;
    Some(Obstacle {
        what: format!(
            "the {} MiB of memory that are free are enough, at {each} bytes each in the engine and the kernel{},",
            available >> 20,
            both(ends)
        ),
        allows: available / each,
        raise: "free memory, or raise the memory limit of the container or cgroup".to_owned(),
    })
}

fn processes(need: &Need, facts: &Facts) -> Option<Obstacle> {
    let plan = need.plan.filter(|plan| plan.processes > 1)?;
    let left = facts.threads_left?;
    let needed = u64::from(plan.processes) * OTHER_THREADS + u64::from(plan.workers);
    if needed <= left {
        return None;
    }
    let process = OTHER_THREADS + u64::from(plan.workers.div_ceil(plan.processes));
    let (_, workers) = plan.workers_of(0);
    let per_process = need.room.connections().saturating_sub(need.room.per_worker * u64::from(workers - 1));
    Some(Obstacle {
        what: format!(
            "the {left} processes and threads that may still be started (`ulimit -u`, pids.max) are enough, at {process} for \
             each {per_process} connections,"
        ),
        allows: left / process * per_process,
        raise:
            "raise the limit of processes (`ulimit -u`, TasksMax in systemd, pids-limit of the container), or that of \
                descriptors, so that fewer are needed"
                .to_owned(),
    })
}

fn watches(need: &Need, facts: &Facts) -> Option<Obstacle> {
    let watches = facts.epoll_watches.filter(|_| need.watched)?;
    Some(Obstacle {
        what: format!("the {watches} sockets that one user may watch (fs.epoll.max_user_watches) are enough"),
        allows: watches,
        raise: "raise it: `sysctl -w fs.epoll.max_user_watches=…`, or take the backend io_uring, which needs none"
            .to_owned(),
    })
}

fn tracked(_: &Need, facts: &Facts) -> Option<Obstacle> {
    let left = facts.tracked_left?;
    Some(Obstacle {
        what: format!(
            "the {left} entries that are free in the connection tracking table (net.netfilter.nf_conntrack_max) are enough"
        ),
        allows: left,
        raise: "raise it: `sysctl -w net.netfilter.nf_conntrack_max=…`, or exempt this traffic (NOTRACK)".to_owned(),
    })
}

/// How many ends of each connection are on this machine.
fn ends(facts: &Facts) -> u64 {
    if facts.target_is_local { 2 } else { 1 }
}

fn both(ends: u64) -> &'static str {
    if ends == 2 { ", both ends being on this machine" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::Sources;

    const ROOM: Room = Room { descriptors: 20_000, others: 12, per_worker: 2 };

    fn facts() -> Facts {
        Facts {
            target_is_local: true,
            open_files_left: Some(2_400_000),
            local_ports: Some(28_232),
            memory_available: Some(24 << 30),
            threads_left: Some(20_000),
            epoll_watches: Some(5_490_265),
            tracked_left: None,
        }
    }

    fn need(connections: u32, target: &str) -> Need {
        let target = target.parse().unwrap();
        Need {
            connections,
            target,
            sources: Sources::new(target, &[], connections).count(),
            engine_bytes: 2048,
            watched: true,
            room: ROOM,
            plan: Plan::new(connections, 1, ROOM),
        }
    }

    /// What is said has the limit and its number; what is hinted has the way to raise it. One fewer than allowed passes.
    fn stands_in_the_way(need: &Need, facts: &Facts, limit: &str, allows: u64, way: &str) {
        let trouble = check(need, facts).unwrap_err();
        assert_eq!(trouble.kind, ErrorKind::Limit);
        let number = if allows == 0 { "for none".to_owned() } else { format!("for {allows} of them") };
        assert!(trouble.message.contains(limit) && trouble.message.contains(&number), "{}", trouble.message);
        assert!(trouble.message.starts_with(&need.connections.to_string()), "{}", trouble.message);
        assert!(trouble.hint.contains(way), "{}", trouble.hint);
    }

    #[test]
    fn a_quarter_of_a_million_on_loopback_is_allowed() {
        check(&need(250_000, "127.0.0.1:80"), &facts()).unwrap();
        check(&need(1, "192.0.2.1:80"), &facts()).unwrap();
    }

    #[test]
    fn what_is_not_known_is_no_limit() {
        let nothing = Facts {
            target_is_local: false,
            open_files_left: None,
            local_ports: None,
            memory_available: None,
            threads_left: None,
            epoll_watches: None,
            tracked_left: None,
        };
        check(&need(10_000_000, "192.0.2.1:80"), &nothing).unwrap();
    }

    #[test]
    fn one_source_address_has_so_many_ports() {
        check(&need(28_232, "192.0.2.1:80"), &facts()).unwrap();
        let way = "target.sources";
        stands_in_the_way(&need(28_233, "192.0.2.1:80"), &facts(), "local ports", 28_232, way);
        stands_in_the_way(&need(28_233, "[::1]:80"), &facts(), "local ports", 28_232, "127.0.0.1");
        let two = Need { sources: 2, ..need(50_000, "192.0.2.1:80") };
        check(&two, &facts()).unwrap();
        stands_in_the_way(&Need { connections: 60_000, ..two }, &facts(), "2 local addresses", 56_464, way);
    }

    #[test]
    fn memory_is_needed_for_the_ends_that_are_here() {
        let small = Facts { memory_available: Some(1 << 30), ..facts() };
        stands_in_the_way(&need(100_000, "127.0.0.1:80"), &small, "1024 MiB", (1 << 30) / 12_048, "memory limit");
        let apart = Facts { target_is_local: false, ..small };
        check(&need(100_000, "127.0.0.1:80"), &apart).unwrap();
    }

    #[test]
    fn other_limits_are_named_too() {
        let need = need(250_000, "127.0.0.1:80");
        let few = |change: fn(&mut Facts)| {
            let mut facts = facts();
            change(&mut facts);
            facts
        };
        let files = few(|facts| facts.open_files_left = Some(300_000));
        stands_in_the_way(&need, &files, "fs.file-max", 150_000, "fs.file-max");
        let watches = few(|facts| facts.epoll_watches = Some(1000));
        stands_in_the_way(&need, &watches, "max_user_watches", 1000, "io_uring");
        check(&Need { watched: false, ..need }, &watches).unwrap();
        let tracked = few(|facts| facts.tracked_left = Some(65_536));
        stands_in_the_way(&need, &tracked, "nf_conntrack_max", 65_536, "NOTRACK");
        let threads = few(|facts| facts.threads_left = Some(60));
        stands_in_the_way(&need, &threads, "ulimit -u", 10 * 19_986, "TasksMax");
        let none = few(|facts| facts.threads_left = Some(0));
        stands_in_the_way(&need, &none, "ulimit -u", 0, "TasksMax");
    }

    #[test]
    fn descriptors_are_a_limit_when_processes_do_not_help() {
        let room = Room { descriptors: 14, ..ROOM };
        let need = Need { room, plan: Plan::new(1, 1, room), ..need(1, "127.0.0.1:80") };
        stands_in_the_way(&need, &facts(), "ulimit -Hn", 0, "LimitNOFILE");
    }

    #[test]
    fn the_lowest_limit_is_told_first_and_the_others_after_it() {
        let facts = Facts { tracked_left: Some(2000), epoll_watches: Some(1000), ..facts() };
        let trouble = check(&need(100_000, "127.0.0.1:80"), &facts).unwrap_err();
        let (first, second) = (trouble.message.find("watches").unwrap(), trouble.message.find("conntrack").unwrap());
        assert!(first < second, "{}", trouble.message);
        assert!(trouble.hint.contains("NOTRACK"));
    }
}
