//! Whether unlike instances have room on a system, by trying every place.

use mantile::search::problem::Problem;

/// Whether instances of these sizes have room: each inside a unit of the innermost tier, in whole units of a node, or
/// in whole nodes, by trying every place for the largest first.
pub fn headroom(problem: &Problem, sizes: &[u64]) -> bool {
    let (unit, all) = (problem.cluster.domain(), problem.cluster.devices());
    let block = unit.max(problem.cluster.devices_per_node);
    let mut units = vec![unit; (block / unit) as usize];
    units.extend((block % unit > 0).then_some(block % unit));
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    placed(&mut vec![units.clone(); (all / block) as usize], &units, &sizes)
}

fn placed(free: &mut Vec<Vec<u64>>, block: &[u64], sizes: &[u64]) -> bool {
    let Some((&size, rest)) = sizes.split_first() else { return true };
    let (unit, whole) = (block[0], block.iter().filter(|devices| **devices == block[0]).count() as u64);
    let before = free.clone();
    if size <= unit {
        for at in 0..free.len() {
            for place in 0..free[at].len() {
                if free[at][place] >= size {
                    free[at][place] -= size;
                    if placed(free, block, rest) {
                        return true;
                    }
                    free.clone_from(&before);
                }
            }
        }
        return false;
    }
    let units = size.div_ceil(unit);
    if units <= whole {
        for at in 0..free.len() {
            let empty: Vec<usize> = (0..whole as usize).filter(|place| free[at][*place] == unit).collect();
            if empty.len() as u64 >= units {
                empty[..units as usize].iter().for_each(|place| free[at][*place] = 0);
                if placed(free, block, rest) {
                    return true;
                }
                free.clone_from(&before);
            }
        }
        return false;
    }
    let blocks = size.div_ceil(block.iter().sum()) as usize;
    let empty: Vec<usize> = (0..free.len()).filter(|at| free[*at] == block).collect();
    if empty.len() < blocks {
        return false;
    }
    empty[..blocks].iter().for_each(|at| free[*at].iter_mut().for_each(|devices| *devices = 0));
    let fits = placed(free, block, rest);
    *free = before;
    fits
}

/// The sizes of a deployment's instances, each as often as it is there.
pub fn sizes(pools: &[(u64, u64)]) -> Vec<u64> {
    pools.iter().flat_map(|(devices, count)| vec![*devices; *count as usize]).collect()
}
