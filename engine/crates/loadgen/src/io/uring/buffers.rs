//! The buffers that the kernel takes received bytes from: a ring of descriptions (`io_uring_buf_ring`) and their memory.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

/// What one receive takes at most.
const BUFFER_BYTES: usize = 16 * 1024;
/// The ring's length is a power of two between these; when all are in use, receiving waits for one.
const FEWEST: usize = 64;
const MOST: usize = 256;

pub struct Buffers {
    /// Page-aligned descriptions, shared with the kernel.
    ring: NonNull<BufRingEntry>,
    length: u16,
    tail: u16,
    memory: Box<[u8]>,
}

// SAFETY: the ring's memory belongs to this value alone (and the kernel).
unsafe impl Send for Buffers {}

impl Buffers {
    /// Make and register them, all the kernel's.
    pub fn register(ring: &IoUring, group: u16, connections: usize) -> io::Result<Self> {
        let length = connections.next_power_of_two().clamp(FEWEST, MOST);
        // SAFETY: an anonymous mapping of its own; the result is checked.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length * size_of::<BufRingEntry>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let entries = NonNull::new(mapped).ok_or(io::ErrorKind::OutOfMemory)?.cast::<BufRingEntry>();
        let memory = vec![0; length * BUFFER_BYTES].into_boxed_slice();
        let mut buffers = Self { ring: entries, length: length as u16, tail: 0, memory };
        // SAFETY: the mapping is as long as told, and lives as long as the ring: both are the backend's.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(entries.as_ptr() as u64, length as u16, group, 0)?;
        }
        for buffer in 0..length as u16 {
            buffers.give_back(buffer);
        }
        Ok(buffers)
    }

    /// The bytes that were received into a buffer.
    pub fn filled(&self, buffer: u16, length: usize) -> &[u8] {
        let start = usize::from(buffer) * BUFFER_BYTES;
        &self.memory[start..start + length]
    }

    /// The kernel may use a buffer again.
    pub fn give_back(&mut self, buffer: u16) {
        let place = usize::from(self.tail & (self.length - 1));
        let start = usize::from(buffer) * BUFFER_BYTES;
        // SAFETY: the place is within the ring, which the kernel reads only below the tail that is stored last; the tail lies in
        // the first entry (`io_uring_buf_ring`), and is read by the kernel as it is written here: atomically.
        unsafe {
            let entry = &mut *self.ring.as_ptr().add(place);
            entry.set_addr(self.memory.as_mut_ptr().add(start) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(self.ring.as_ptr()).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: mapped in `register`, as long as told; the ring of operations was dropped before (see the order of fields of
        // the backend), so the kernel is done with it.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), usize::from(self.length) * size_of::<BufRingEntry>()) };
    }
}
