//! A placement as a picture: the stages in order, each with its layers and memory, and the links between them.

use super::frame::line;
use super::marks::{bar, framed, swatch};
use super::{Anchor, SvgPanel, SvgPicture, escaped, text};
use crate::report::number::{gib, percent, time};
use crate::report::place::{PlacementReport, PlacementResult, StageReport};
use crate::spec::visible::elided;

const BOX: [f64; 2] = [236.0, 112.0];
const GAP: f64 = 84.0;
const ROW: usize = 4;
const TOP: f64 = 46.0;
const BETWEEN: f64 = 38.0;
const WIDEST: f64 = 8.0;
/// Longest name of a device, in characters.
const LONGEST: usize = 24;

/// The picture of an answer of `place`; empty without a placement.
pub fn place_picture(answer: &PlacementResult) -> SvgPicture {
    let inputs = &answer.question;
    let title = format!("{} on {}, ISL {}, OSL {}", inputs.model, inputs.rig, inputs.isl, inputs.osl);
    let Some(placement) = &answer.placement else { return SvgPicture { title, ..SvgPicture::default() } };
    let subtitle = format!(
        "decode step {}, prefill {}, E2E {}",
        time(placement.token_ms),
        time(placement.prefill_ms),
        time(placement.request_ms)
    );
    SvgPicture { title, subtitle, panels: vec![stages(placement)] }
}

fn corner(at: usize) -> [f64; 2] {
    let (row, column) = (at / ROW, at % ROW);
    [column as f64 * (BOX[0] + GAP), TOP + row as f64 * (BOX[1] + BETWEEN)]
}

fn stages(placement: &PlacementReport) -> SvgPanel {
    let slowest = placement.stages.iter().map(|stage| stage.send_ms).fold(0.0, f64::max);
    let mut body = text("name", Anchor::Start, [0.0, 14.0], "Placement");
    let mut x = 0.0;
    for (series, name) in [(0, "memory in use"), (6, "free"), (1, "slowest link")] {
        body.push_str(&swatch(series, [x + 8.0, 30.0]));
        body.push_str(&text("tick", Anchor::Start, [x + 18.0, 34.0], name));
        x += 40.0 + super::text_width(name, 11.0);
    }
    for (at, stage) in placement.stages.iter().enumerate() {
        body.push_str(&stage_box(at, stage));
        if at + 1 < placement.stages.len() {
            body.push_str(&link(at, stage.send_ms, slowest));
        }
    }
    let all = placement.stages.len();
    for (at, name) in placement.unused.iter().enumerate() {
        body.push_str(&unused_box(all + at, name));
    }
    let boxes = all + placement.unused.len();
    let columns = boxes.min(ROW) as f64;
    let width = (columns * (BOX[0] + GAP)).max(x);
    let [_, bottom] = corner(boxes.max(1) - 1);
    SvgPanel { width, height: bottom + BOX[1] + 14.0, body }
}

fn stage_box(at: usize, stage: &StageReport) -> String {
    let [x, y] = corner(at);
    let ends = [(stage.embedding, " + embedding"), (stage.head, " + head")];
    let ends: String = ends.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
    let layers = match stage.layers {
        0 => format!("no layers{ends}"),
        1 => format!("layer {}{ends}", stage.first_layer),
        _ => format!("layers {} to {}{ends}", stage.first_layer, stage.last_layer),
    };
    let copies =
        if stage.copies.is_empty() { String::new() } else { format!(" x {}", 1 + stage.copies.len()) };
    let name = format!("{}{copies}", elided(&stage.member, LONGEST));
    let whole = format!(
        "{}: {layers}, decode {}, prefill {}",
        stage.member,
        time(stage.decode_ms),
        time(stage.prefill_ms)
    );
    let mut drawn = framed("box", [x, y], BOX, &whole);
    drawn.push_str(&text("name", Anchor::Start, [x + 10.0, y + 20.0], &name));
    drawn.push_str(&text("tick", Anchor::Start, [x + 10.0, y + 38.0], &layers));
    let times = format!("decode {}, prefill {}", time(stage.decode_ms), time(stage.prefill_ms));
    drawn.push_str(&text("tick", Anchor::Start, [x + 10.0, y + 54.0], &times));
    let (held, usable) = (stage.memory_bytes - stage.offloaded_bytes, stage.usable_bytes);
    let share = if usable > 0.0 { (held / usable).clamp(0.0, 1.0) } else { 0.0 };
    let width = BOX[0] - 20.0;
    let words = format!("{}: {} of {} usable", stage.member, gib(held), gib(usable));
    drawn.push_str(&bar(0, [x + 10.0, y + 66.0], [width * share, 12.0], &words));
    drawn.push_str(&bar(6, [x + 10.0 + width * share, y + 66.0], [width * (1.0 - share), 12.0], &words));
    let memory = format!("{} of {} ({})", gib(held), gib(usable), percent(share));
    drawn.push_str(&text("tick", Anchor::Start, [x + 10.0, y + 92.0], &memory));
    if stage.offloaded_bytes > 0.0 {
        let out = format!("{} in host memory or storage", gib(stage.offloaded_bytes));
        drawn.push_str(&text("tick", Anchor::Start, [x + 10.0, y + 106.0], &out));
    }
    drawn
}

fn unused_box(at: usize, name: &str) -> String {
    let [x, y] = corner(at);
    framed("unused", [x, y], BOX, &format!("{name}: unused"))
        + &text("name", Anchor::Start, [x + 10.0, y + 20.0], &elided(name, LONGEST))
        + &text("tick", Anchor::Start, [x + 10.0, y + 38.0], "unused")
}

/// The link to the next stage: as wide as its share of the slowest link's time.
fn link(at: usize, send_ms: f64, slowest: f64) -> String {
    let ([x, y], [next_x, next_y]) = (corner(at), corner(at + 1));
    let share = if slowest > 0.0 { send_ms / slowest } else { 0.0 };
    let (stroke, series) = (1.0 + (WIDEST - 1.0) * share, if share >= 1.0 { "s1" } else { "s6" });
    let title = format!("transfer to the next stage: {} of a decode step", time(send_ms));
    let (to, words, steps) = if next_y > y {
        // The last of a row is above the first of the next one.
        let (from, to) = ([x + BOX[0] / 2.0, y + BOX[1]], [next_x + BOX[0] / 2.0, next_y]);
        let below = y + BOX[1] + BETWEEN / 2.0;
        let steps = format!(
            "M{:.1} {:.1}L{:.1} {below:.1}L{:.1} {below:.1}L{:.1} {:.1}",
            from[0], from[1], from[0], to[0], to[0], to[1]
        );
        (to, [(x + next_x + BOX[0]) / 2.0, below - 6.0], steps)
    } else {
        let (from, to) = ([x + BOX[0], y + BOX[1] / 2.0], [next_x, y + BOX[1] / 2.0]);
        let steps = format!("M{:.1} {:.1}L{:.1} {:.1}", from[0], from[1], to[0], to[1]);
        (to, [x + BOX[0] + GAP / 2.0, y + BOX[1] / 2.0 - 8.0], steps)
    };
    format!(
        "<path class=\"link {series}\" stroke-width=\"{stroke:.1}\" d=\"{steps}\"><title>{}</title></path>\n",
        escaped(&title, 300)
    ) + &text("tick", Anchor::Middle, words, &time(send_ms))
        + &arrow(to, next_y > y)
}

fn arrow([x, y]: [f64; 2], down: bool) -> String {
    match down {
        true => line("axis", [x - 9.0, y - 10.0], [x, y]) + &line("axis", [x + 9.0, y - 10.0], [x, y]),
        false => line("axis", [x - 10.0, y - 9.0], [x, y]) + &line("axis", [x - 10.0, y + 9.0], [x, y]),
    }
}
