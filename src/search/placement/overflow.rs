//! Memory beyond that of a member: host memory, which the member reads over its link or the host's processor computes
//! with, and storage below it.

use super::chain::Spill;
use super::price::{MOST_PAGES, MemberPrices, PAGE, PlacementWork, PreparedMember};
use crate::plan::parallel::Phase;
use crate::quantity::num::Qty;
use crate::quantity::read::Plain;
use crate::quantity::unit::BYTE;
use crate::serving::instance::{Instance, StageKind};
use crate::serving::iteration::{offloaded, touched};
use crate::serving::terms::WorkloadTerms;
use crate::spec::host_part::HostedTensors;

/// Seconds that a page in host memory adds to the work of a member.
#[derive(Clone, Copy)]
struct PageSeconds {
    /// A page of routed experts.
    experts: f64,
    /// Another page.
    rest: f64,
}

/// The work of a member: prefills, decode steps, sequences of a step, and requests whose KV cache it holds.
#[derive(Clone, Copy)]
struct MemberWork {
    prompts: f64,
    steps: f64,
    sequences: u64,
    held: u64,
}

impl PreparedMember {
    /// Seconds to read a page at `rate`.
    fn page(&self, kind: StageKind, rate: Qty<f64>) -> f64 {
        let terms = WorkloadTerms { host_link: Some(rate), ..self.terms };
        let none = self.step(&Plain, Phase::Decode, kind, 1);
        let one = Some(Qty::literal(PAGE * BYTE));
        let read = offloaded(&Plain, &self.instance, none, &terms, one);
        read.total.value() - none.total.value()
    }

    /// Seconds that one layer of `block` adds with its `tensors` on the host's processor; 0 where it is the faster one.
    fn hosted(&self, tensors: HostedTensors, block: usize, work: MemberWork) -> f64 {
        let instance = Instance { hosted: Some(tensors), ..self.instance.clone() };
        let member = PreparedMember { instance, ..self.clone() };
        let mut here = self.no_layers();
        here.layers[block] = 1;
        let there = StageKind { hosted: here.layers.clone(), ..here.clone() };
        let MemberWork { prompts, steps, sequences, .. } = work;
        let away = member.time(prompts, steps, sequences, there);
        (away - self.time(prompts, steps, sequences, here)).max(0.0)
    }

    /// Pages of one layer of `block`, and those of them that are routed experts.
    fn layer_pages(&self, block: usize, held: u64) -> (f64, f64) {
        let mut one = self.no_layers();
        let empty = self.bytes(Phase::Decode, &one, held).0;
        one.layers[block] = 1;
        let all = self.bytes(Phase::Decode, &one, held).0 - empty;
        (all / PAGE, self.experts(block).min(all) / PAGE)
    }

    /// A page in host memory where the host's processor computes with it, at the slowest layer; `None` where the
    /// runtime does not compute there. Experts leave the device first, then the rest of their layers.
    fn computed(&self, work: MemberWork) -> Option<PageSeconds> {
        let host = self.machine.host.as_ref()?;
        if !HostedTensors::EACH.iter().all(|tensors| host.computes.contains(tensors)) {
            return None;
        }
        let mut most = PageSeconds { experts: 0.0, rest: 0.0 };
        for block in 0..self.instance.decode.blocks.len() {
            let (all, experts) = self.layer_pages(block, work.held);
            let mut first = 0.0;
            if experts > 0.0 {
                first = self.hosted(HostedTensors::Experts, block, work);
                most.experts = most.experts.max(first / experts);
            }
            if all > experts {
                let rest = (self.hosted(HostedTensors::Layers, block, work) - first).max(0.0);
                most.rest = most.rest.max(rest / (all - experts));
            }
        }
        Some(most)
    }
}

impl MemberPrices<'_> {
    /// Members that use the processor of member `at` at the same time: those of its host, where several requests are in
    /// flight.
    fn sharing(&self, at: usize) -> f64 {
        let number = |at: usize| self.problem.members[at].host.map(|host| host.number);
        let members = (0..self.prepared.len()).filter(|other| number(*other) == number(at)).count();
        if self.problem.concurrency > 1 { members as f64 } else { 1.0 }
    }

    /// Host memory of a member, where it has host memory and a link to it, and storage below it. Where the runtime
    /// computes on the host, its processor computes with pages in host memory; else they are read over the link.
    pub(super) fn overflow(
        &self,
        at: usize,
        work: PlacementWork,
        held: u64,
        ticks: &dyn Fn(f64) -> u64,
    ) -> (Option<Spill>, Option<Spill>) {
        let (stand, offer) = (&self.prepared[at], &self.problem.members[at]);
        let (prompts, steps, sequences) = work.times(self.problem.lengths);
        let load = stand.load(&Plain, Phase::Decode, sequences);
        let some = touched(&Plain, &stand.instance, &load).value();
        let read = |rate: Qty<f64>| {
            let page = stand.page(stand.no_layers(), rate);
            PageSeconds { experts: page * (prompts + steps * some), rest: page * (prompts + steps) }
        };
        let spill = |page: PageSeconds, bytes: f64| Spill {
            pages: (bytes / PAGE).min(MOST_PAGES) as u64,
            ticks_per_page: ticks(page.rest),
            ticks_per_expert_page: ticks(page.experts),
        };
        let Some(link) = stand.terms.host_link else { return (None, None) };
        let host = offer.host.map(|host| {
            let whole = offer.devices == 1 && self.problem.graph.draft.is_none();
            let work = MemberWork { prompts, steps, sequences, held };
            let computed = if whole { stand.computed(work) } else { None };
            let shared = self.sharing(at);
            let page = computed.map_or_else(
                || read(link),
                |page| PageSeconds { experts: shared * page.experts, rest: shared * page.rest },
            );
            spill(page, host.bytes / offer.devices as f64)
        });
        // Reads from storage cross the host link too: the slower of both counts.
        let disk = offer.disk.as_ref().map(|disk| {
            let rate = if disk.rate.value < link.value() { Qty(disk.rate.value) } else { link };
            spill(read(rate), disk.bytes)
        });
        (host, disk)
    }
}
