//! Time of one kernel from its operations and its bytes.

use crate::quantity::num::{Num, Qty};
use crate::quantity::unit::{BYTE, SECOND};

/// Cost of an operator on one device.
#[derive(Clone, Copy, Debug)]
pub struct Cost<T> {
    /// Operations.
    pub flops: T,
    /// Bytes to and from device memory.
    pub bytes: T,
    /// Bytes sent over the interconnect.
    pub wire: T,
    pub compute_time: T,
    pub memory_time: T,
    /// Time without launch.
    pub time: T,
    /// Speed of light (SOL): operations at the dense peak or bytes at full bandwidth, whichever is slower.
    pub roofline_time: T,
}

impl<N: Num> Cost<Qty<N>> {
    /// Both kernels in sequence.
    #[inline(always)]
    pub fn after(&self, first: &Cost<Qty<N>>) -> Cost<Qty<N>> {
        Cost {
            flops: first.flops + self.flops,
            bytes: first.bytes + self.bytes,
            wire: first.wire + self.wire,
            compute_time: first.compute_time + self.compute_time,
            memory_time: first.memory_time + self.memory_time,
            time: (first.time + self.time).is(&SEQUENCE),
            roofline_time: first.roofline_time + self.roofline_time,
        }
    }

    /// The kernel where arithmetic and loads take turns.
    #[inline(always)]
    pub fn in_turn(&self) -> Cost<Qty<N>> {
        Cost { time: (self.compute_time + self.memory_time).is(&IN_TURN), ..*self }
    }

    /// The kernel with `vector` time of work of the vector units inside it: its third ceiling.
    #[inline(always)]
    pub fn with_vector_work(&self, vector: Qty<N>) -> Cost<Qty<N>> {
        Cost {
            compute_time: self.compute_time.max(vector),
            time: self.time.max(vector).is(&VECTOR_CEILING),
            ..*self
        }
    }
}

/// Cost of work on the vector units inside a kernel that moves the operands anyway. Where the device's file states no peak
/// of these units, it takes no time of its own.
#[inline(always)]
pub fn on_vector_units<N: Num>(
    flops: Qty<N>,
    bytes: Option<Qty<N>>,
    peak: Option<Qty<N>>,
    bandwidth: Qty<N>,
) -> Cost<Qty<N>> {
    let compute_time = match peak {
        Some(peak) => (flops / peak).is(&VECTOR),
        None => Qty::literal(0.0 * SECOND),
    };
    let memory_time = bytes.map(|bytes| bytes / bandwidth);
    let time = memory_time.map_or(compute_time, |moving| compute_time.max(moving).is(&VECTOR_WORK));
    let wire = Qty::literal(0.0 * BYTE);
    let bytes = bytes.unwrap_or(wire);
    let memory_time = memory_time.unwrap_or(Qty::literal(0.0 * SECOND));
    Cost { flops, bytes, wire, compute_time, memory_time, time, roofline_time: time }
}

/// Achieved roofline fractions of a class of kernels on a device.
#[derive(Clone, Copy, Debug)]
pub struct RooflineParams<T> {
    /// Dense peak of the arithmetic in use.
    pub peak: T,
    /// Peak memory bandwidth.
    pub bandwidth: T,
    /// Achieved fraction of the peak in large kernels.
    pub compute: T,
    /// Achieved fraction of the bandwidth in large kernels.
    pub memory: T,
}

/// Cost of a kernel.
#[inline(always)]
pub fn roofline<N: Num>(flops: Qty<N>, bytes: Qty<N>, ceiling: &RooflineParams<Qty<N>>) -> Cost<Qty<N>> {
    let computing = (flops / (ceiling.peak * ceiling.compute)).is(&COMPUTE);
    let moving = (bytes / (ceiling.bandwidth * ceiling.memory)).is(&MEMORY);
    let time = computing.smax(moving).is(&TIME);
    let floor = (flops / ceiling.peak).max(bytes / ceiling.bandwidth);
    let wire = Qty::literal(0.0 * BYTE);
    Cost { flops, bytes, wire, compute_time: computing, memory_time: moving, time, roofline_time: floor }
}

crate::formulas! {
    COMPUTE {
        symbol: "compute_time",
        unit: SECOND,
        why: "operations at the measured fraction of the dense peak for this class of kernels",
        cite: "Williams, Waterman, Patterson 2009 (roofline)",
    }
    MEMORY {
        symbol: "memory_time",
        unit: SECOND,
        why: "bytes at the measured fraction of the memory bandwidth for this class of kernels",
        cite: "Williams, Waterman, Patterson 2009 (roofline)",
    }
    SEQUENCE {
        symbol: "time",
        unit: SECOND,
        why: "kernels of an operator run in sequence",
        cite: "definition",
    }
    VECTOR {
        symbol: "vector_time",
        unit: SECOND,
        why: "operations at the fp32 peak of the device, that of its vector units; no measured fraction: a lower bound",
        cite: "Williams, Waterman, Patterson 2009 (roofline), ceilings of units",
    }
    VECTOR_WORK {
        symbol: "vector_work",
        unit: SECOND,
        why: "vector units wait for what they read",
        cite: "Williams, Waterman, Patterson 2009 (roofline)",
    }
    VECTOR_CEILING {
        symbol: "fused_time",
        unit: SECOND,
        why: "vector units work while matrix units and memory do: softmax and RoPE inside a kernel add time only where they are its slowest part",
        cite: "Shah et al. 2024 (FlashAttention-3), 3.2 (softmax under the matrix products)",
    }
    IN_TURN {
        symbol: "time",
        unit: SECOND,
        why: "a core that multiplies few tokens unpacks and adds what it has loaded before it loads more: both times add up",
        cite: "after Treibig, Hager 2010 (transfers through caches do not overlap with the loads of a core), arXiv:0905.0792; fits runs on processors no worse than the maximum of both, and small machines far better",
    }
    TIME {
        symbol: "time",
        unit: SECOND,
        why: "smax(a, b) = (a^4 + b^4)^(1/4): the slower of compute and memory bounds the kernel, and both contribute where they are close",
        cite: "p = 4 fits 12.6 million kernel timings (NVIDIA AIConfigurator 0.12.0 data) to a median 6-10 %, a hard maximum to 11 %",
    }
}
