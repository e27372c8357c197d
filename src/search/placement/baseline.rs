//! Baselines: layer partitions by the rules of other tools, under our cost model. An optimum must never be worse.
//!
//! The rules use memory only.

use super::chain::{Chain, Stage, consecutive};

/// A rule that partitions layers without a time model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaselineRule {
    /// Layers in proportion to free memory, largest remainders first, at least one each, on the fewest members with
    /// sufficient memory: exo (`placement_utils.py`, <https://github.com/exo-explore/exo>).
    Fewest,
    /// The same on all members: the default `--tensor-split` of llama.cpp.
    All,
    /// Members filled from the last to the first: `--fit` of llama.cpp (`common/fit.cpp`,
    /// <https://github.com/ggml-org/llama.cpp>).
    BackToFront,
}

fn free(chain: &Chain, member: usize) -> u64 {
    chain.members[member].usable.saturating_sub(chain.members[member].base)
}

/// Number of layers of each of `order`.
fn proportional(chain: &Chain, order: &[usize]) -> Option<Vec<usize>> {
    let layers = chain.layers;
    let total: u64 = order.iter().map(|&member| free(chain, member)).sum();
    if total == 0 || order.len() > layers {
        return None;
    }
    let share = |&member: &usize| u128::from(free(chain, member)) * layers as u128;
    let mut counts: Vec<usize> =
        order.iter().map(|member| (share(member) / u128::from(total)) as usize).collect();
    let mut by_rest: Vec<usize> = (0..order.len()).collect();
    by_rest.sort_by_key(|&at| (std::cmp::Reverse(share(&order[at]) % u128::from(total)), at));
    let missing = layers - counts.iter().sum::<usize>();
    by_rest.iter().take(missing).for_each(|&at| counts[at] += 1);
    // A member without layers takes one from the member with the most.
    while let Some(none) = counts.iter().position(|count| *count == 0) {
        let most = (0..counts.len()).max_by_key(|&at| counts[at])?;
        counts[most] -= 1;
        counts[none] += 1;
    }
    Some(counts)
}

fn stages(order: &[usize], counts: &[usize]) -> Vec<Stage> {
    consecutive(order.iter().copied().zip(counts.iter().copied()))
}

/// The placements by `rule`, with members in the given order.
pub fn placements(chain: &Chain, rule: BaselineRule) -> Vec<Vec<Stage>> {
    let all: Vec<usize> = (0..chain.members.len()).collect();
    match rule {
        BaselineRule::All => {
            proportional(chain, &all).map(|counts| stages(&all, &counts)).into_iter().collect()
        }
        BaselineRule::Fewest => {
            let mut largest = all.clone();
            largest.sort_by_key(|&member| (std::cmp::Reverse(free(chain, member)), member));
            let some = (1..=all.len()).map(|count| {
                let mut some = largest[..count].to_vec();
                some.sort_unstable();
                some
            });
            some.filter_map(|order| Some(stages(&order, &proportional(chain, &order)?))).collect()
        }
        BaselineRule::BackToFront => {
            let mut counts = vec![0; all.len()];
            let mut to = chain.layers;
            for member in all.iter().rev().copied() {
                let held = &chain.members[member];
                let fits = |from: &usize| held.pages(chain.layers, *from, to).0 <= held.usable;
                let from = (0..to).find(fits).unwrap_or(to);
                counts[member] = to - from;
                to = from;
            }
            if to == 0 { vec![stages(&all, &counts)] } else { vec![] }
        }
    }
}

/// Members filled fastest first: not a rule of another tool, but a fast upper bound.
pub fn fastest_first(chain: &Chain) -> Option<Vec<Stage>> {
    let mut order: Vec<usize> = (0..chain.members.len()).collect();
    order.sort_by_key(|&member| {
        (chain.members[member].layers.iter().map(|layer| layer.ticks).sum::<u64>(), member)
    });
    let (mut from, mut stages) = (0, Vec::new());
    for member in order {
        let held = &chain.members[member];
        let fits = |to: &usize| held.pages(chain.layers, from, *to).0 <= held.usable;
        if let Some(to) = (from + 1..=chain.layers).rev().find(fits) {
            stages.push(Stage { member, from, to });
            from = to;
        }
        if from == chain.layers {
            return Some(stages);
        }
    }
    None
}

/// The feasible partition by `rule` on the fewest members, with its cost by `cost`.
pub fn held(
    chain: &Chain,
    rule: BaselineRule,
    cost: impl Fn(&[Stage]) -> Option<u64>,
) -> Option<(u64, Vec<Stage>)> {
    placements(chain, rule).into_iter().find_map(|stages| Some((cost(&stages)?, stages)))
}
