//! A timeline in the trace event format of Chrome, which Perfetto opens.
//!
//! Format: <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.

use serde_json::{Value, json};

use super::timeline::{Lane, StepTimeline, Timeline, TimelineEvent};

const NOTE: &str = "One device of each pipeline stage is shown; its other devices do the same at the same \
                    time. The prefill of one prompt per attention rank, then one decode step. Times are estimates.";

/// The trace as JSON. A device is a process, and each of its lanes a thread. The decode step starts where the prefill
/// ends.
pub fn trace(timeline: &Timeline) -> Value {
    let mut events = Vec::new();
    let (mut device, mut start) = (0, 0.0);
    for (number, step) in timeline.steps.iter().enumerate() {
        if !timeline.aggregated || number == 0 {
            events.extend(names(timeline, step, device));
        }
        events.extend(step.events.iter().map(|event| complete(event, step, (device, start))));
        start += step.time_us;
        if !timeline.aggregated {
            device += step.stages.len();
        }
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ms", "otherData": { "note": NOTE } })
}

fn names(timeline: &Timeline, step: &StepTimeline, device: usize) -> Vec<Value> {
    let worker =
        if timeline.aggregated { "replica".to_string() } else { format!("{} worker", step.phase.name()) };
    let stages = step.stages.iter().enumerate();
    let of_stage = |(stage, track): (usize, &super::timeline::StageTrack)| {
        let last = track.first_layer + track.layers.saturating_sub(1);
        let name = format!(
            "{worker} ({}), stage {stage}: layers {} to {last}, 1 of {} equal devices",
            step.label, track.first_layer, track.devices
        );
        let pid = device + stage;
        let process = json!({ "name": "process_name", "ph": "M", "pid": pid, "args": { "name": name } });
        let lanes = Lane::ALL.into_iter().map(move |lane| {
            json!({ "name": "thread_name", "ph": "M", "pid": pid, "tid": lane as usize, "args": { "name": lane.name() } })
        });
        std::iter::once(process).chain(lanes)
    };
    stages.flat_map(of_stage).collect()
}

fn complete(event: &TimelineEvent, step: &StepTimeline, (device, start): (usize, f64)) -> Value {
    json!({
        "name": event.name,
        "cat": step.phase.name(),
        "ph": "X",
        "ts": start + event.start_us,
        "dur": event.duration_us,
        "pid": device + event.stage,
        "tid": event.lane as usize,
        "args": {
            "layer": event.layer,
            "layers": event.layers,
            "flops": event.flops,
            "bytes": event.bytes,
            "wire_bytes": event.wire_bytes,
            "bound": event.lane.name(),
        },
    })
}
