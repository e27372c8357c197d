//! Instances of two sizes in identical bins: how many of the second fit next to each count of the first.

/// For each count of the first size in one bin: the maximum count of the second size.
pub(super) fn one_bin(capacity: u64, size: u64, other: u64) -> Vec<u64> {
    (0..=capacity / size).map(|count| (capacity - count * size) / other).collect()
}

/// Bins among which every division of the first size is tried; all further ones are filled in one of two ways.
const TRIED_BINS: u64 = 128;

/// The same for several identical bins.
///
/// Of many bins all but a few hold one of the two counts of the concave hull around their mean: a bin holds few counts,
/// and other counts of many bins could be exchanged for those without a loss (Eisenbrand, Weismantel 2019).
pub(super) fn many_bins(bins: u64, one: &[u64]) -> Vec<u64> {
    if bins <= TRIED_BINS {
        return some_bins(bins, one);
    }
    let (tried, further, hull) = (some_bins(TRIED_BINS, one), bins - TRIED_BINS, hull(one));
    let most = (one.len() as u64 - 1) * bins;
    let others = |count: u64| {
        let edge = hull.windows(2).find(|edge| count <= edge[1] * bins);
        let (few, many) = edge.map_or((hull[0], hull[0]), |edge| (edge[0], edge[1]));
        // As many of the further bins hold the larger count as leave the mean to the tried ones.
        let (step, over) = (many - few, count - few * bins);
        let left = |filled: u64| count - further * few - filled * step;
        let mut filled = (over * further).checked_div(bins * step).unwrap_or(0);
        if left(filled) > many * TRIED_BINS {
            filled += 1;
        }
        (further - filled) * one[few as usize] + filled * one[many as usize] + tried[left(filled) as usize]
    };
    (0..=most).map(others).collect()
}

/// Counts of the upper concave hull of the room that each leaves.
fn hull(one: &[u64]) -> Vec<u64> {
    let mut hull: Vec<u64> = Vec::new();
    for count in 0..one.len() as u64 {
        let others = |count: u64| i128::from(one[count as usize]);
        while let [.., a, b] = hull[..] {
            // The middle one is below the line, or on it.
            let below = (others(b) - others(a)) * i128::from(count - a)
                <= (others(count) - others(a)) * i128::from(b - a);
            if !below {
                break;
            }
            hull.pop();
        }
        hull.push(count);
    }
    hull
}

/// The same for few bins, by trying every division.
fn some_bins(bins: u64, one: &[u64]) -> Vec<u64> {
    let both = |a: &[u64], b: &[u64]| {
        let mut sum = vec![0; a.len() + b.len() - 1];
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                sum[i + j] = sum[i + j].max(x + y);
            }
        }
        sum
    };
    let (mut all, mut power, mut left) = (vec![0], one.to_vec(), bins);
    while left > 0 {
        if left % 2 == 1 {
            all = both(&all, &power);
        }
        left /= 2;
        if left > 0 {
            power = both(&power, &power);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_bins_hold_as_much_as_every_division() {
        for capacity in [4, 6, 7, 8, 9, 12, 16] {
            for size in 2..=capacity {
                for other in (2..=capacity).filter(|other| other % size != 0 && size % other != 0) {
                    let one = one_bin(capacity, size, other);
                    for bins in [129, 150, 257] {
                        let (found, tried) = (many_bins(bins, &one), some_bins(bins, &one));
                        assert_eq!(found, tried, "{capacity} {size} {other} {bins}");
                    }
                }
            }
        }
    }
}
