//! Feasible segments of one kind of members under a bound on their time, as sets of layers.

/// Set of layers at which a partial placement can begin, one bit each.
pub(super) type Begins = u128;

/// Segments of a kind within one time bound, by end.
#[derive(Clone)]
pub(super) struct Fits {
    /// Ends of segments that begin with the first layer.
    pub(super) front: Begins,
    /// Ends of segments that begin later.
    pub(super) inner: Begins,
    /// The first layer at which those can begin; they can begin at every layer after it too.
    pub(super) begin: Vec<u8>,
}

impl Fits {
    pub(super) fn nothing(layers: usize) -> Fits {
        Fits { front: 0, inner: 0, begin: vec![0; layers + 1] }
    }

    /// The segments with `times[to][from]` of at most `most`.
    pub(super) fn new(times: &[Vec<u64>], most: u64) -> Fits {
        let mut fits = Fits::nothing(times.len() - 1);
        for (to, column) in times.iter().enumerate().skip(1) {
            fits.front |= Begins::from(column[0] <= most) << to;
            let inner = &column[1..];
            let skip = inner.partition_point(|time| *time > most);
            if skip < inner.len() {
                fits.inner |= 1 << to;
                fits.begin[to] = skip as u8 + 1;
            }
        }
        fits
    }

    /// Layers at which segments that end at any of `ends` can begin, except the first layer.
    #[inline(always)]
    pub(super) fn before(&self, ends: Begins) -> Begins {
        let mut ends = ends & self.inner;
        let mut begins = 0;
        // Adjacent ends have adjacent ranges of begins.
        while ends != 0 {
            let low = ends.trailing_zeros();
            let run = (ends >> low).trailing_ones();
            begins |= span(u32::from(self.begin[low as usize]), low + run - 1);
            ends &= !span(low, low + run);
        }
        begins
    }
}

/// Bits from `low` up to but not including `high`.
#[inline(always)]
pub(super) fn span(low: u32, high: u32) -> Begins {
    let below = |bit: u32| if bit >= Begins::BITS { Begins::MAX } else { (1 << bit) - 1 };
    below(high) & !below(low)
}
