//! Splits a job among processes.
//!
//! A shard gets the complete job and the numbers of its workers among all workers. A worker takes its share of users, rate,
//! count and request numbers by its number, so the load does not depend on the number of processes.

use redline_pacing::MOST_WORKERS;
use serde_json::Value;

use crate::job::Shard;
use crate::peers::Peers;

/// How many descriptors a process may have.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The hard limit of descriptors.
    pub descriptors: u64,
    /// Descriptors besides those of connections and workers.
    pub others: u64,
    /// Descriptors of a worker besides its connections.
    pub per_worker: u64,
}

impl Room {
    /// How many connections fit in a process with a single worker.
    pub fn connections(&self) -> u64 {
        self.descriptors.saturating_sub(self.others + self.per_worker)
    }

    /// The most processes. A process has a worker, and the coordinator, which has the same limit, has three pipes to every
    /// process.
    pub fn processes(&self) -> u64 {
        let pipes = self.descriptors.saturating_sub(self.others + STARTING);
        u64::from(MOST_WORKERS).min(pipes / 3).max(1)
    }
}

/// Descriptors that the coordinator needs briefly to start a process: the other ends of its pipes, and a descriptor that
/// reports whether it started.
const STARTING: u64 = 8;

/// How many processes a job has, and how many workers they have in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub processes: u32,
    pub workers: u32,
}

impl Plan {
    /// The fewest processes that a job needs, with at least a worker for each. `None` when no number of processes is enough.
    pub fn new(connections: u32, workers: u32, room: Room) -> Option<Self> {
        let least = u64::from(connections).div_ceil(room.connections().max(1)).max(1);
        (least..=room.processes())
            .map(|processes| Self { processes: processes as u32, workers: workers.max(processes as u32) })
            .find(|plan| plan.fits(connections, room))
    }

    /// The first process has at least as many workers and connections as any other.
    fn fits(self, connections: u32, room: Room) -> bool {
        let (_, workers) = self.workers_of(0);
        self.connections_of(0, connections) + room.others + room.per_worker * u64::from(workers) <= room.descriptors
    }

    /// The number of a process's first worker among all workers, and how many workers it has.
    pub fn workers_of(self, process: u32) -> (u32, u32) {
        let (share, more) = (self.workers / self.processes, self.workers % self.processes);
        (process * share + process.min(more), share + u32::from(process < more))
    }

    /// How many of the job's connections a process has.
    pub fn connections_of(self, process: u32, connections: u32) -> u64 {
        let (share, more) = (connections / self.workers, connections % self.workers);
        let (first, workers) = self.workers_of(process);
        u64::from(workers) * u64::from(share) + u64::from(more.saturating_sub(first).min(workers))
    }
}

/// A job that is split among shards.
pub struct JobSplit {
    job: Value,
    plan: Plan,
    target: Peers,
    /// The number of this engine's first worker, and the number of all workers of the job.
    first_worker: u32,
    all_workers: u32,
}

impl JobSplit {
    /// The job as it was read; its shards end within this many nanoseconds from now. In a `part`, `numbers` are its first
    /// worker and the number of workers of all parts.
    ///
    /// # Errors
    /// When the text is not JSON.
    pub fn new(
        text: &str,
        plan: Plan,
        target: &Peers,
        deadline_ns: u64,
        numbers: Option<(u32, u32)>,
    ) -> serde_json::Result<Self> {
        let mut job: Value = serde_json::from_str(text)?;
        job["deadline_ns"] = deadline_ns.into();
        let (first_worker, all_workers) = numbers.unwrap_or((0, plan.workers));
        Ok(Self { job, plan, target: target.clone(), first_worker, all_workers })
    }

    /// The job of a shard, as a line: the complete job, with the workers of that process. Made one at a time, because bodies
    /// may be long.
    ///
    /// # Panics
    /// Never: a validated job is an object.
    pub fn line_of(&mut self, process: u32) -> String {
        let (first, workers) = self.plan.workers_of(process);
        let first_worker = self.first_worker + first;
        let shard = Shard { first_worker, all_workers: self.all_workers, target: Some(self.target.clone()) };
        self.job["workers"] = workers.into();
        self.job["shard"] = serde_json::to_value(shard).expect("numbers and an address are JSON");
        format!("{}\n", self.job)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const ROOM: Room = Room { descriptors: 20_000, others: 12, per_worker: 2 };

    fn at(address: &str) -> Peers {
        address.parse::<std::net::SocketAddr>().unwrap().into()
    }

    fn plan(connections: u32, workers: u32) -> Option<(u32, u32)> {
        Plan::new(connections, workers, ROOM).map(|plan| (plan.processes, plan.workers))
    }

    #[test]
    fn there_are_as_many_processes_as_it_takes() {
        assert_eq!(plan(1, 1), Some((1, 1)));
        assert_eq!(plan(19_986, 1), Some((1, 1)));
        assert_eq!(plan(19_984, 2), Some((1, 2)));
        assert_eq!(plan(19_985, 2), Some((2, 2)));
        assert_eq!(plan(19_987, 1), Some((2, 2)));
        assert_eq!(plan(250_000, 1), Some((13, 13)));
        // With 13 processes, one would have two of the 14 workers, and so too many connections.
        assert_eq!(plan(250_000, 14), Some((14, 14)));
        assert_eq!(plan(250_000, 64), Some((13, 64)));
        assert_eq!(plan(10_000_000, 1), Some((501, 501)));
        let none = Room { descriptors: 14, ..ROOM };
        assert_eq!(Plan::new(1, 1, none), None);
        // 100 descriptors are 26 processes with three pipes each, of 86 connections.
        let few = Room { descriptors: 100, ..ROOM };
        let most = Plan { processes: 26, workers: 26 };
        assert_eq!((Plan::new(26 * 86, 1, few), Plan::new(26 * 86 + 1, 1, few)), (Some(most), None));
    }

    proptest! {
        #[test]
        fn every_connection_has_one_process_and_fits(
            connections in 1_u32..2_000_000, workers in 1_u32..100, descriptors in 3000_u64..100_000
        ) {
            let room = Room { descriptors, ..ROOM };
            let workers = workers.min(connections);
            let plan = Plan::new(connections, workers, room).unwrap();
            prop_assert!(plan.workers >= workers && plan.workers >= plan.processes);
            let mut next_worker = 0;
            let mut sum = 0;
            for process in 0..plan.processes {
                let (first, count) = plan.workers_of(process);
                prop_assert_eq!(first, next_worker);
                prop_assert!(count >= 1);
                next_worker += count;
                let share = |worker: u32| {
                    u64::from(connections / plan.workers + u32::from(worker < connections % plan.workers))
                };
                let own: u64 = (first..first + count).map(share).sum();
                prop_assert_eq!(own, plan.connections_of(process, connections));
                prop_assert!(own + room.others + room.per_worker * u64::from(count) <= descriptors);
                sum += own;
            }
            prop_assert_eq!((next_worker, sum), (plan.workers, u64::from(connections)));
        }
    }

    #[test]
    fn a_shard_has_the_complete_job_and_its_own_workers() {
        let job = json!({"load": {"closed": {"users": 250_000}}, "workers": 1, "deadline_ns": 9, "body": "a\nb"});
        let plan = Plan { processes: 2, workers: 3 };
        let mut deal = JobSplit::new(&format!("{job:#}"), plan, &at("127.0.0.1:80"), 7, None).unwrap();
        let lines = [deal.line_of(0), deal.line_of(1)];
        assert!(lines.iter().all(|line| line.matches('\n').count() == 1 && line.ends_with('\n')));
        let read: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let shard = |first| json!({"first_worker": first, "all_workers": 3, "target": [{"tcp": "127.0.0.1:80"}]});
        for (line, workers, first) in [(&read[0], 2, 0), (&read[1], 1, 2)] {
            assert_eq!(line["load"], job["load"]);
            assert_eq!(line["body"], job["body"]);
            assert_eq!((&line["workers"], &line["deadline_ns"]), (&json!(workers), &json!(7)));
            assert_eq!(line["shard"], shard(first));
        }
    }
    #[test]
    fn the_workers_of_a_part_are_numbered_among_those_of_all() {
        let (job, plan) = (json!({"part": {"first_worker": 4, "all_workers": 9}}), Plan { processes: 2, workers: 3 });
        let target = at("10.0.0.1:80");
        let mut split = JobSplit::new(&job.to_string(), plan, &target, 7, Some((4, 9))).unwrap();
        let read: Value = serde_json::from_str(&split.line_of(1)).unwrap();
        assert_eq!(read["shard"], json!({"first_worker": 6, "all_workers": 9, "target": [{"tcp": "10.0.0.1:80"}]}));
    }
}
