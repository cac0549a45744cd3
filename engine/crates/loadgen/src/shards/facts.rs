//! The limits of this machine, read from the kernel. A limit that cannot be read is unknown, and is not checked.

use std::fs;
use std::net::UdpSocket;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::peers::Peers;

/// The present limits of this machine; `None` if unknown.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Whether the target is this machine, which then has both ends of the connections.
    pub target_is_local: bool,
    pub open_files_left: Option<u64>,
    /// Ports that the kernel may choose for a connection.
    pub local_ports: Option<u64>,
    /// In bytes.
    pub memory_available: Option<u64>,
    pub threads_left: Option<u64>,
    /// Sockets that a user may watch.
    pub epoll_watches: Option<u64>,
    /// Free entries of the connection tracking table, if it is in use.
    pub tracked_left: Option<u64>,
}

impl Facts {
    pub fn read(target: &Peers) -> Self {
        let memory = [memory_of_machine(), memory_of_cgroup()];
        let threads = [threads_of_user(), threads_of_cgroup()];
        Self {
            // Only an address of this machine can be bound to.
            target_is_local: target.ips().all(|ip| UdpSocket::bind((ip, 0)).is_ok()),
            open_files_left: open_files_left(),
            local_ports: local_ports(),
            memory_available: memory.into_iter().flatten().min(),
            threads_left: threads.into_iter().flatten().min(),
            epoll_watches: number("/proc/sys/fs/epoll/max_user_watches"),
            tracked_left: tracked_left(),
        }
    }
}

fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The number in a file; `None` for `max`.
fn number(path: impl AsRef<Path>) -> Option<u64> {
    text(path)?.trim().parse().ok()
}

/// The value of a line `key value …`, with or without a colon.
fn valued<T: FromStr>(text: &str, key: &str) -> Option<T> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let matches = words.next().is_some_and(|word| word.trim_end_matches(':') == key);
        matches.then(|| words.next()?.parse().ok())?
    })
}

fn open_files_left() -> Option<u64> {
    let text = text("/proc/sys/fs/file-nr")?;
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let (open, most) = (numbers.next()?.ok()?, numbers.nth(1)?.ok()?);
    Some(most.saturating_sub(open))
}

fn local_ports() -> Option<u64> {
    let range = text("/proc/sys/net/ipv4/ip_local_port_range")?;
    let mut ends = range.split_whitespace().map(str::parse::<u64>);
    let range = ends.next()?.ok()?..=ends.next()?.ok()?;
    let reserved = text("/proc/sys/net/ipv4/ip_local_reserved_ports").unwrap_or_default();
    Some(free_ports(&range, &reserved))
}

/// How many ports of a range are not in a list such as `8080,9000-9010`.
fn free_ports(range: &RangeInclusive<u64>, reserved: &str) -> u64 {
    let spans = reserved.trim().split(',').filter_map(|span| {
        let (first, last) = span.split_once('-').unwrap_or((span, span));
        Some(first.parse().ok()?..=last.parse::<u64>().ok()?)
    });
    let spans: Vec<_> = spans.collect();
    range.clone().filter(|port| !spans.iter().any(|span| span.contains(port))).count() as u64
}

fn memory_of_machine() -> Option<u64> {
    valued::<u64>(&text("/proc/meminfo")?, "MemAvailable").map(|kib| kib << 10)
}

/// The memory that the tightest memory limit of this process's control groups leaves. Cached files make way.
fn memory_of_cgroup() -> Option<u64> {
    let left = |group: PathBuf, most: &str, used: &str, cached: &str| {
        let cached = text(group.join("memory.stat")).and_then(|stat| valued(&stat, cached)).unwrap_or(0);
        Some((number(group.join(most))? + cached).saturating_sub(number(group.join(used))?))
    };
    let v2 = groups("").into_iter().filter_map(|group| left(group, "memory.max", "memory.current", "inactive_file"));
    let names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file");
    let v1 = groups("memory").into_iter().filter_map(|group| left(group, names.0, names.1, names.2));
    v2.chain(v1).min()
}

fn threads_of_cgroup() -> Option<u64> {
    let left =
        |group: PathBuf| Some(number(group.join("pids.max"))?.saturating_sub(number(group.join("pids.current"))?));
    groups("").into_iter().chain(groups("pids")).filter_map(left).min()
}

/// The folders of this process's control groups, up to the root: of a controller's own hierarchy (version 1), or of the common
/// hierarchy (version 2, which has no name for its controller).
fn groups(controller: &str) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup").join(controller);
    let own = text("/proc/self/cgroup").unwrap_or_default();
    let path = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let matches = parts.next()?.split(',').any(|name| name == controller);
        matches.then(|| parts.next()?.strip_prefix('/'))?
    });
    let Some(path) = path else {
        return Vec::new();
    };
    Path::new(path).ancestors().map(|group| root.join(group)).collect()
}

/// `RLIMIT_NPROC` counts the threads of a user, and does not limit root.
fn threads_of_user() -> Option<u64> {
    let status = text("/proc/self/status")?;
    let uid: u32 = valued(&status, "Uid")?;
    let limits = text("/proc/self/limits")?;
    let line = limits.lines().find(|line| line.starts_with("Max processes"))?;
    let most: u64 = line.split_whitespace().nth(2)?.parse().ok()?;
    if uid == 0 {
        return None;
    }
    let threads = |entry: fs::DirEntry| {
        let status = text(entry.path().join("status"))?;
        (valued::<u32>(&status, "Uid")? == uid).then(|| valued::<u64>(&status, "Threads"))?
    };
    let used: u64 = fs::read_dir("/proc").ok()?.flatten().filter_map(threads).sum();
    Some(most.saturating_sub(used))
}

/// A table without entries is not in use.
fn tracked_left() -> Option<u64> {
    let used = number("/proc/sys/net/netfilter/nf_conntrack_count").filter(|used| *used > 0)?;
    Some(number("/proc/sys/net/netfilter/nf_conntrack_max")?.saturating_sub(used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_ports_are_not_free() {
        let range = 32_768..=60_999;
        assert_eq!(free_ports(&range, "\n"), 28_232);
        assert_eq!(free_ports(&range, "80,32768-32777,60999,61000-62000\n"), 28_221);
    }

    #[test]
    fn a_value_is_found_by_its_key() {
        let text = "MemTotal:  9 kB\nMemAvailable:   24174668 kB\nUid:\t7\t8\ninactive_file 5\n";
        assert_eq!(valued::<u64>(text, "MemAvailable"), Some(24_174_668));
        assert_eq!(valued::<u32>(text, "Uid"), Some(7));
        assert_eq!(valued::<u64>(text, "inactive_file"), Some(5));
        assert_eq!(valued::<u64>(text, "MemFree"), None);
    }

    fn at(ip: [u8; 4]) -> Peers {
        std::net::SocketAddr::from((ip, 80)).into()
    }

    #[test]
    fn this_machine_has_the_limits_that_every_linux_has() {
        let facts = Facts::read(&at([127, 0, 0, 1]));
        assert!(facts.target_is_local);
        assert!(facts.open_files_left.is_some_and(|left| left > 0));
        assert!(facts.local_ports.is_some_and(|ports| ports > 0));
        assert!(facts.memory_available.is_some_and(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn an_address_of_nobody_is_not_local() {
        // 192.0.2.0/24 is for documentation (RFC 5737).
        assert!(!Facts::read(&at([192, 0, 2, 1])).target_is_local);
    }
}
