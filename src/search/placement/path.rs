//! Shortest paths: from links between neighbours to the minimum time between any two nodes; the cost of a path is the
//! sum over its hops.

/// The minimum ticks between all nodes, over `hops` of `(from, to, ticks)`; `None` where there is no path.
pub fn paths(nodes: usize, hops: &[(usize, usize, u64)]) -> Vec<Vec<Option<u64>>> {
    let mut least = vec![vec![None; nodes]; nodes];
    (0..nodes).for_each(|node| least[node][node] = Some(0));
    for &(from, to, ticks) in hops {
        let known: Option<u64> = least[from][to];
        least[from][to] = Some(known.map_or(ticks, |known| known.min(ticks)));
    }
    for over in 0..nodes {
        for from in 0..nodes {
            for to in 0..nodes {
                if let (Some(there), Some(on)) = (least[from][over], least[over][to]) {
                    let through = there.saturating_add(on);
                    if least[from][to].is_none_or(|direct| through < direct) {
                        least[from][to] = Some(through);
                    }
                }
            }
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_pays_every_hop_and_the_cheapest_is_taken() {
        let both = |a, b, ticks| [(a, b, ticks), (b, a, ticks)];
        let chain: Vec<_> = [both(0, 1, 5), both(1, 2, 7)].concat();
        assert_eq!(paths(3, &chain)[0], [Some(0), Some(5), Some(12)]);
        let ring: Vec<_> = [chain, both(2, 0, 20).to_vec()].concat();
        assert_eq!(paths(3, &ring)[2][0], Some(12), "two hops are cheaper than the slow link");
        assert_eq!(paths(3, &both(0, 1, 5))[0][2], None);
    }
}
