//! The buffers that the kernel receives into: a ring of descriptors shared with it (`io_uring_buf_ring`), and their memory.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

use crate::io::Chunk;

/// The most bytes per receive.
const BUFFER_BYTES: usize = 16 * 1024;
/// The ring's length is a power of two between these. While all buffers are in use, receiving waits for a buffer.
const FEWEST: usize = 64;
const MOST: usize = 256;

type Memory = [u8; BUFFER_BYTES];

pub struct Buffers {
    /// Page-aligned descriptors, shared with the kernel.
    ring: NonNull<BufRingEntry>,
    length: u16,
    tail: u16,
    /// The memory of every buffer that the kernel may write to: owned by this value, and not referenced meanwhile. `None` while
    /// a [`Chunk`] owns it.
    kernels: Vec<Option<NonNull<Memory>>>,
}

// SAFETY: only this value owns the memory that it points to.
unsafe impl Send for Buffers {}

impl Buffers {
    /// Allocate and register the buffers, and give all to the kernel. Before they are dropped, the ring's receives must have
    /// ended and the group must be unregistered: see the drop of the backend.
    pub fn register(ring: &IoUring, group: u16, connections: usize) -> io::Result<Self> {
        let length = connections.next_power_of_two().clamp(FEWEST, MOST);
        // SAFETY: an anonymous mapping at an address of the kernel's choice overlaps nothing; the result is checked.
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
        let mut buffers = Self { ring: entries, length: length as u16, tail: 0, kernels: vec![None; length] };
        // SAFETY: the mapping has room for `length` entries, and is unmapped only after the group is unregistered.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(entries.as_ptr() as u64, length as u16, group, 0)?;
        }
        for buffer in 0..length as u16 {
            buffers.give(buffer, vec![0; BUFFER_BYTES].into_boxed_slice());
        }
        Ok(buffers)
    }

    /// The bytes that the kernel has received into a buffer. The chunk then owns the buffer.
    pub fn take(&mut self, buffer: u16, length: usize) -> Option<Chunk> {
        let memory = self.kernels.get_mut(usize::from(buffer))?.take()?;
        // SAFETY: `Box::into_raw` made it in `give`, and it was taken out of the table here, so that it has one owner. The
        // kernel has used the buffer, and does not write to it until `give` describes it again.
        let memory = unsafe { Box::from_raw(memory.as_ptr()) };
        Some(Chunk { memory, from: 0, length, arrived_unix_ns: None, buffer })
    }

    /// Return a chunk's buffer to the kernel.
    pub fn give_back(&mut self, chunk: Chunk) {
        self.give(chunk.buffer, chunk.memory);
    }

    /// Return a buffer that the kernel has used and nobody has taken.
    pub fn recycle(&mut self, buffer: u16) {
        if let Some(Some(memory)) = self.kernels.get(usize::from(buffer)) {
            self.describe(buffer, *memory);
        }
    }

    /// Never free the buffers: the kernel may still write to them.
    pub fn leak(&mut self) {
        self.kernels.clear();
        self.length = 0;
    }

    /// Return memory to the kernel. Memory that is not this ring's, by its size or because the buffer has memory, is freed
    /// instead.
    fn give(&mut self, buffer: u16, memory: Box<[u8]>) {
        if let Some(place @ None) = self.kernels.get_mut(usize::from(buffer))
            && let Ok(memory) = Box::<Memory>::try_from(memory)
        {
            let memory = NonNull::from(Box::leak(memory));
            *place = Some(memory);
            self.describe(buffer, memory);
        }
    }

    fn describe(&mut self, buffer: u16, memory: NonNull<Memory>) {
        let place = usize::from(self.tail & (self.length - 1));
        // SAFETY: the index is within the ring, of which the kernel reads only entries below the tail, stored last. The tail
        // lies in the first entry (`io_uring_buf_ring`), and both sides access it atomically.
        unsafe {
            let entry = &mut *self.ring.as_ptr().add(place);
            entry.set_addr(memory.as_ptr() as u64);
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
        for memory in self.kernels.drain(..).flatten() {
            // SAFETY: made by `Box::leak` in `give`, and owned by the table; the kernel no longer uses it.
            drop(unsafe { Box::from_raw(memory.as_ptr()) });
        }
        if self.length > 0 {
            // SAFETY: mapped in `register` with this length; the group was unregistered.
            unsafe { libc::munmap(self.ring.as_ptr().cast(), usize::from(self.length) * size_of::<BufRingEntry>()) };
        }
    }
}
