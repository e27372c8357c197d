//! Places the nodes of an acyclic graph in rows from top to bottom (Sugiyama, Tagawa, Toda 1981), and the bends
//! of edges that pass rows.

#[derive(Clone, Debug)]
pub struct GraphLayout {
    /// Centre of each node.
    pub nodes: Vec<(f64, f64)>,
    /// Points of each edge, from the lower side of its source to the upper side of its target.
    pub edges: Vec<Vec<(f64, f64)>>,
    pub width: f64,
    pub height: f64,
}

/// Between nodes of a row.
const GAP: f64 = 16.0;
/// Between rows, where edges have their labels.
const ROW_GAP: f64 = 34.0;
/// Width of an edge that passes a row.
const PASS: f64 = 26.0;
/// How much more a passing edge wants to be straight than others want to be short.
const STRAIGHT: f64 = 8.0;
/// Sweeps after which orders and positions of graphs of this size do not move any more.
const SWEEPS: usize = 40;

/// A node, or an edge on its way past a row.
struct Slot {
    row: usize,
    size: (f64, f64),
    x: f64,
    /// Neighbours in the row above and below.
    near: [Vec<usize>; 2],
    passes: bool,
}

/// Places nodes of `sizes` (width, height); every edge leads to a node of a higher number.
pub fn place(sizes: &[(f64, f64)], edges: &[(usize, usize)]) -> GraphLayout {
    let mut rows = vec![0; sizes.len()];
    for target in 0..sizes.len() {
        let sources = edges.iter().filter(|(_, to)| *to == target);
        rows[target] = sources.map(|(from, _)| rows[*from] + 1).max().unwrap_or(0);
    }
    let slot = |(size, row): (&(f64, f64), &usize)| Slot {
        row: *row,
        size: *size,
        x: 0.0,
        near: [vec![], vec![]],
        passes: false,
    };
    let mut slots: Vec<Slot> = sizes.iter().zip(&rows).map(slot).collect();
    let mut chains = vec![];
    for (from, to) in edges {
        let mut chain = vec![*from];
        for row in rows[*from] + 1..rows[*to] {
            chain.push(slots.len());
            slots.push(Slot { row, size: (PASS, 0.0), x: 0.0, near: [vec![], vec![]], passes: true });
        }
        chain.push(*to);
        for pair in chain.windows(2) {
            slots[pair[0]].near[1].push(pair[1]);
            slots[pair[1]].near[0].push(pair[0]);
        }
        chains.push(chain);
    }
    let mut order: Vec<Vec<usize>> = vec![vec![]; rows.iter().max().map_or(0, |row| row + 1)];
    for (at, slot) in slots.iter().enumerate() {
        order[slot.row].push(at);
    }
    arrange(&slots, &mut order);
    spread(&mut slots, &order);
    straighten(&mut slots, &order, &chains);
    finish(sizes.len(), &slots, &order, &chains)
}

/// Orders each row so that few edges cross: by the mean place of neighbours, downwards and upwards in turn.
fn arrange(slots: &[Slot], order: &mut Vec<Vec<usize>>) {
    let mut best = (crossings(slots, order), order.clone());
    for sweep in 0..SWEEPS {
        let side = sweep % 2;
        let mut place = vec![0.0; slots.len()];
        let rows: Vec<usize> =
            if side == 0 { (0..order.len()).collect() } else { (0..order.len()).rev().collect() };
        for row in rows {
            let row = &mut order[row];
            let mean = |at: &usize| {
                let near = &slots[*at].near[side];
                let sum: f64 = near.iter().map(|other: &usize| place[*other]).sum();
                if near.is_empty() { 0.5 } else { sum / near.len() as f64 }
            };
            row.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
            let count = row.len() as f64;
            for (at, slot) in row.iter().enumerate() {
                place[*slot] = (at as f64 + 0.5) / count;
            }
        }
        let crossings = crossings(slots, order);
        if crossings < best.0 {
            best = (crossings, order.clone());
        }
    }
    *order = best.1;
}

fn crossings(slots: &[Slot], order: &[Vec<usize>]) -> usize {
    let mut place = vec![0; slots.len()];
    for row in order {
        row.iter().enumerate().for_each(|(at, slot)| place[*slot] = at);
    }
    let mut count = 0;
    for row in order {
        let edges: Vec<(usize, usize)> = row
            .iter()
            .flat_map(|from| slots[*from].near[1].iter().map(|to| (place[*from], place[*to])))
            .collect();
        for (at, a) in edges.iter().enumerate() {
            count += edges[at + 1..].iter().filter(|b| a.0 < b.0 && a.1 > b.1).count();
        }
    }
    count
}

/// Draws each slot towards its neighbours, as near as the order of its row lets it.
fn spread(slots: &mut [Slot], order: &[Vec<usize>]) {
    for sweep in 0..2 * SWEEPS {
        let rows: Vec<usize> =
            if sweep % 2 == 0 { (0..order.len()).collect() } else { (0..order.len()).rev().collect() };
        for row in rows {
            let wish = |at: &usize| {
                let slot: &Slot = &slots[*at];
                let near = slot.near.iter().flatten();
                let weight = |other: &usize| {
                    if slot.passes && slots[*other].passes { STRAIGHT } else { 1.0 }
                };
                let (sum, weights) = near.fold((0.0, 0.0), |(sum, weights), other| {
                    (sum + weight(other) * slots[*other].x, weights + weight(other))
                });
                (if weights > 0.0 { sum / weights } else { slot.x }, if slot.passes { 2.0 } else { 1.0 })
            };
            let wishes: Vec<(f64, f64)> = order[row].iter().map(wish).collect();
            let widths: Vec<f64> = order[row].iter().map(|at| slots[*at].size.0).collect();
            for (at, x) in order[row].iter().zip(settle(&wishes, &widths)) {
                slots[*at].x = x;
            }
        }
    }
}

/// Draws edges that pass several rows at their end as straight lines: outside of all they pass there is room.
fn straighten(slots: &mut [Slot], order: &[Vec<usize>], chains: &[Vec<usize>]) {
    for chain in chains.iter().filter(|chain| chain.len() > 3) {
        let bends = &chain[1..chain.len() - 1];
        let xs = bends.iter().map(|at| slots[*at].x);
        let straight = if bends.iter().all(|at| order[slots[*at].row].last() == Some(at)) {
            xs.fold(f64::NEG_INFINITY, f64::max)
        } else if bends.iter().all(|at| order[slots[*at].row].first() == Some(at)) {
            xs.fold(f64::INFINITY, f64::min)
        } else {
            continue;
        };
        bends.iter().for_each(|at| slots[*at].x = straight);
    }
}

/// The places nearest to what is wished (place, weight), by least squares, with widths and gaps kept: the
/// pool-adjacent-violators algorithm.
fn settle(wishes: &[(f64, f64)], widths: &[f64]) -> Vec<f64> {
    let mut offset = vec![0.0];
    for pair in widths.windows(2) {
        offset.push(offset[offset.len() - 1] + (pair[0] + pair[1]) / 2.0 + GAP);
    }
    let mut pools: Vec<(f64, f64, usize)> = vec![];
    for (at, (wish, weight)) in wishes.iter().enumerate() {
        let mut pool = (wish - offset[at], *weight, 1);
        while let Some(last) = pools.pop_if(|last| last.0 > pool.0) {
            let weight = last.1 + pool.1;
            pool = ((last.0 * last.1 + pool.0 * pool.1) / weight, weight, last.2 + pool.2);
        }
        pools.push(pool);
    }
    let places = pools.into_iter().flat_map(|(x, _, count)| std::iter::repeat_n(x, count));
    places.zip(offset).map(|(x, offset)| x + offset).collect()
}

fn finish(nodes: usize, slots: &[Slot], order: &[Vec<usize>], chains: &[Vec<usize>]) -> GraphLayout {
    let left = slots.iter().map(|slot| slot.x - slot.size.0 / 2.0).fold(f64::INFINITY, f64::min);
    let right = slots.iter().map(|slot| slot.x + slot.size.0 / 2.0).fold(f64::NEG_INFINITY, f64::max);
    let (mut tops, mut top) = (vec![], 0.0);
    for row in order {
        let height = row.iter().map(|at| slots[*at].size.1).fold(0.0, f64::max);
        tops.push((top, height));
        top += height + ROW_GAP;
    }
    let centre = |at: usize| {
        let (top, height) = tops[slots[at].row];
        (slots[at].x - left, top + height / 2.0)
    };
    let edge = |chain: &Vec<usize>| {
        let mut points = vec![];
        for (place, at) in chain.iter().enumerate() {
            let ((x, y), half) = (centre(*at), slots[*at].size.1 / 2.0);
            let (top, height) = tops[slots[*at].row];
            match place {
                0 => points.push((x, y + half)),
                last if last + 1 == chain.len() => points.push((x, y - half)),
                _ => points.extend([(x, top), (x, top + height)]),
            }
        }
        points
    };
    GraphLayout {
        nodes: (0..nodes).map(centre).collect(),
        edges: chains.iter().map(edge).collect(),
        width: (right - left).max(0.0),
        height: (top - ROW_GAP).max(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_the_edges_and_nothing_overlaps() {
        // input, norm, q, k, attention, sum, as in a layer; the sum reads the input past all rows.
        let edges = [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (0, 5)];
        let sizes = [(80.0, 30.0); 6];
        let layout = place(&sizes, &edges);
        for (from, to) in edges {
            assert!(layout.nodes[from].1 < layout.nodes[to].1, "{layout:?}");
        }
        assert!((layout.nodes[2].0 - layout.nodes[3].0).abs() >= 80.0 + GAP);
        let residual = &layout.edges[6];
        for (x, y) in &residual[1..residual.len() - 1] {
            let clear = |node: &(f64, f64)| (node.0 - x).abs() > 40.0 || (node.1 - y).abs() > 15.0;
            assert!(layout.nodes.iter().all(clear), "{layout:?}");
        }
        assert!(layout.nodes.iter().all(|(x, y)| *x >= 40.0 && *y >= 15.0 && *x <= layout.width - 40.0));
    }

    #[test]
    fn edges_do_not_cross_where_they_need_not() {
        let layout = place(&[(10.0, 10.0); 6], &[(0, 3), (1, 4), (2, 5), (0, 4)]);
        let x = |at: usize| layout.nodes[at].0;
        assert!(x(0) < x(1) && x(3) < x(4) || x(0) > x(1) && x(3) > x(4), "{layout:?}");
    }

    #[test]
    fn a_wish_is_granted_where_it_fits() {
        assert_eq!(settle(&[(0.0, 1.0), (100.0, 1.0)], &[10.0, 10.0]), [0.0, 100.0]);
        assert_eq!(settle(&[(0.0, 1.0), (0.0, 1.0)], &[10.0, 10.0]), [-13.0, 13.0]);
    }
}
