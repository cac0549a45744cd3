//! Whether this machine allows the connections of a job, computed from [`Facts`] before the first is opened.

use redline_traffic::{EngineError, ErrorKind};

use super::facts::Facts;
use super::split::{Plan, Room};
use crate::peers::Peers;

/// Kernel memory for one end of a connection: measured with 250 000 idle connections, rounded up.
const SOCKET_BYTES: u64 = 5_000;
/// Threads of a process besides its workers: the main thread, a thread that waits for signals, a thread that reads orders, and
/// two threads of the coordinator that read its output.
const OTHER_THREADS: u64 = 5;

/// What a job needs.
#[derive(Clone, Debug)]
pub struct Need {
    pub connections: u32,
    pub target: Peers,
    /// Different source addresses of connections.
    pub sources: u32,
    /// Memory of the engine per connection, in bytes.
    pub engine_bytes: u64,
    /// Whether every connection is registered with epoll.
    pub watched: bool,
    pub room: Room,
    /// `None` when no number of processes is enough.
    pub plan: Option<Plan>,
}

/// A limit that is too low.
struct Obstacle {
    what: String,
    /// How many connections the limit allows.
    allows: u64,
    /// How to raise it.
    raise: String,
}

/// Check that the machine allows what the job needs.
///
/// # Errors
/// A `limit` error: the lowest of the limits that are too low, how many connections it allows and how to raise it, and the
/// others.
pub fn check(need: &Need, facts: &Facts) -> Result<(), EngineError> {
    let connections = need.connections;
    let checks = [descriptors, open_files, ports, memory, processes, watches, tracked];
    let too_low = |obstacle: &Obstacle| obstacle.allows < u64::from(connections);
    let mut obstacles: Vec<_> = checks.iter().filter_map(|check| check(need, facts)).filter(too_low).collect();
    obstacles.sort_by_key(|obstacle| obstacle.allows);
    if obstacles.is_empty() {
        return Ok(());
    }
    let describe = |obstacle: &Obstacle| format!("{} for {}", obstacle.what, spelt(obstacle.allows));
    let all: Vec<_> = obstacles.iter().map(describe).collect();
    let raise: Vec<_> = obstacles.iter().map(|obstacle| obstacle.raise.as_str()).collect();
    Err(EngineError {
        kind: ErrorKind::Limit,
        message: format!("{connections} connections are asked for, and {}", all.join("; ")),
        hint: format!("ask for fewer connections, or {}", raise.join("; and ")),
    })
}

fn spelt(connections: u64) -> String {
    if connections == 0 { "none".to_owned() } else { format!("{connections} of them") }
}

/// Processes can be added, but every process needs room for a connection, and their number is limited.
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
    // A connection to a Unix socket takes no port.
    let ip = target.ip()?;
    let more = if ip.is_loopback() && ip.is_ipv6() {
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
    let per_connection = need.engine_bytes + ends * SOCKET_BYTES;
    Some(Obstacle {
        what: format!(
            "the {} MiB of memory that are free are enough, at {per_connection} bytes each in the engine and the kernel{},",
            available >> 20,
            both(ends)
        ),
        allows: available / per_connection,
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

/// How many ends of a connection are on this machine.
fn ends(facts: &Facts) -> u64 {
    if facts.target_is_local { 2 } else { 1 }
}

fn both(ends: u64) -> &'static str {
    if ends == 2 { ", both ends being on this machine" } else { "" }
}

#[cfg(test)]
mod tests;
