use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use redline_pacing::{Crowd, Profile, Think};
use redline_traffic::Phase;

use super::*;
use crate::demand::{Demand, Users};
use crate::ids::GlobalWorkerId;
use crate::io::epoll::Epoll;
use crate::job::tests::job;
use crate::stop::INTERRUPTED;
use crate::tally::{IntervalSender, MemberInterval, Tally, Window};

#[test]
fn a_worker_that_learns_late_of_the_end_has_measured_until_then() {
    let stop = Arc::new(Stop::new().unwrap());
    stop.request(INTERRUPTED);
    while now_ns() <= stop.at_ns() {
        thread::sleep(Duration::from_millis(1));
    }
    let learned_ns = now_ns();
    let epoch_ns = stop.at_ns() - 1_000_000;
    let window = Window { epoch_ns, measure_ns: epoch_ns, end_ns: epoch_ns + 10_000_000_000 };
    let (sender, intervals) = channel();
    let (_lender, returned) = channel();
    let sender_of_intervals =
        IntervalSender { send: Box::new(move |interval| sender.send(interval).unwrap()), spare: returned };
    let job = Arc::new(job("127.0.0.1"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let crowd = Crowd::new(&Profile::constant(1.0), 0, 1);
    let users = Users { crowd, think: Think::None, pace: None, depth: 1, seed: 1, worker: 0, workers: 1 };
    let target = listener.local_addr().unwrap();
    let mut client = Client::<Epoll>::new(&job, GlobalWorkerId(0), &target.into(), 0, 1, &stop).unwrap();
    client.grow();
    let tally = Tally::new(window, job.interval_ns, sender_of_intervals);
    let load = WorkerLoad::new(Demand::closed(users, None, epoch_ns, window.end_ns), tally, None, &job);
    let cut_ns = Worker::new(load, client, Activity::default(), stop, false).run().unwrap().unwrap();
    assert!(cut_ns >= learned_ns);
    let intervals: Vec<MemberInterval> = intervals.iter().collect();
    let measured = intervals.iter().rfind(|interval| interval.phase == Phase::Measure).unwrap();
    assert_eq!(epoch_ns + measured.end_ns, cut_ns);
    assert_eq!(intervals.iter().map(|interval| interval.slice.counts.outcomes.total()).sum::<u64>(), 1);
}
