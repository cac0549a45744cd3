//! Single requests of a measurement, as rows in a file of each worker: all of them, or a sample where there are too many.
//!
//! A worker keeps its rows in memory, and writes them when its load is over. A row has a rank, drawn from its due time and its
//! user: half of all have at least rank 1, a quarter at least 2, and so on. Whenever a worker has too many rows, it drops those of
//! the lowest rank, and adds no more of it. So a sample of all workers is the rows of at least the highest of their levels.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::request::EndedRequest;

/// The first bytes of a file: the format.
const MAGIC: [u8; 8] = *b"RLREQS1\n";
/// In place of a time that is not known.
const UNKNOWN: i64 = -1;

/// Where the log is written, and how many rows all workers keep together.
#[derive(Clone, Debug)]
pub struct LogOrder {
    pub folder: PathBuf,
    pub at_most: u64,
}

/// The end of a request; times are nanoseconds since the epoch.
struct Row {
    due_ns: i64,
    written_ns: i64,
    first_ns: i64,
    end_ns: i64,
    seq: u64,
    request: u32,
    /// 0 without a complete answer.
    status: u16,
    outcome: u8,
    rank: u8,
}

/// The rows of a worker.
pub struct RequestLog {
    epoch_ns: u64,
    most: usize,
    rows: Vec<Row>,
    /// Rows of a lower rank are dropped.
    level: u8,
    /// How many requests ended.
    ended: u64,
}

impl RequestLog {
    pub fn new(epoch_ns: u64, most: u64) -> Self {
        let most = most.max(1) as usize;
        Self { epoch_ns, most, rows: Vec::with_capacity(most + 1), level: 0, ended: 0 }
    }

    /// A request of the measurement has ended.
    pub fn add(&mut self, ended: &EndedRequest, now_ns: u64) {
        self.ended += 1;
        let due_ns = self.since_epoch(ended.due.due_ns);
        let rank = rank(due_ns, ended.due.user);
        if rank < self.level {
            return;
        }
        self.rows.push(Row {
            due_ns,
            written_ns: ended.written_ns.map_or(UNKNOWN, |at_ns| self.since_epoch(at_ns)),
            first_ns: ended.first_ns.map_or(UNKNOWN, |at_ns| self.since_epoch(at_ns)),
            end_ns: self.since_epoch(now_ns),
            seq: ended.due.seq,
            request: ended.request,
            status: ended.status.unwrap_or(0),
            outcome: ended.outcome as u8,
            rank,
        });
        while self.rows.len() > self.most && self.level < u8::MAX {
            self.level += 1;
            let level = self.level;
            self.rows.retain(|row| row.rank >= level);
        }
    }

    #[expect(clippy::cast_possible_wrap, reason = "a load is shorter than 292 years")]
    fn since_epoch(&self, at_ns: u64) -> i64 {
        at_ns.wrapping_sub(self.epoch_ns) as i64
    }

    /// Write the rows to the file of a worker.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path, worker: u32) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(folder.join(format!("{worker}.rows")))?);
        file.write_all(&MAGIC)?;
        file.write_all(&u64::from(self.level).to_le_bytes())?;
        file.write_all(&self.ended.to_le_bytes())?;
        for row in &self.rows {
            row.write(&mut file)?;
        }
        file.flush()
    }
}

impl Row {
    fn write(&self, file: &mut impl Write) -> io::Result<()> {
        for time in [self.due_ns, self.written_ns, self.first_ns, self.end_ns] {
            file.write_all(&time.to_le_bytes())?;
        }
        file.write_all(&self.seq.to_le_bytes())?;
        file.write_all(&self.request.to_le_bytes())?;
        file.write_all(&self.status.to_le_bytes())?;
        file.write_all(&[self.outcome, self.rank])
    }
}

/// How often a request is halved into a sample: the trailing zeros of a hash (the finalizer of splitmix64).
fn rank(due_ns: i64, user: u32) -> u8 {
    let mut hash = due_ns.cast_unsigned().wrapping_add(u64::from(user).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (hash ^ (hash >> 31)).trailing_zeros() as u8
}

#[cfg(test)]
mod tests {
    use redline_traffic::Outcome;

    use super::*;
    use crate::request::DueRequest;

    fn log_of(requests: u64, most: u64) -> RequestLog {
        let mut log = RequestLog::new(1000, most);
        for i in 0..requests {
            let due = DueRequest::new(1000 + i * 997, (i % 7) as u32);
            log.add(&EndedRequest::unanswered(due, 0, None, Outcome::Unsent), 2000 + i * 997);
        }
        log
    }

    #[test]
    fn all_requests_are_rows_until_there_are_too_many() {
        let log = log_of(1000, 1000);
        assert_eq!((log.rows.len(), log.level, log.ended), (1000, 0, 1000));
        assert!(log.rows.iter().all(|row| row.end_ns - row.due_ns == 1000 && row.written_ns == UNKNOWN));
    }

    /// What a sample keeps does not depend on when it was halved.
    #[test]
    fn a_sample_is_all_rows_of_at_least_its_level() {
        let (all, some) = (log_of(10_000, 10_000), log_of(10_000, 1000));
        assert!(some.level >= 3 && some.rows.len() <= 1000, "{} rows of level {}", some.rows.len(), some.level);
        let due = |log: &RequestLog, level| -> Vec<i64> {
            log.rows.iter().filter(|row| row.rank >= level).map(|row| row.due_ns).collect()
        };
        assert_eq!(due(&some, 0), due(&all, some.level));
        assert_eq!(some.ended, 10_000);
    }

    #[test]
    fn half_of_all_have_the_lowest_rank() {
        let log = log_of(100_000, 100_000);
        let of_rank_0 = log.rows.iter().filter(|row| row.rank == 0).count();
        assert!((49_000..51_000).contains(&of_rank_0), "{of_rank_0}");
    }
}
