//! The time of one kernel from what it computes and what it moves.

use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::SECOND;

/// What an operator costs on one device.
#[derive(Clone, Copy, Debug)]
pub struct Cost<T> {
    /// Operations.
    pub flops: T,
    /// Bytes to and from device memory.
    pub bytes: T,
    /// Time that the arithmetic is busy.
    pub computing: T,
    /// Time that the memory is busy.
    pub moving: T,
    /// Time, without launch.
    pub time: T,
    /// Speed of light: operations at the dense peak, bytes at full bandwidth, whichever is slower.
    pub floor: T,
}

impl<N: Num> Cost<Qty<N>> {
    /// Both kernels, one after the other.
    #[inline(always)]
    pub fn after(&self, first: &Cost<Qty<N>>) -> Cost<Qty<N>> {
        Cost {
            flops: first.flops + self.flops,
            bytes: first.bytes + self.bytes,
            computing: first.computing + self.computing,
            moving: first.moving + self.moving,
            time: first.time + self.time,
            floor: first.floor + self.floor,
        }
    }
}

/// How near to the roofline a class of kernels comes on a device.
#[derive(Clone, Copy, Debug)]
pub struct RooflineParams<T> {
    /// Dense peak of the arithmetic in use.
    pub peak: T,
    /// Peak rate of device memory.
    pub bandwidth: T,
    /// Fraction of the peak that large kernels reach.
    pub compute: T,
    /// Fraction of the bandwidth that large kernels reach.
    pub memory: T,
}

/// Prices a kernel.
#[inline(always)]
pub fn roofline<N: Num>(flops: Qty<N>, bytes: Qty<N>, ceiling: &RooflineParams<Qty<N>>) -> Cost<Qty<N>> {
    let computing = (flops / (ceiling.peak * ceiling.compute)).is(&COMPUTE);
    let moving = (bytes / (ceiling.bandwidth * ceiling.memory)).is(&MEMORY);
    let time = computing.smax(moving).is(&TIME);
    let floor = (flops / ceiling.peak).max(bytes / ceiling.bandwidth);
    Cost { flops, bytes, computing, moving, time, floor }
}

crate::formulas! {
    COMPUTE {
        symbol: "compute_time",
        unit: SECOND,
        why: "operations at the fraction of the dense peak that this class of kernels was measured to reach",
        cite: "Williams, Waterman, Patterson 2009 (roofline)",
    }
    MEMORY {
        symbol: "memory_time",
        unit: SECOND,
        why: "bytes at the fraction of the memory bandwidth that this class of kernels was measured to reach",
        cite: "Williams, Waterman, Patterson 2009 (roofline)",
    }
    TIME {
        symbol: "time",
        unit: SECOND,
        why: "smax(a, b) = (a^4 + b^4)^(1/4): the slower of computing and moving bounds the kernel, and both are felt where they are near",
        cite: "p = 4 fits 12.6 million kernel timings (NVIDIA AIConfigurator 0.12.0 data) to a median 6-10 %, a hard maximum to 11 %",
    }
}
