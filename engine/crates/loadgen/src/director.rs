//! The main thread: starts the workers together, puts together what they tell, and tells it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use redline_pacing::Schedule;
use redline_traffic::{ENGINE_FORMAT, Ended, Engine, ErrorKind, Event, Interval, Phase, Started, Summary, Trouble};

use crate::demand::Demand;
use crate::job::{Job, Load};
use crate::merge::Merger;
use crate::output::tell;
use crate::pool::{Opened, Pool};
use crate::reasons::{Kind, Reasons};
use crate::stop::Stop;
use crate::sys::process::{exact_timers, give_way, pin, short_slices};
use crate::sys::time::{now_ns, thread_cpu_ns, unix_ns};
use crate::tally::{Outlet, Piece, Returns, Tally, Window};
use crate::worker::{Share, Worker};

/// How far ahead the epoch is set, so that every worker is there when it comes.
const NOTICE_NS: u64 = 1_000_000;

enum Message {
    Connected(Opened),
    Piece(usize, Piece),
    /// When its measurement ended, if it was cut.
    Finished {
        worker: usize,
        cut_ns: Option<u64>,
    },
    Failed(io::Error),
}

/// What a worker thread is given.
struct Place {
    number: u32,
    job: Arc<Job>,
    stop: Arc<Stop>,
    target: SocketAddr,
    messages: Sender<Message>,
    epoch: Receiver<u64>,
}

/// The main thread's side of a worker.
struct Hired {
    epoch: Sender<u64>,
    returns: Returns,
}

/// Do a job and tell its events; how it ended, or `None` when it was stopped before there was anything to tell.
///
/// # Errors
/// When it could not be done.
pub fn direct(job: &Arc<Job>, target: SocketAddr, stop: &Arc<Stop>) -> Result<Option<Ended>, Trouble> {
    let begun_ns = now_ns();
    let (messages, inbox) = channel();
    let hired = (0..job.workers)
        .map(|number| hire(number, job, stop, target, &messages))
        .collect::<io::Result<Vec<_>>>()
        .map_err(|error| internal(&error))?;
    drop(messages);
    let connections = wait_for_connections(&hired, &inbox, target, stop)?;
    if stop.code().is_some() {
        return Ok(None);
    }
    let epoch_ns = now_ns() + NOTICE_NS;
    tell(&Event::Started(Started {
        format: ENGINE_FORMAT,
        engine: Engine {
            name: "redline-engine",
            version: env!("CARGO_PKG_VERSION"),
            backend: "epoll",
            workers: job.workers,
            cpus: &job.cpus,
        },
        connections,
        connect_ns: epoch_ns - NOTICE_NS - begun_ns,
        epoch_unix_ns: unix_ns() + epoch_ns - now_ns(),
    }));
    for worker in &hired {
        // A worker that is gone has said why.
        let _ = worker.epoch.send(epoch_ns);
    }
    conduct(job, stop, &hired, &inbox, epoch_ns).map(Some)
}

/// Start a worker's thread.
fn hire(
    number: u32,
    job: &Arc<Job>,
    stop: &Arc<Stop>,
    target: SocketAddr,
    messages: &Sender<Message>,
) -> io::Result<Hired> {
    let (epoch, epoch_inbox) = channel();
    let (returns, returned) = channel();
    let place = Place {
        number,
        job: Arc::clone(job),
        stop: Arc::clone(stop),
        target,
        messages: messages.clone(),
        epoch: epoch_inbox,
    };
    thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
        let failures = place.messages.clone();
        if let Err(error) = place.work(returned) {
            let _ = failures.send(Message::Failed(error));
        }
    })?;
    Ok(Hired { epoch, returns })
}

impl Place {
    /// Connect, wait for the epoch, do this worker's share of the load.
    fn work(self, returned: Receiver<Box<redline_traffic::Slice>>) -> io::Result<()> {
        exact_timers();
        short_slices();
        if !self.job.cpus.is_empty() {
            pin(&[self.job.cpus[self.number as usize % self.job.cpus.len()]])?;
        }
        let share = share_of(self.job.load.connections(), self.number, self.job.workers);
        let mut pool = Pool::new(self.target, share, self.job.asked, &self.stop)?;
        let opened = pool.open_all(self.job.timeout_ns, &self.stop)?;
        let mut reasons = Reasons::new(self.number);
        if let Some(why) = &opened.error {
            reasons.tell(Kind::of_connecting(why), why);
        }
        let _ = self.messages.send(Message::Connected(opened));
        let Ok(epoch_ns) = self.epoch.recv() else {
            return Ok(());
        };
        let measure_ns = epoch_ns + self.job.warmup_ns;
        let window = Window { epoch_ns, measure_ns, end_ns: measure_ns + self.job.measure_ns };
        let worker = self.number as usize;
        let messages = self.messages.clone();
        let pieces = Box::new(move |piece| {
            let _ = messages.send(Message::Piece(worker, piece));
        });
        let tally = Tally::new(window, self.job.interval_ns, Outlet { pieces, spare: returned });
        let demand = self.demand(share, window)?;
        let share = Share { pool, demand, tally, reasons };
        let cut_ns = Worker::new(share, self.job, self.stop, window.end_ns).run()?;
        let _ = self.messages.send(Message::Finished { worker, cut_ns });
        Ok(())
    }

    fn demand(&self, share: usize, window: Window) -> io::Result<Demand> {
        Ok(match self.job.load {
            Load::Closed { .. } => Demand::closed(share, window.epoch_ns, window.end_ns),
            Load::Open { rate_per_s, arrivals, .. } => {
                let schedule = Schedule::new(rate_per_s, arrivals, self.job.seed, self.number, self.job.workers)
                    .map_err(io::Error::other)?;
                Demand::open(schedule, window.epoch_ns, window.end_ns)
            }
        })
    }
}

/// How many of `all` are for this worker.
fn share_of(all: u32, worker: u32, workers: u32) -> usize {
    (all / workers + u32::from(worker < all % workers)) as usize
}

/// Wait until every worker has tried; how many connections are open.
fn wait_for_connections(
    hired: &[Hired],
    inbox: &Receiver<Message>,
    target: SocketAddr,
    stop: &Stop,
) -> Result<u64, Trouble> {
    let mut open = 0;
    let mut reason = None;
    for _ in hired {
        match inbox.recv() {
            Ok(Message::Connected(opened)) => {
                open += opened.open as u64;
                reason = opened.error.or(reason);
            }
            Ok(Message::Failed(error)) => return Err(internal(&error)),
            Ok(_) => {}
            Err(error) => return Err(internal(&io::Error::other(error))),
        }
    }
    if open > 0 || stop.code().is_some() {
        return Ok(open);
    }
    let why = reason.map_or_else(|| "no answer in time".to_owned(), |error| error.to_string());
    Err(Trouble {
        kind: ErrorKind::Connect,
        message: format!("not one connection to {target} could be opened: {why}"),
        hint: "check that the server is running and listens on that address and port".to_owned(),
    })
}

/// Tell intervals as they end, and then the result.
fn conduct(
    job: &Job,
    stop: &Stop,
    hired: &[Hired],
    inbox: &Receiver<Message>,
    epoch_ns: u64,
) -> Result<Ended, Trouble> {
    give_way();
    let mut merger = Merger::new(hired.len());
    let mut last_cut_ns = None;
    let mut cpu_ns = thread_cpu_ns();
    while !merger.all_finished() {
        match inbox.recv() {
            Ok(Message::Piece(worker, piece)) => {
                if let Some(spare) = merger.add(worker, piece) {
                    let _ = hired[worker].returns.send(spare);
                }
            }
            Ok(Message::Finished { worker, cut_ns }) => {
                last_cut_ns = last_cut_ns.max(cut_ns);
                merger.finish(worker);
            }
            Ok(Message::Connected(_)) => {}
            Ok(Message::Failed(error)) => return Err(internal(&error)),
            Err(error) => return Err(internal(&io::Error::other(error))),
        }
        tell_intervals(&mut merger, hired, &mut cpu_ns);
    }
    let ended = if last_cut_ns.is_some() { stop.ended() } else { Ended::Complete };
    let planned_end_ns = job.warmup_ns + job.measure_ns;
    let measure_end_ns =
        last_cut_ns.map_or(planned_end_ns, |cut_ns| planned_end_ns.min(cut_ns.saturating_sub(epoch_ns)));
    tell(&Event::Result(Summary {
        ended,
        measure_start_ns: job.warmup_ns.min(measure_end_ns),
        measure_end_ns,
        slice: &merger.total,
    }));
    Ok(ended)
}

/// Tell every interval that all workers have told. The main thread's own CPU time belongs to the interval that it tells.
fn tell_intervals(merger: &mut Merger, hired: &[Hired], cpu_ns: &mut u64) {
    while let Some(mut merged) = merger.next() {
        let before_ns = std::mem::replace(cpu_ns, thread_cpu_ns());
        let own_ns = *cpu_ns - before_ns;
        let piece = &mut merged.piece;
        piece.slice.engine_cpu_ns += own_ns;
        if piece.phase == Phase::Measure {
            merger.total.engine_cpu_ns += own_ns;
        }
        tell(&Event::Interval(Interval {
            phase: piece.phase,
            index: merged.index,
            start_ns: piece.start_ns,
            end_ns: piece.end_ns,
            slice: &piece.slice,
        }));
        piece.slice.clear();
        let _ = hired[merged.lender].returns.send(merged.piece.slice);
    }
}

fn internal(error: &io::Error) -> Trouble {
    Trouble {
        kind: ErrorKind::Internal,
        message: format!("the system refused what it never should: {error}"),
        hint:
            "look at the limits of this process (descriptors, threads, memory) and report it if they are not the cause"
                .to_owned(),
    }
}
