//! KV caches on their way from workers that prefill to workers that decode.

use std::collections::BinaryHeap;

use super::due::Due;
use super::engine::EngineRequest;

/// All transfers of a run. Each attention rank of a replica sends, and receives, one cache after the other.
pub struct Handovers {
    /// Receivers and requests, by the ends of the transfers.
    sending: BinaryHeap<Due<(usize, EngineRequest)>>,
    /// By replica: from when on the links of each rank are free.
    free_s: Vec<Vec<f64>>,
}

impl Handovers {
    /// No transfer between replicas with these numbers of ranks.
    pub fn new(ranks: impl Iterator<Item = usize>) -> Handovers {
        let free_s = ranks.map(|ranks| vec![0.0; ranks]).collect();
        Handovers { sending: BinaryHeap::new(), free_s }
    }

    /// The cache of `request` goes from replica `from` to replica `to`, which takes `seconds` from when both have free
    /// links.
    pub fn send(&mut self, now_s: f64, (from, to): (usize, usize), seconds: f64, request: EngineRequest) {
        let ends = [from, to].map(|replica| (replica, self.links(replica)));
        let time_s = ends.iter().fold(now_s, |start, (_, (_, free))| start.max(*free)) + seconds;
        for (replica, (rank, _)) in ends {
            self.free_s[replica][rank] = time_s;
        }
        self.sending.push(Due { time_s, order: (request.id, 0), what: (to, request) });
    }

    /// The rank of a replica whose links are free first, and from when on.
    fn links(&self, replica: usize) -> (usize, f64) {
        let times = self.free_s[replica].iter().copied().enumerate();
        times.min_by(|one, other| one.1.total_cmp(&other.1)).expect("a replica has a rank")
    }

    /// Drops the transfers of requests that are not `kept`, by number. Their links stay taken.
    pub fn retain(&mut self, kept: impl Fn(u64) -> bool) {
        self.sending.retain(|sent| kept(sent.what.1.id));
    }

    /// When the next transfer ends.
    pub fn next_s(&self) -> Option<f64> {
        self.sending.peek().map(|first| first.time_s)
    }

    /// The transfer that ends first: its end, its receiver, and the request.
    pub fn take(&mut self) -> Option<(f64, usize, EngineRequest)> {
        self.sending.pop().map(|Due { time_s, what: (to, request), .. }| (time_s, to, request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_wait_for_links_at_both_ends() {
        let mut all = Handovers::new([1, 1, 2].into_iter());
        let request = |id| EngineRequest::new(id, vec![], 1, 1);
        all.send(0.0, (0, 2), 1.0, request(0));
        // The sender is busy until 1.
        all.send(0.5, (0, 2), 1.0, request(1));
        // Another sender finds both ranks of the receiver taken.
        all.send(0.5, (1, 2), 1.0, request(2));
        let ends: Vec<(f64, u64)> =
            std::iter::from_fn(|| all.take()).map(|(end, _, request)| (end, request.id)).collect();
        assert_eq!(ends, [(1.0, 0), (2.0, 1), (2.0, 2)]);
    }
}
