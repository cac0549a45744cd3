//! The memory of a session. Freed blocks are kept for the next request, because the free lists of the C library are too short
//! for 16 requests in flight. Without the pool, a request of `examples/cost.rs` takes 14% more instructions (callgrind).

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::ptr::{self, NonNull};

use libnghttp2_sys as ng;

/// Kept blocks have sizes of 64 bytes, 128, … up to `STEPS` steps; all blocks that nghttp2 needs per request are within.
const STEP: usize = 64;
const STEPS: usize = 8;
/// Bytes before a block, which hold its size and keep the alignment that C requires.
const HEAD: usize = 16;

/// Lists of free blocks, the newest first; a free block holds a pointer to the next.
#[derive(Default)]
pub struct Pool {
    free: [Option<NonNull<u8>>; STEPS],
}

impl Pool {
    /// The hooks, which nghttp2 copies. The pool must outlive the session.
    pub fn hooks(pool: NonNull<Self>) -> ng::nghttp2_mem {
        ng::nghttp2_mem {
            mem_user_data: pool.as_ptr().cast(),
            malloc: Some(malloc),
            free: Some(free),
            calloc: Some(calloc),
            realloc: Some(realloc),
        }
    }

    fn take(&mut self, size: usize) -> *mut u8 {
        let steps = size.div_ceil(STEP).max(1);
        if let Some(list) = self.free.get_mut(steps - 1)
            && let Some(block) = *list
        {
            // SAFETY: a free block holds a pointer to the next.
            *list = unsafe { block.cast().read() };
            return block.as_ptr();
        }
        let Some(layout) = layout(steps) else { return ptr::null_mut() };
        // SAFETY: the layout is not empty; the head is within the block.
        unsafe {
            let Some(head) = NonNull::new(alloc(layout)) else { return ptr::null_mut() };
            head.cast().write(steps);
            head.add(HEAD).as_ptr()
        }
    }

    /// # Safety
    /// The block came from [`Pool::take`] and is not used afterwards.
    unsafe fn give(&mut self, block: NonNull<u8>) {
        // SAFETY: the caller's promise: the size is before the block, which has room for a pointer to the next.
        unsafe {
            match self.free.get_mut(steps_of(block) - 1) {
                Some(list) => {
                    block.cast().write(*list);
                    *list = Some(block);
                }
                None => release(block),
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for list in &mut self.free {
            while let Some(block) = *list {
                // SAFETY: a free block holds a pointer to the next, and is in one list, once.
                unsafe {
                    *list = block.cast().read();
                    release(block);
                }
            }
        }
    }
}

fn layout(steps: usize) -> Option<Layout> {
    Layout::from_size_align(steps.checked_mul(STEP)?.checked_add(HEAD)?, HEAD).ok()
}

/// # Safety
/// The block came from [`Pool::take`].
unsafe fn steps_of(block: NonNull<u8>) -> usize {
    // SAFETY: the caller's promise: the size is there.
    unsafe { block.sub(HEAD).cast().read() }
}

/// # Safety
/// The block came from [`Pool::take`], is not used afterwards, and is in no list.
unsafe fn release(block: NonNull<u8>) {
    // SAFETY: the caller's promise; the layout is that of the allocation.
    unsafe {
        if let Some(layout) = layout(steps_of(block)) {
            dealloc(block.sub(HEAD).as_ptr(), layout);
        }
    }
}

/// # Safety
/// `pool` is the argument of [`Pool::hooks`]; nghttp2 uses it from one place at a time, and hooks do not nest.
unsafe fn pool<'a>(pool: *mut c_void) -> &'a mut Pool {
    // SAFETY: the caller's promise.
    unsafe { &mut *pool.cast() }
}

unsafe extern "C" fn malloc(size: usize, user: *mut c_void) -> *mut c_void {
    // SAFETY: nghttp2 passes its user data.
    unsafe { pool(user).take(size).cast() }
}

unsafe extern "C" fn free(block: *mut c_void, user: *mut c_void) {
    if let Some(block) = NonNull::new(block.cast()) {
        // SAFETY: nghttp2 passes its user data, and a block of ours that it no longer uses.
        unsafe { pool(user).give(block) }
    }
}

unsafe extern "C" fn calloc(count: usize, size: usize, user: *mut c_void) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else { return ptr::null_mut() };
    // SAFETY: nghttp2 passes its user data; the block has room for as many bytes.
    unsafe {
        let block = pool(user).take(size);
        if !block.is_null() {
            block.write_bytes(0, size);
        }
        block.cast()
    }
}

unsafe extern "C" fn realloc(block: *mut c_void, size: usize, user: *mut c_void) -> *mut c_void {
    // SAFETY: nghttp2 passes its user data, and a block of ours that it no longer uses once there is a new block, which does
    // not overlap it.
    unsafe {
        let Some(old) = NonNull::new(block.cast::<u8>()) else { return malloc(size, user) };
        let held = steps_of(old) * STEP;
        if size <= held {
            return block;
        }
        let new = pool(user).take(size);
        if !new.is_null() {
            new.copy_from_nonoverlapping(old.as_ptr(), held);
            pool(user).give(old);
        }
        new.cast()
    }
}
