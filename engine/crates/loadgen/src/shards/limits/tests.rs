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
    let target = target.parse::<std::net::SocketAddr>().unwrap().into();
    Need {
        connections,
        sources: Sources::new(&target, &[], connections).count(),
        target,
        engine_bytes: 2048,
        watched: true,
        room: ROOM,
        plan: Plan::new(connections, 1, ROOM),
    }
}

/// The message has the limit and its number; the hint has the way to raise it. One connection fewer than allowed passes.
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
    check(&Need { watched: false, ..need.clone() }, &watches).unwrap();
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
fn the_lowest_limit_is_reported_first_and_the_others_after_it() {
    let facts = Facts { tracked_left: Some(2000), epoll_watches: Some(1000), ..facts() };
    let trouble = check(&need(100_000, "127.0.0.1:80"), &facts).unwrap_err();
    let (first, second) = (trouble.message.find("watches").unwrap(), trouble.message.find("conntrack").unwrap());
    assert!(first < second, "{}", trouble.message);
    assert!(trouble.hint.contains("NOTRACK"));
}
