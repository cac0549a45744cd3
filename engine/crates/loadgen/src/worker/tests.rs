use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use redline_pacing::{Crowd, Profile, Think};
use redline_traffic::Phase;

use super::*;
use crate::demand::Users;
use crate::io::epoll::Epoll;
use crate::job::tests::job;
use crate::stop::INTERRUPTED;
use crate::tally::{IntervalSender, Window, WorkerInterval};

#[test]
fn who_hears_late_of_the_end_has_measured_until_then() {
    let stop = Arc::new(Stop::new().unwrap());
    stop.ask(INTERRUPTED);
    while now_ns() <= stop.at_ns() {
        thread::sleep(Duration::from_millis(1));
    }
    let heard_ns = now_ns();
    let epoch_ns = stop.at_ns() - 1_000_000;
    let window = Window { epoch_ns, measure_ns: epoch_ns, end_ns: epoch_ns + 10_000_000_000 };
    let (sender, pieces) = channel();
    let (_lender, returned) = channel();
    let outlet = IntervalSender { pieces: Box::new(move |piece| sender.send(piece).unwrap()), spare: returned };
    let job = Arc::new(job("127.0.0.1"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let scenario = Scenario::new(&job, 0);
    let crowd = Crowd::new(&Profile::constant(1.0), 0, 1);
    let users = Users { crowd, think: Think::None, pace: None, depth: 1, seed: 1, worker: 0, workers: 1 };
    let mut pool: Pool<Epoll> = Pool::new(&job, scenario.tapes(), listener.local_addr().unwrap(), 0, 1, &stop).unwrap();
    pool.grow(1);
    let share = WorkerParts {
        pool,
        demand: Demand::closed(users, epoch_ns, window.end_ns),
        scenario,
        tally: Tally::new(window, job.interval_ns, outlet),
        reasons: FailureLog::new(0),
        count: None,
    };
    let cut_ns = Worker::new(share, job, stop, window.end_ns).run().unwrap().unwrap();
    assert!(cut_ns >= heard_ns);
    let pieces: Vec<WorkerInterval> = pieces.iter().collect();
    let measured = pieces.iter().rfind(|piece| piece.phase == Phase::Measure).unwrap();
    assert_eq!(epoch_ns + measured.end_ns, cut_ns);
    assert_eq!(pieces.iter().map(|piece| piece.slice.counts.outcomes.total()).sum::<u64>(), 1);
}
