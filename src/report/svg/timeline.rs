//! A timeline as a picture: for each pipeline stage, lanes of compute, memory, communication and waiting.

use super::frame::line;
use super::marks::{bar, swatch};
use super::scale::{PlotScale, tick};
use super::{Anchor, SvgPanel, text, text_width};
use crate::plan::parallel::Phase;
use crate::report::number::time;
use crate::report::timeline::{Lane, StepTimeline, Timeline, TimelineEvent};

const WIDTH: f64 = 560.0;
const LANE: f64 = 16.0;
const BETWEEN: f64 = 12.0;
const LEFT: f64 = 92.0;
/// Marks closer than this are drawn as one.
const NEAR: f64 = 0.5;

/// Panels of a prefill and of a decode step.
pub fn timeline_panels(timeline: &Timeline) -> Vec<SvgPanel> {
    timeline.steps.iter().filter(|step| step.time_us > 0.0 && step.time_us.is_finite()).map(panel).collect()
}

/// Events of a lane in one mark: start, end, number and first name.
struct LaneRun<'a> {
    start: f64,
    end: f64,
    events: u64,
    first: &'a TimelineEvent,
}

fn panel(step: &StepTimeline) -> SvgPanel {
    let name = match step.phase {
        Phase::Prefill => "prefill of one prompt per attention rank",
        Phase::Decode => "one decode step",
    };
    let title = format!("Timeline: {name}, {}, {}", step.label, time(step.time_us / 1e3));
    let mut body = text("name", Anchor::Start, [0.0, 14.0], &title);
    let mut x = 0.0;
    for (series, lane) in Lane::ALL.iter().enumerate() {
        body.push_str(&swatch(series, [x + 8.0, 30.0]));
        body.push_str(&text("tick", Anchor::Start, [x + 18.0, 34.0], lane.name()));
        x += 34.0 + text_width(lane.name(), 11.0);
    }
    let scale = PlotScale::from_zero(step.time_us / 1e3);
    let place = |us: f64| LEFT + WIDTH * scale.share(us / 1e3);
    let (top, stage) = (46.0, LANE * Lane::ALL.len() as f64 + BETWEEN);
    let bottom = top + stage * step.stages.len() as f64;
    for value in scale.ticks() {
        let x = LEFT + WIDTH * scale.share(value);
        body.push_str(&line("grid", [x, top], [x, bottom]));
        body.push_str(&text("tick", Anchor::Middle, [x, bottom + 14.0], &tick(value)));
    }
    body.push_str(&text("label", Anchor::Middle, [LEFT + WIDTH / 2.0, bottom + 32.0], "ms"));
    for (at, track) in step.stages.iter().enumerate() {
        let y = top + stage * at as f64;
        let words = match step.stages.len() {
            1 => format!("{} devices", track.devices),
            _ => format!("stage {at}"),
        };
        body.push_str(&text("value", Anchor::End, [LEFT - 8.0, y + 2.0 * LANE + 4.0], &words));
        for (series, lane) in Lane::ALL.into_iter().enumerate() {
            for run in runs(step, at, lane, &place) {
                let words = match run.events {
                    1 => run.first.name.clone(),
                    more => format!("{more} operators from {}", run.first.name),
                };
                let words = format!("{}: {words}, from {}", lane.name(), time(run.first.start_us / 1e3));
                let y = y + LANE * series as f64;
                body.push_str(&bar(series, [run.start, y], [run.end - run.start, LANE - 3.0], &words));
            }
        }
    }
    let width = (LEFT + WIDTH + 30.0).max(text_width(&title, 13.0));
    SvgPanel { width, height: bottom + 44.0, body }
}

fn runs<'a>(
    step: &'a StepTimeline,
    stage: usize,
    lane: Lane,
    place: &impl Fn(f64) -> f64,
) -> Vec<LaneRun<'a>> {
    let mut runs: Vec<LaneRun> = Vec::new();
    for event in step.events.iter().filter(|event| event.stage == stage && event.lane == lane) {
        let (start, end) = (place(event.start_us), place(event.start_us + event.duration_us));
        match runs
            .last_mut()
            .filter(|run| start - run.end < NEAR && (end - start < NEAR || run.end - run.start < NEAR))
        {
            Some(run) => (run.end, run.events) = (run.end.max(end), run.events + 1),
            None => runs.push(LaneRun { start, end: end.max(start + NEAR / 2.0), events: 1, first: event }),
        }
    }
    runs
}
