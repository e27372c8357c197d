//! Timeline of the prefill of one prompt and of one decode step, operator by operator, on one device of each pipeline
//! stage. The devices of a stage do equal work at the same time, so one is drawn.

use crate::spec::offload::Offload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::breakdown::{Breakdown, Class, PlacedOperator, shown};
use crate::plan::parallel::Phase;
use crate::quantity::read::Plain;
use crate::search::candidate::{Candidate, PoolPlan};
use crate::search::problem::Problem;
use crate::serving::step_part::{StepPart, WaitKind};

/// Layers up to which each layer is drawn; of larger models, equal layers in sequence are one.
pub const MOST_LAYERS: usize = 512;

/// Occupation of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// Operators bound by compute.
    Compute,
    /// Softmax and rotary positions, on the vector units inside the kernel of attention.
    Vector,
    /// Operators bound by memory bandwidth.
    Memory,
    /// Collectives and transfers between stages.
    Communication,
    /// The device waits: launches, the host, host memory, other pipeline stages.
    Bubble,
}

impl Lane {
    pub const ALL: [Lane; 5] = [Lane::Compute, Lane::Vector, Lane::Memory, Lane::Communication, Lane::Bubble];

    pub fn name(self) -> &'static str {
        match self {
            Lane::Compute => "compute",
            Lane::Vector => "vector units",
            Lane::Memory => "memory",
            Lane::Communication => "communication",
            Lane::Bubble => "bubble",
        }
    }

    fn of(class: Class) -> Lane {
        match class {
            Class::Compute => Lane::Compute,
            Class::Memory => Lane::Memory,
            Class::Communication => Lane::Communication,
            Class::Overhead => Lane::Bubble,
        }
    }
}

/// An operator or a wait.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TimelineEvent {
    /// Pipeline stage, from 0.
    pub stage: usize,
    /// The lane.
    pub lane: Lane,
    /// Name, e.g. `dense_layer/q_proj`.
    pub name: String,
    /// Layer, from 0; absent outside the layers.
    pub layer: Option<u64>,
    /// Equal layers, of which this is the first.
    pub layers: u64,
    /// Start, µs from the start of the step.
    pub start_us: f64,
    /// Duration, µs.
    pub duration_us: f64,
    /// FLOPs on this device.
    pub flops: f64,
    /// Bytes to and from the memory of this device.
    pub bytes: f64,
    /// Bytes that this device sends.
    pub wire_bytes: f64,
}

/// A pipeline stage.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StageTrack {
    /// Its layers, the first from 0.
    pub first_layer: u64,
    /// Number of its layers.
    pub layers: u64,
    /// Devices, which do the same at the same time.
    pub devices: u64,
}

/// One step: the prefill of one prompt per attention rank, or a decode step.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StepTimeline {
    /// Prefill or decode.
    pub phase: Phase,
    /// Parallelism of the replica or worker, e.g. `tp4 pp2`.
    pub label: String,
    /// Reported time of the step, µs.
    pub time_us: f64,
    /// Its pipeline stages.
    pub stages: Vec<StageTrack>,
    /// Events, stage by stage in order of their start.
    pub events: Vec<TimelineEvent>,
}

/// The timeline of a deployment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// One replica runs both steps; otherwise a prefill worker and a decode worker.
    pub aggregated: bool,
    /// A prefill and a decode step; of several pools of a role, the first.
    pub steps: Vec<StepTimeline>,
}

pub fn timeline(problem: &Problem, candidate: &Candidate) -> Timeline {
    let evaluation = candidate.evaluate(&Plain, problem, &mut ());
    let breakdown = Breakdown::of(problem, candidate);
    let [prefill, decode] = shown(candidate);
    let step = |phase, pool: &PoolPlan, seconds: f64| {
        let sources = StepSources { problem, candidate, pool, phase, breakdown: &breakdown };
        StepTimeline {
            phase,
            label: pool.plan.label(),
            time_us: seconds * 1e6,
            stages: sources.tracks(),
            events: sources.events(),
        }
    };
    Timeline {
        aggregated: std::ptr::eq(prefill, decode),
        steps: vec![
            step(Phase::Prefill, prefill, evaluation.prefill.total.value()),
            step(Phase::Decode, decode, evaluation.decode.total.value()),
        ],
    }
}

struct StepSources<'a> {
    problem: &'a Problem,
    candidate: &'a Candidate,
    pool: &'a PoolPlan,
    phase: Phase,
    breakdown: &'a Breakdown,
}

impl StepSources<'_> {
    fn tracks(&self) -> Vec<StageTrack> {
        let mut first_layer = 0;
        let track = |&layers: &u32| {
            let track = StageTrack {
                first_layer,
                layers: u64::from(layers),
                devices: self.pool.plan.stage_devices(),
            };
            first_layer += u64::from(layers);
            track
        };
        self.pool.stages.iter().map(track).collect()
    }

    /// The operators of a part, in order.
    fn part(&self, part: StepPart) -> impl Iterator<Item = &PlacedOperator> {
        let all = self.breakdown.operators.iter();
        all.filter(move |one| one.part == part && one.line.phase == self.phase)
    }

    /// Whether the layer at `place` of its stage has a part in host memory.
    fn hosted(&self, block: usize, place: usize) -> bool {
        let first = match self.candidate.offload {
            Offload::Host(part) => place < part.layers as usize,
            Offload::Nothing | Offload::Streamed(_) => false,
        };
        first && self.part(StepPart::Layer { block, hosted: true }).next().is_some()
    }

    fn events(&self) -> Vec<TimelineEvent> {
        let mut pen = Pen::default();
        let last = self.pool.stages.len().saturating_sub(1);
        let mut layers = self.problem.graph.layer_block.as_slice();
        for (stage, &count) in self.pool.stages.iter().enumerate() {
            let (mine, others) = layers.split_at((count as usize).min(layers.len()));
            let first_layer = self.problem.graph.layer_block.len() - layers.len();
            layers = others;
            pen.enter(stage);
            if stage == 0 {
                pen.draw(self.part(StepPart::Host), None, None);
                self.wait(&mut pen, WaitKind::Chunks);
            }
            if stage == last && self.phase == Phase::Decode {
                pen.draw(self.part(StepPart::Draft), None, None);
            }
            self.wait(&mut pen, WaitKind::HostRead);
            if stage == 0 {
                pen.draw(self.part(StepPart::Images), None, None);
                pen.draw(self.part(StepPart::Embedding), None, None);
            }
            self.layers(&mut pen, mine, first_layer);
            if stage == last {
                pen.draw(self.part(StepPart::Head), None, None);
            } else {
                self.wait(&mut pen, WaitKind::Handover);
            }
            if stage == last && self.phase == Phase::Prefill {
                pen.draw(self.part(StepPart::Draft), None, None);
            }
        }
        pen.finish()
    }

    /// Draws the layers of a stage, of which the first is `first_layer` of the model.
    fn layers(&self, pen: &mut Pen, blocks: &[usize], first_layer: usize) {
        let kind = |place: usize| (blocks[place], self.hosted(blocks[place], place));
        let fold = self.problem.graph.layer_block.len() > MOST_LAYERS;
        let mut place = 0;
        while place < blocks.len() {
            let (block, hosted) = kind(place);
            let equal = (place..blocks.len()).take_while(|next| kind(*next) == (block, hosted)).count();
            let times = if fold { equal } else { 1 };
            let part = StepPart::Layer { block, hosted };
            pen.draw(self.part(part), Some((first_layer + place) as u64), Some(times as u64));
            place += times;
        }
    }

    fn wait(&self, pen: &mut Pen, kind: WaitKind) {
        let (name, lane) = match kind {
            WaitKind::Handover => ("transfer to the next stage", Lane::Communication),
            WaitKind::Chunks => ("host, further chunks of the prompt", Lane::Bubble),
            WaitKind::HostRead => ("offloaded data over the host link", Lane::Bubble),
        };
        let waits = self.breakdown.waits.iter();
        for (_, wait) in waits.filter(|(phase, wait)| *phase == self.phase && wait.kind == kind) {
            let event = TimelineEvent { wire_bytes: wait.wire, ..pen.event(lane, name) };
            pen.add(TimelineEvent { duration_us: wait.time * 1e6, ..event });
        }
    }
}

#[derive(Default)]
struct Pen {
    events: Vec<TimelineEvent>,
    stage: usize,
    clock: f64,
}

impl Pen {
    /// Goes on with a stage, which waited for the stages before it.
    fn enter(&mut self, stage: usize) {
        self.stage = stage;
        let waited = TimelineEvent { start_us: 0.0, ..self.event(Lane::Bubble, "waits for earlier stages") };
        self.push(TimelineEvent { duration_us: self.clock, ..waited });
    }

    fn event(&self, lane: Lane, name: &str) -> TimelineEvent {
        TimelineEvent {
            stage: self.stage,
            lane,
            name: name.to_string(),
            layer: None,
            layers: 1,
            start_us: self.clock,
            duration_us: 0.0,
            flops: 0.0,
            bytes: 0.0,
            wire_bytes: 0.0,
        }
    }

    fn push(&mut self, event: TimelineEvent) {
        // Work of vector units without a stated rate takes no time.
        if event.duration_us > 0.0 || event.flops > 0.0 {
            self.events.push(event);
        }
    }

    fn add(&mut self, event: TimelineEvent) {
        self.clock += event.duration_us;
        self.push(event);
    }

    /// Draws operators in sequence, `times` layers of each; all their layers if absent.
    fn draw<'o>(
        &mut self,
        operators: impl Iterator<Item = &'o PlacedOperator>,
        layer: Option<u64>,
        times: Option<u64>,
    ) {
        let (mut start, mut end) = (self.clock, self.clock);
        // Vector work runs from the start of the kernel that it is inside of.
        let mut vector = 0.0;
        for PlacedOperator { line, overlaps, .. } in operators {
            let times = times.unwrap_or(line.layers);
            let share = times as f64 / line.layers.max(1) as f64;
            let duration_us = line.fused_ms.unwrap_or(line.time_ms) * 1e3 * share;
            let lane = if line.fused_ms.is_some() { Lane::Vector } else { Lane::of(line.class) };
            let begin = match line.fused_ms {
                Some(_) => {
                    vector += duration_us;
                    end + vector - duration_us
                }
                None => {
                    if !overlaps {
                        start = end;
                    }
                    end = end.max(start + duration_us);
                    vector = 0.0;
                    start
                }
            };
            let name = format!("{}/{}", line.block, line.module);
            self.push(TimelineEvent {
                layer,
                layers: times,
                start_us: begin,
                duration_us,
                flops: line.flops * share,
                bytes: line.bytes * share,
                wire_bytes: line.wire_bytes * share,
                ..self.event(lane, &name)
            });
        }
        self.clock = end;
    }

    /// All events; every stage waits for the later ones.
    fn finish(mut self) -> Vec<TimelineEvent> {
        for stage in 0..self.stage {
            let own = self.events.iter().filter(|event| event.stage == stage);
            let end = own.map(|event| event.start_us + event.duration_us).fold(0.0, f64::max);
            let waits =
                TimelineEvent { stage, start_us: end, ..self.event(Lane::Bubble, "waits for later stages") };
            self.push(TimelineEvent { duration_us: self.clock - end, ..waits });
        }
        self.events.sort_by(|a, b| a.stage.cmp(&b.stage).then(a.start_us.total_cmp(&b.start_us)));
        self.events
    }
}
