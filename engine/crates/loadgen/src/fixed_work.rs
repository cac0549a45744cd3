//! `redline-engine fixed-work CPUS`: how much CPU time a fixed piece of work takes on each of these cores.
//!
//! The work keeps the execution units of a core busy and touches no memory. It shows the clock rate, and whether another
//! hardware thread uses the same core, which a guest of a hypervisor cannot see otherwise.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io;
use std::thread;

use crate::sys::process::pin;
use crate::sys::time::thread_cpu_ns;

/// About 10 ms at 3 GHz if the core is shared, 6 ms if not.
const ROUNDS: u32 = 2_500_000;
/// An idle core needs a moment to wake up, which is not counted.
const ROUNDS_BEFORE: u32 = ROUNDS / 10;

/// CPU time by core, in nanoseconds. All cores work at the same time, as under load.
///
/// # Errors
/// When this process may not run on one of the cores.
pub fn measure(cpus: &[u32]) -> io::Result<BTreeMap<u32, u64>> {
    thread::scope(|scope| {
        let threads: Vec<_> = cpus.iter().map(|cpu| (*cpu, scope.spawn(|| on(*cpu)))).collect();
        threads.into_iter().map(|(cpu, thread)| Ok((cpu, thread.join().map_err(|_| io::ErrorKind::Other)??))).collect()
    })
}

fn on(cpu: u32) -> io::Result<u64> {
    pin(&[cpu])?;
    work(ROUNDS_BEFORE);
    let before_ns = thread_cpu_ns();
    work(ROUNDS);
    Ok(thread_cpu_ns() - before_ns)
}

/// Eight independent chains of additions, rotations and exclusive ors.
fn work(rounds: u32) {
    let mut chains = black_box([1_u64, 2, 3, 4, 5, 6, 7, 8]);
    for _ in 0..rounds {
        for chain in &mut chains {
            *chain = chain.rotate_left(7) ^ chain.wrapping_add(0x9E37_79B9_7F4A_7C15);
        }
    }
    black_box(chains);
}
