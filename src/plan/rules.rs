//! The rules of a runtime: whether it runs a worker or a pair of workers, and else which rule forbids it.

use super::infeasible::Infeasible;
use super::legal::has_experts;
use super::parallel::ParallelPlan;
use crate::graph::mask::AttentionMask;
use crate::graph::model::ModelGraph;
use crate::graph::operator::Operator;
use crate::spec::cluster::Cluster;
use crate::spec::degree::Degree;
use crate::spec::offload::OffloadPart;
use crate::spec::role::Role;
use crate::spec::rule::{CutBlocks, ModelClass, Requirement, Rule, RuleCondition, VersionRange};
use crate::spec::runtime::Runtime;

/// A worker of one role.
pub type RoleWorker = (Role, ParallelPlan);

/// The degrees that workers of both sides must agree on; 0 for any other. Workers with equal keys pair with the same
/// workers of the other side.
pub type PairKey = [u64; Degree::COUNT];

/// Every degree and feature that a runtime may support.
pub fn features() -> impl Iterator<Item = &'static str> {
    Degree::stated().map(Degree::key).chain(["sp", "disagg"])
}

/// The roles in which a runtime runs a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleSet {
    /// As an aggregated replica.
    pub aggregated: bool,
    /// As a prefill worker.
    pub prefill: bool,
    /// As a decode worker.
    pub decode: bool,
}

impl RoleSet {
    /// Every role.
    pub const ALL: RoleSet = RoleSet { aggregated: true, prefill: true, decode: true };

    /// Whether there is any role.
    pub fn any(self) -> bool {
        self.aggregated || self.prefill || self.decode
    }
}

/// The rules of a runtime that concern a model on some devices.
#[derive(Clone, Debug)]
pub struct RuntimeRules {
    /// Id of the runtime.
    pub id: String,
    /// Degrees and features that it supports.
    pub supports: Vec<String>,
    /// Parts that it reads from host memory at every step.
    pub streams: Vec<OffloadPart>,
    /// Whether its rules are lifted: any plan that the model's shape and the devices allow.
    pub lifted: bool,
    /// The rules whose conditions on version, model and devices hold.
    rules: Vec<Rule>,
    /// Matrices whose shards may cut blocks of scales, and whether in the version at hand.
    cuts: Vec<(CutBlocks, bool)>,
    /// Devices of a host.
    host: u64,
    /// Attention heads and KV heads of every attention.
    heads: Vec<(u64, u64)>,
}

impl RuntimeRules {
    /// The rules of `runtime` in `version`, the newest if absent, for `graph` on `cluster`.
    pub fn of(
        runtime: &Runtime,
        version: Option<&str>,
        graph: &ModelGraph,
        cluster: &Cluster,
    ) -> RuntimeRules {
        let classes = classes(graph);
        let holds = |versions: Option<&VersionRange>| versions.is_none_or(|range| range.holds(version));
        let concerns = |rule: &&Rule| {
            holds(rule.versions.as_ref())
                && concerns(&rule.when, &classes, &graph.model_type, &cluster.device.family)
        };
        RuntimeRules {
            id: runtime.id.clone(),
            supports: runtime.parallelism.clone(),
            streams: runtime.streams.clone(),
            lifted: false,
            rules: runtime.rules.iter().filter(concerns).cloned().collect(),
            cuts: runtime.cut_blocks.iter().map(|cut| (cut.clone(), holds(cut.versions.as_ref()))).collect(),
            host: cluster.devices_per_node,
            heads: heads(graph),
        }
    }

    /// The matrices whose shards may cut blocks of scales.
    pub fn cuts(&self) -> impl Iterator<Item = &CutBlocks> {
        self.cuts.iter().filter(|(_, holds)| *holds).map(|(cut, _)| cut)
    }

    /// Those whose shards may do so in other versions only.
    pub fn later_cuts(&self) -> impl Iterator<Item = &CutBlocks> {
        self.cuts.iter().filter(|(_, holds)| !holds).map(|(cut, _)| cut)
    }

    /// The same runtime as if it ran any plan.
    pub fn lifted(self) -> RuntimeRules {
        let supports = features().map(str::to_owned).collect();
        RuntimeRules { supports, streams: OffloadPart::EACH.to_vec(), rules: vec![], lifted: true, ..self }
    }

    /// The same rules on hosts of another size.
    pub fn on(self, cluster: &Cluster) -> RuntimeRules {
        RuntimeRules { host: cluster.devices_per_node, ..self }
    }

    /// Whether the runtime has a degree or feature, e.g. `disagg`.
    pub fn has(&self, feature: &str) -> bool {
        self.supports.iter().any(|one| one == feature)
    }

    /// The first rule that forbids `workers` with a KV cache in the format `kv`: each worker, and every prefill worker
    /// with every decode worker.
    pub fn forbids(&self, kv: &str, workers: &[RoleWorker]) -> Option<&Rule> {
        let of = |role| workers.iter().filter(move |(one, _)| *one == role).map(|(_, plan)| plan);
        self.rules.iter().find(|rule| {
            let alone = |(role, plan): &RoleWorker| {
                self.applies(&rule.when, *role, plan) && !self.holds(&rule.needs, kv, plan)
            };
            let mismatched =
                |prefill: &ParallelPlan, decode: &ParallelPlan| !pairs(&rule.needs, prefill, decode);
            workers.iter().any(alone)
                || of(Role::Prefill).any(|prefill| of(Role::Decode).any(|decode| mismatched(prefill, decode)))
        })
    }

    /// Checks `workers` against every rule.
    pub fn check(&self, kv: &str, workers: &[RoleWorker]) -> Result<(), Infeasible> {
        match self.forbids(kv, workers) {
            None => Ok(()),
            Some(rule) => Err(Infeasible::RuntimeRule {
                runtime: self.id.clone(),
                rule: rule.id.clone(),
                words: rule.words.clone(),
                source: rule.source.clone(),
            }),
        }
    }

    /// The roles in which the runtime runs `plan`.
    pub fn roles(&self, kv: &str, plan: &ParallelPlan) -> RoleSet {
        if self.rules.is_empty() {
            return RoleSet::ALL;
        }
        let runs = |role| self.forbids(kv, &[(role, *plan)]).is_none();
        RoleSet {
            aggregated: runs(Role::Aggregated),
            prefill: runs(Role::Prefill),
            decode: runs(Role::Decode),
        }
    }

    /// Whether a prefill worker may send to a decode worker, both of which the runtime runs.
    pub fn pairs(&self, prefill: &ParallelPlan, decode: &ParallelPlan) -> bool {
        self.rules.iter().all(|rule| pairs(&rule.needs, prefill, decode))
    }

    /// Key of the workers of the other side that `plan` pairs with.
    pub fn pair_key(&self, plan: &ParallelPlan) -> PairKey {
        let mut key = [0; Degree::COUNT];
        for degree in self.rules.iter().filter_map(|rule| rule.needs.of_both_sides()) {
            key[degree as usize] = plan.degree(degree);
        }
        key
    }

    /// Whether any rule concerns the format of the KV cache.
    pub fn read_kv(&self) -> bool {
        self.rules.iter().any(|rule| matches!(rule.needs, Requirement::KvFormats { .. }))
    }

    fn applies(&self, when: &RuleCondition, role: Role, plan: &ParallelPlan) -> bool {
        (when.roles.is_empty() || when.roles.contains(&role))
            && when.above_one.iter().all(|degree| plan.degree(*degree) > 1)
            && (!when.several_hosts || plan.devices() > self.host)
    }

    /// Whether a worker meets a requirement on a worker alone.
    fn holds(&self, needs: &Requirement, kv: &str, plan: &ParallelPlan) -> bool {
        let value = |degree: &Degree| plan.degree(*degree);
        match needs {
            Requirement::Never {} => false,
            Requirement::One { degrees } => degrees.iter().all(|degree| value(degree) == 1),
            Requirement::OneAtATime { degrees } => {
                degrees.iter().filter(|degree| value(degree) > 1).count() <= 1
            }
            Requirement::OneOrAll { degree } => [1, plan.stage_devices()].contains(&value(degree)),
            Requirement::PowerOfTwo { degree } => value(degree).is_power_of_two(),
            Requirement::AtMost { degree, most } => value(degree) <= *most,
            Requirement::InOneHost { degree } => {
                plan.devices() <= self.host || self.host.is_multiple_of(value(degree))
            }
            Requirement::RanksDivideHeads { ranks } => {
                let tp = plan.tp.saturating_mul(*ranks);
                self.heads.iter().all(|&(heads, kv_heads)| {
                    heads.is_multiple_of(tp) && (kv_heads.is_multiple_of(tp) || tp.is_multiple_of(kv_heads))
                })
            }
            Requirement::KvFormats { formats } => formats.iter().any(|format| format == kv),
            Requirement::SameOnBothSides { .. }
            | Requirement::DecodeSameOrOne { .. }
            | Requirement::MultipleOfOtherSide { .. } => true,
        }
    }
}

/// Whether two sides meet a requirement on both.
fn pairs(needs: &Requirement, prefill: &ParallelPlan, decode: &ParallelPlan) -> bool {
    let sides = |degree: &Degree| (prefill.degree(*degree), decode.degree(*degree));
    match needs {
        Requirement::SameOnBothSides { degree } => {
            let (front, back) = sides(degree);
            front == back
        }
        Requirement::DecodeSameOrOne { degree } => {
            let (front, back) = sides(degree);
            back == 1 || back == front
        }
        Requirement::MultipleOfOtherSide { degree } => {
            let (front, back) = sides(degree);
            front.is_multiple_of(back) || back.is_multiple_of(front)
        }
        Requirement::Never {}
        | Requirement::One { .. }
        | Requirement::OneAtATime { .. }
        | Requirement::OneOrAll { .. }
        | Requirement::PowerOfTwo { .. }
        | Requirement::AtMost { .. }
        | Requirement::InOneHost { .. }
        | Requirement::RanksDivideHeads { .. }
        | Requirement::KvFormats { .. } => true,
    }
}

fn concerns(when: &RuleCondition, classes: &[ModelClass], model_type: &str, family: &str) -> bool {
    when.models.iter().all(|class| classes.contains(class))
        && !when.except_models.iter().any(|class| classes.contains(class))
        && (when.model_types.is_empty() || when.model_types.iter().any(|known| known == model_type))
        && !when.except_model_types.iter().any(|known| known == model_type)
        && (when.devices.is_empty() || when.devices.iter().any(|known| known == family))
}

pub fn classes(graph: &ModelGraph) -> Vec<ModelClass> {
    let any = |is: fn(&Operator) -> bool| graph.layer_nodes().any(|node| is(&node.operator));
    let compressed = any(|operator| matches!(operator, Operator::CompressedAttention { .. }));
    let latent = any(|operator| matches!(operator, Operator::LatentAttention { .. }));
    let indexed = any(|operator| matches!(operator, Operator::Indexer { .. }));
    let bounded = any(|operator| {
        let Operator::Attention(attention) = operator else { return false };
        matches!(attention.mask, AttentionMask::Window(_) | AttentionMask::Chunk(_))
    });
    let experts = has_experts(graph);
    let known = [
        (ModelClass::Dense, !experts),
        (ModelClass::Moe, experts),
        (ModelClass::Mla, latent || compressed),
        (ModelClass::SparseMla, compressed || (latent && indexed)),
        (ModelClass::Gqa, any(|operator| matches!(operator, Operator::Attention { .. }))),
        (ModelClass::State, graph.blocks.iter().any(|block| block.state_bytes_per_sequence() > 0)),
        (ModelClass::Sliding, bounded),
        (ModelClass::Multimodal, !graph.towers.is_empty()),
        (ModelClass::Draft, graph.draft.is_some()),
    ];
    known.into_iter().filter(|(_, is)| *is).map(|(class, _)| class).collect()
}

/// Attention heads and KV heads of every attention, each pair once.
fn heads(graph: &ModelGraph) -> Vec<(u64, u64)> {
    let mut heads = Vec::new();
    for node in graph.layer_nodes() {
        if let Operator::Attention(attention) = &node.operator {
            let pair = (attention.heads.value, attention.kv_heads.value);
            if !heads.contains(&pair) {
                heads.push(pair);
            }
        }
    }
    heads
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ParallelPlan = ParallelPlan::SINGLE;

    /// A runtime with one rule, on hosts of four, for a model of 32 heads and 8 KV heads.
    fn rules(rule: &str) -> RuntimeRules {
        let text = format!(r#"{{"id": "a", "words": "b", "source": "c", {rule}}}"#);
        RuntimeRules {
            id: "runtime".into(),
            supports: vec![],
            streams: vec![],
            lifted: false,
            rules: vec![serde_json::from_str(&text).unwrap()],
            cuts: vec![],
            host: 4,
            heads: vec![(32, 8)],
        }
    }

    fn tp(tp: u64) -> ParallelPlan {
        ParallelPlan { tp, ..ONE }.without_experts()
    }

    fn pp(pp: u64) -> ParallelPlan {
        ParallelPlan { pp, ..ONE }
    }

    #[test]
    fn a_requirement_on_a_worker_forbids_what_does_not_meet_it() {
        let both = ParallelPlan { pp: 2, ..tp(2) };
        let data = ParallelPlan { tp: 2, dp: 2, ..ONE };
        for (rule, runs, refused) in [
            (r#""needs": {"kind": "one", "degrees": ["tp"]}"#, pp(3), both),
            (r#""needs": {"kind": "one", "degrees": ["sp"]}"#, tp(2), ParallelPlan { sp: true, ..tp(2) }),
            (r#""needs": {"kind": "one_at_a_time", "degrees": ["tp", "pp"]}"#, tp(2), both),
            (r#""needs": {"kind": "one_or_all", "degree": "dp"}"#, ParallelPlan { dp: 4, ..ONE }, data),
            (
                r#""needs": {"kind": "power_of_two", "degree": "devices"}"#,
                both,
                ParallelPlan { pp: 3, ..ONE },
            ),
            (r#""needs": {"kind": "at_most", "degree": "tp", "most": 2}"#, both, tp(3)),
            (r#""needs": {"kind": "in_one_host", "degree": "tp"}"#, ParallelPlan { pp: 4, ..tp(2) }, tp(8)),
            (r#""needs": {"kind": "ranks_divide_heads", "ranks": 2}"#, tp(8), tp(32)),
            (r#""when": {"above_one": ["tp"]}, "needs": {"kind": "never"}"#, pp(2), both),
            (r#""when": {"several_hosts": true}, "needs": {"kind": "never"}"#, tp(4), tp(8)),
        ] {
            let rules = rules(rule);
            assert_eq!(rules.roles("bf16", &runs), RoleSet::ALL, "{rule}");
            assert!(!rules.roles("bf16", &refused).any(), "{rule}");
            let reason = rules.check("bf16", &[(Role::Decode, refused)]).unwrap_err();
            assert_eq!((reason.kind(), reason.to_string().as_str()), ("a", "runtime: b (rule a; c)"));
        }
    }

    #[test]
    fn a_rule_holds_for_its_roles_and_formats_alone() {
        let decode = rules(r#""when": {"roles": ["decode"]}, "needs": {"kind": "one", "degrees": ["pp"]}"#);
        assert_eq!(decode.roles("bf16", &pp(2)), RoleSet { decode: false, ..RoleSet::ALL });
        assert_eq!(decode.roles("bf16", &tp(2)), RoleSet::ALL);
        let cache = rules(r#""needs": {"kind": "kv_formats", "formats": ["fp16"]}"#);
        assert!(cache.read_kv() && cache.roles("fp16", &ONE).any() && !cache.roles("fp8", &ONE).any());
    }

    #[test]
    fn a_requirement_on_both_sides_forbids_pairs() {
        let pairs = |needs: &str, front, back| {
            let rules = rules(&format!(r#""needs": {{"kind": "{needs}", "degree": "tp"}}"#));
            let workers = [(Role::Prefill, front), (Role::Decode, back)];
            assert_eq!(rules.forbids("bf16", &workers).is_none(), rules.pairs(&front, &back));
            assert_eq!(rules.pair_key(&front)[Degree::Tp as usize], front.tp);
            rules.pairs(&front, &back)
        };
        assert!(pairs("same_on_both_sides", tp(2), tp(2)) && !pairs("same_on_both_sides", tp(2), tp(1)));
        assert!(pairs("decode_same_or_one", tp(4), tp(1)) && !pairs("decode_same_or_one", tp(1), tp(4)));
        assert!(
            pairs("multiple_of_other_side", tp(2), tp(8)) && !pairs("multiple_of_other_side", tp(2), tp(3))
        );
    }

    #[test]
    fn conditions_on_the_model_and_the_devices_choose_the_rules() {
        let when = |text: &str| serde_json::from_str::<RuleCondition>(text).unwrap();
        let of =
            |text: &str| concerns(&when(text), &[ModelClass::Moe, ModelClass::Mla], "deepseek_v3", "hopper");
        for held in [
            "{}",
            r#"{"models": ["moe", "mla"]}"#,
            r#"{"except_models": ["gqa"]}"#,
            r#"{"model_types": ["deepseek_v3"]}"#,
            r#"{"devices": ["ampere", "hopper"]}"#,
        ] {
            assert!(of(held), "{held}");
        }
        for missed in [
            r#"{"models": ["moe", "state"]}"#,
            r#"{"except_models": ["mla"]}"#,
            r#"{"model_types": ["llama"]}"#,
            r#"{"except_model_types": ["deepseek_v3"]}"#,
            r#"{"devices": ["ada"]}"#,
        ] {
            assert!(!of(missed), "{missed}");
        }
    }
}
