//! A cache of heads: servers send the same head again and again, so it is compared instead of parsed.

use crate::head::{self, Head};
use crate::malformed::Malformed;

/// How many heads are kept: for some requests of a scenario, some servers behind a proxy, or the seconds of `Date`.
const KEPT: usize = 4;
/// The longest head that is kept.
const LONGEST_KEPT: usize = 1024;
/// After this many unknown heads in a row, heads are assumed to be new (a `Date` in milliseconds, an id) …
const MOST_MISSES: u32 = 64;
/// … and only one head of this many is looked up and kept, to see whether that has changed.
const TRY_EACH: u32 = 16;

/// The last few heads that were parsed, shared by the connections of a worker.
///
/// The cache changes what a parse costs, never its result. A head ends at its first blank line, and a parse reads nothing after
/// that, so it is a function of those bytes (and of whether the method was HEAD): bytes that begin with exactly a head parsed
/// before, blank line included, have the same parse.
#[derive(Clone, Debug, Default)]
pub struct Heads {
    kept: Vec<Kept>,
    /// The index of the last hit or the newest head, which is compared first.
    last: usize,
    misses: u32,
}

#[derive(Clone, Debug)]
struct Kept {
    bytes: Vec<u8>,
    is_head: bool,
    head: Head,
}

impl Heads {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The result of [`head::parse`], from the cache if possible.
    #[expect(clippy::inline_always, reason = "measured: a call costs a tenth of reading an answer")]
    #[inline(always)]
    pub(crate) fn parse(&mut self, bytes: &[u8], is_head: bool) -> Result<Option<Head>, Malformed> {
        if self.misses > MOST_MISSES && !self.misses.is_multiple_of(TRY_EACH) {
            self.misses = self.misses.wrapping_add(1);
            return head::parse(bytes, is_head);
        }
        for i in (self.last..self.kept.len()).chain(0..self.last) {
            let kept = &self.kept[i];
            if kept.is_head == is_head && bytes.starts_with(&kept.bytes) {
                self.last = i;
                self.misses = 0;
                return Ok(Some(kept.head));
            }
        }
        let parsed = head::parse(bytes, is_head);
        if let Ok(Some(head)) = &parsed {
            self.misses = self.misses.wrapping_add(1);
            self.keep(&bytes[..head.bytes], is_head, *head);
        }
        parsed
    }

    /// Keep a head, in place of the kept head that follows the last hit or the newest head.
    fn keep(&mut self, bytes: &[u8], is_head: bool, head: Head) {
        if bytes.len() > LONGEST_KEPT {
            return;
        }
        if self.kept.len() < KEPT {
            self.last = self.kept.len();
            return self.kept.push(Kept { bytes: bytes.to_vec(), is_head, head });
        }
        self.last = (self.last + 1) % KEPT;
        let kept = &mut self.kept[self.last];
        kept.bytes.clear();
        kept.bytes.extend_from_slice(bytes);
        (kept.is_head, kept.head) = (is_head, head);
    }
}
