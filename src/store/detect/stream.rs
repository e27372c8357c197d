//! A short test of memory bandwidth: all cores read, and compute a triad, over arrays far larger than the caches.
//!
//! After STREAM, <https://www.cs.virginia.edu/stream/ref.html>: arrays of at least four times the caches, the best of
//! several passes. Reading alone is what decode does with weights. To read is to compare two equal arrays: the C library
//! does it as fast as memory allows, however little the compiler optimised this program.

use std::hint::black_box;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::report::machine::MeasuredBandwidth;

/// Smallest size of all arrays: more than four times the caches that a few cores can reach.
const LEAST_TOTAL: f64 = 1_073_741_824.0;
/// Size of the arrays per thread: more than four times its part of the caches of current servers (4 MiB to 12 MiB).
const PER_THREAD: f64 = 67_108_864.0;
/// Smaller arrays would measure caches.
const LEAST_USEFUL: f64 = 134_217_728.0;
/// Passes, as many as STREAM's; fewer, at least two, where memory is so slow that they would take longer than [`TIME`].
const PASSES: usize = 10;
const TIME: Duration = Duration::from_secs(1);
const ARRAYS: f64 = 3.0;
const ELEMENT: f64 = size_of::<u64>() as f64;
/// Arrays that are read.
const READ: f64 = 2.0;

/// The arrays of a thread as the bits of their numbers, first written by it: they lie in the memory of its socket.
#[derive(Default)]
struct ThreadArrays {
    a: Vec<u64>,
    b: Vec<u64>,
    c: Vec<u64>,
}

fn filled(value: f64, length: usize) -> Option<Vec<u64>> {
    let mut array = Vec::new();
    array.try_reserve_exact(length).ok()?;
    array.resize(length, value.to_bits());
    Some(array)
}

impl ThreadArrays {
    fn new(length: usize) -> Option<ThreadArrays> {
        Some(ThreadArrays { a: filled(1.0, length)?, b: filled(2.0, length)?, c: filled(2.0, length)? })
    }

    fn triad(&mut self) {
        let scale = black_box(3.0);
        for ((a, b), c) in self.a.iter_mut().zip(&self.b).zip(&self.c) {
            *a = (f64::from_bits(*b) + scale * f64::from_bits(*c)).to_bits();
        }
        black_box(&mut self.a);
    }

    fn read(&mut self) {
        black_box(black_box(&self.b) == black_box(&self.c));
    }
}

/// Seconds until the last thread has done `work`.
fn seconds(pool: &ThreadPool, arrays: &[Mutex<ThreadArrays>], work: fn(&mut ThreadArrays)) -> f64 {
    let start = Instant::now();
    pool.broadcast(|context| {
        let own = arrays.get(context.index()).map(|own| own.lock().unwrap_or_else(PoisonError::into_inner));
        own.into_iter().for_each(|mut own| work(&mut own));
    });
    start.elapsed().as_secs_f64()
}

/// The bandwidth over arrays of at most `most` bytes; `None` where the memory or the threads do not suffice.
pub fn bandwidth(most: f64) -> Option<MeasuredBandwidth> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let total = LEAST_TOTAL.max(PER_THREAD * threads as f64).min(most);
    if total < LEAST_USEFUL {
        return None;
    }
    let length = (total / (ARRAYS * ELEMENT * threads as f64)) as usize;
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().ok()?;
    let arrays: Option<Vec<Mutex<ThreadArrays>>> =
        pool.broadcast(|_| ThreadArrays::new(length).map(Mutex::new)).into_iter().collect();
    let arrays = arrays?;
    let bytes = (length * threads) as f64 * ARRAYS * ELEMENT;
    let start = Instant::now();
    let (mut read, mut triad, mut passes) = (0.0_f64, 0.0_f64, 0);
    while passes < 2 || (passes < PASSES && start.elapsed() < TIME) {
        triad = triad.max(bytes / seconds(&pool, &arrays, ThreadArrays::triad));
        read = read.max(bytes * READ / ARRAYS / seconds(&pool, &arrays, ThreadArrays::read));
        passes += 1;
    }
    let found = MeasuredBandwidth { read, triad, threads: threads as u64, bytes };
    found.best().is_finite().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_triad_is_computed_and_small_memory_is_not_measured() {
        let mut arrays = ThreadArrays::new(40).unwrap();
        // Where the arrays that are read differed, their comparison would end at once.
        assert_eq!(arrays.b, arrays.c);
        arrays.triad();
        arrays.read();
        assert!(arrays.a.iter().all(|a| f64::from_bits(*a) == 2.0 + 3.0 * 2.0));
        assert_eq!(bandwidth(1e6), None);
    }

    #[test]
    fn a_bandwidth_is_that_of_some_memory() {
        let found = bandwidth(LEAST_USEFUL).unwrap();
        assert!(found.bytes <= LEAST_USEFUL && found.bytes > 0.9 * LEAST_USEFUL);
        // From one channel of DDR2 in a test that is not optimised, to far beyond any host.
        assert!((1e8..1e14).contains(&found.best()), "{}", found.best());
    }
}
