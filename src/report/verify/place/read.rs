//! A saved placement as stages on the members of a question, held against the formulas.

use serde_json::Value;

use super::super::{differences, figure, off, rows, value};
use crate::report::place::told::placed;
use crate::search::placement::chain::Stage;
use crate::search::placement::price::{Offer, PAGE};
use crate::search::placement::weigh::{Scales, Whole};

/// Sums of layers and whole stages are the same formulas added up in another order, in whole picoseconds.
const ADDED_UP: f64 = 1e-6;

/// A saved placement as stages on the members of one question.
pub(super) struct Read<'a, 'q> {
    pub(super) scales: &'a Scales<'q>,
    pub(super) stages: Vec<Stage>,
    /// Pages of its host that each member takes, where members share one.
    pub(super) parts: Option<Vec<u64>>,
}

/// The stages that `placement` tells of, on the members of a question.
pub(super) fn read<'a, 'q>(scales: &'a Scales<'q>, placement: &Value) -> Result<Read<'a, 'q>, Vec<String>> {
    let question = scales.question();
    let layers = question.graph.layer_block.len();
    let (mut stages, mut faults): (Vec<Stage>, Vec<String>) = (Vec::new(), Vec::new());
    let told = rows(placement, "stages");
    let mut parts = vec![0; question.offers.len()];
    for (at, stage) in told.iter().enumerate() {
        let (name, devices) = (stage["member"].as_str().unwrap_or_default(), stage["devices"].as_u64());
        let known = |offer: &Offer| offer.name == name && Some(offer.devices) == devices;
        let Some(member) = question.offers.iter().position(known) else {
            return Err(vec![format!("stage {at}: {name} of {devices:?} devices is no member")]);
        };
        let number = |key: &str| stage[key].as_u64().map_or(usize::MAX, |number| number as usize);
        let (from, last, held) = (number("first_layer"), number("last_layer"), number("layers"));
        let expected = stages.last().map_or(0, |before: &Stage| before.to);
        if from != expected || last < from || last >= layers {
            faults.push(format!(
                "stage {at}: layers {from} to {last} are saved, they begin with {expected} and end below {layers}"
            ));
            return Err(faults);
        }
        let to = last + 1;
        if held != to - from {
            faults.push(format!("stage {at}: {held} layers are saved, {from} to {last} are {}", to - from));
        }
        for (key, expected) in [("embedding", from == 0), ("head", to == layers)] {
            if stage[key].as_bool() != Some(expected) {
                faults.push(format!("stage {at}: {key} {} is saved, {expected} comes out", stage[key]));
            }
        }
        if stages.iter().any(|other: &Stage| other.member == member) {
            faults.push(format!("stage {at}: {name} holds another stage already"));
        }
        let pages = |key: &str| Scales::pages(figure(stage, key));
        parts[member] = pages("offloaded_bytes").saturating_sub(pages("disk_bytes"));
        stages.push(Stage { member, from, to });
    }
    let end = stages.last().map_or(0, |stage| stage.to);
    if end != layers {
        faults.push(format!("stages end with layer {end}, there are {layers}"));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let shared = !scales.priced(stages.len()).chain.hosts.is_empty();
    Ok(Read { scales, stages, parts: shared.then_some(parts) })
}

impl Read<'_, '_> {
    fn wholes(&self) -> Vec<Whole> {
        self.stages.iter().map(|stage| self.scales.whole(stage, self.stages.len())).collect()
    }

    /// Memory of each stage straight from the formulas, and of the hosts that members share.
    pub(super) fn memory(&self, placement: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        for ((at, stage), whole) in rows(placement, "stages").into_iter().enumerate().zip(self.wholes()) {
            let layers = (self.stages[at].to - self.stages[at].from) as f64;
            let (held, out) = (figure(stage, "memory_bytes"), figure(stage, "offloaded_bytes"));
            // Each part is told in whole pages.
            let pages = PAGE * (layers + 4.0);
            if !(whole.bytes..=whole.bytes + pages).contains(&held) {
                faults.push(format!("stage {at}: {held} B are saved, it holds {} B", whole.bytes));
            }
            if whole.bytes > whole.usable + out {
                let room = whole.usable + out;
                faults.push(format!("stage {at}: it holds {} B and has {room} B for them", whole.bytes));
            }
        }
        let question = self.scales.question();
        for host in &self.scales.priced(self.stages.len()).chain.hosts {
            let part = |member: &usize| self.parts.as_ref().map_or(0, |parts| parts[*member]);
            let taken: u64 = host.members.iter().map(|(member, devices)| devices * part(member)).sum();
            if taken > host.pages {
                let who = &question.offers[host.members[0].0].name;
                let (taken, there) = (taken as f64 * PAGE, host.pages as f64 * PAGE);
                faults.push(format!("the host of {who}: {taken} B are taken, there are {there} B"));
            }
        }
        faults
    }

    /// Times of each stage straight from the formulas, of those that read nothing from elsewhere.
    pub(super) fn times(&self, placement: &Value) -> Vec<String> {
        let each = rows(placement, "stages").into_iter().enumerate().zip(self.wholes());
        let held = each.filter(|((_, stage), _)| figure(stage, "offloaded_bytes") == 0.0);
        held.filter_map(|((at, stage), whole)| {
            let told = figure(stage, "decode_ms") - figure(stage, "send_ms");
            off(&format!("stage {at}: ms of a decode step"), told, 1e3 * whole.decode, ADDED_UP)
        })
        .collect()
    }

    /// Everything that is told of it, priced again.
    pub(super) fn again(&self, placement: &Value) -> Vec<String> {
        let told = match self.scales.told(&self.stages, self.parts.clone()) {
            Ok(solved) => placed(self.scales.question(), &solved),
            Err(short) => {
                let name = &self.scales.question().offers[short.member].name;
                let lack = short.pages as f64 * PAGE;
                return vec![if short.pages == 0 {
                    format!("{name} cannot hold its stage, or sends to a member that it is not joined to")
                } else {
                    format!("{name} cannot hold its stage: {lack} B are missing")
                }];
            }
        };
        let mut faults = Vec::new();
        differences("placement", placement, &value(&told), &mut faults);
        faults
    }
}
