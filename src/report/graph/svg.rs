//! The graph as a picture: groups next to and under each other, operators in rows, flow from top to bottom.

use petgraph::visit::EdgeRef;

use super::layout::{GraphLayout, place};
use super::notation::{DrawnSort, SORTS};
use super::{DrawnOperator, GraphDrawing, GroupLink, GroupPosition, LayerGroup};
use crate::report::svg::svg_document;
use crate::spec::visible::visible_xml;

/// Around operators in a group, and around everything.
const PAD: f64 = 16.0;
/// A group's heading.
const HEADING: f64 = 44.0;
/// Between columns of groups, with room for what flows around them.
const COLUMN_GAP: f64 = 56.0;
/// Between groups above each other.
const GROUP_GAP: f64 = 44.0;
/// Between two lines that flow side by side.
const LANE: f64 = 9.0;
/// A line of text in an operator.
const LINE: f64 = 14.0;
const TITLE: f64 = 52.0;
/// Radius of bends.
const BEND: f64 = 6.0;

struct Frame<'v> {
    group: &'v LayerGroup,
    layout: GraphLayout,
    edges: Vec<(usize, usize, u64)>,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

pub fn svg(view: &GraphDrawing) -> String {
    let mut boxes: Vec<Frame> = view.groups.iter().map(|group| boxed(view, group)).collect();
    arrange(&mut boxes, view.links.len());
    let right = boxes.iter().map(|group| group.x + group.width).fold(text_width(&view.title, 9.5), f64::max);
    let bottom = boxes.iter().map(|group| group.y + group.height).fold(0.0, f64::max);
    // Edges that leave an encoder at the bottom of the picture turn below it.
    let towers = view.groups.iter().any(|group| matches!(group.place, GroupPosition::Tower(_)));
    let bottom = if towers { bottom + lane(view.links.len()) } else { bottom };
    let (width, height) = (right + PAD + GROUP_GAP / 2.0, bottom + PAD + 34.0);
    let mut body = String::new();
    for (number, link) in view.links.iter().enumerate() {
        body.push_str(&flow(&boxes, link, number));
    }
    for group in &boxes {
        body.push_str(&drawn(view, group));
    }
    body.push_str(&legend(bottom + PAD + 14.0));
    let names = [&view.title, &view.description].map(|text| visible_xml(text).to_string());
    let title = &names[0];
    let heading = format!("<text class=\"title\" x=\"{PAD}\" y=\"30\" aria-hidden=\"true\">{title}</text>\n");
    svg_document([width, height], &names, &style(), &(heading + &body))
}

fn boxed<'v>(view: &'v GraphDrawing, group: &'v LayerGroup) -> Frame<'v> {
    let at = |node| group.nodes.iter().position(|known| *known == node);
    let edges: Vec<(usize, usize, u64)> = view
        .graph
        .edge_references()
        .filter_map(|edge| Some((at(edge.source())?, at(edge.target())?, *edge.weight())))
        .collect();
    let sizes: Vec<(f64, f64)> = group.nodes.iter().map(|node| size(&view.graph[*node])).collect();
    let pairs: Vec<(usize, usize)> = edges.iter().map(|(from, to, _)| (*from, *to)).collect();
    let layout = place(&sizes, &pairs);
    let heading = text_width(&group.name, 8.2).max(text_width(&group.note, 6.4));
    let width = layout.width.max(heading) + 2.0 * PAD;
    let height = HEADING + layout.height + PAD;
    Frame { group, layout, edges, x: 0.0, y: 0.0, width, height }
}

fn size(step: &DrawnOperator) -> (f64, f64) {
    let lines = step.lines.iter().map(|line| text_width(line, 6.3)).fold(0.0, f64::max);
    (text_width(&step.name, 7.6).max(lines) + 18.0, 22.0 + LINE * step.lines.len() as f64)
}

/// Maximum width of a text, for letters of this width.
fn text_width(text: &str, letter: f64) -> f64 {
    text.chars().count() as f64 * letter
}

/// Encoders to the left, layers side by side, the embedding above and the head below them.
fn arrange(boxes: &mut [Frame], links: usize) {
    let gap = GROUP_GAP + LANE * links as f64;
    let column_gap = COLUMN_GAP + LANE * links as f64;
    let tops = boxes.iter().filter(|group| group.group.place == GroupPosition::Top);
    let top = TITLE + GROUP_GAP / 2.0;
    let layers_top = top + tops.map(|group| group.height).fold(0.0, f64::max) + gap;
    let mut x = PAD + lane(links);
    let (mut tower, mut y) = (None, layers_top);
    for group in boxes.iter_mut() {
        let GroupPosition::Tower(number) = group.group.place else { continue };
        if tower.is_some_and(|(known, _)| known != number) {
            x += tower.map_or(0.0, |(_, width): (usize, f64)| width) + column_gap;
            (tower, y) = (None, layers_top);
        }
        (group.x, group.y) = (x, y);
        y += group.height + gap;
        tower = Some((number, tower.map_or(group.width, |(_, width)| width.max(group.width))));
    }
    x += tower.map_or(0.0, |(_, width)| width + column_gap);
    middle(boxes);
    let (left, mut right, mut layers_bottom) = (x, x, layers_top);
    for group in boxes.iter_mut().filter(|group| group.group.place == GroupPosition::Layers) {
        (group.x, group.y) = (x, layers_top);
        right = x + group.width;
        layers_bottom = layers_bottom.max(group.y + group.height);
        x = right + column_gap;
    }
    for group in boxes.iter_mut() {
        let centred = ((left + right - group.width) / 2.0).max(left);
        match group.group.place {
            GroupPosition::Top => (group.x, group.y) = (centred, top),
            GroupPosition::Bottom => (group.x, group.y) = (centred, layers_bottom + gap),
            _ => {}
        }
    }
    let head = boxes.iter().find(|group| group.group.place == GroupPosition::Bottom);
    let mtp_corner = head.map_or((right, layers_bottom), |head| (head.x + head.width + column_gap, head.y));
    for group in boxes.iter_mut().filter(|group| group.group.place == GroupPosition::Mtp) {
        (group.x, group.y) = mtp_corner;
    }
}

/// Parts of one encoder are above each other by their middles.
fn middle(boxes: &mut [Frame]) {
    let sides: Vec<f64> = boxes.iter().map(|group| side(boxes, group.group.place)).collect();
    for (group, side) in boxes.iter_mut().zip(sides) {
        if matches!(group.group.place, GroupPosition::Tower(_)) {
            group.x += (side - group.x - group.width) / 2.0;
        }
    }
}

/// Right end of the widest group of a position.
fn side(boxes: &[Frame], place: GroupPosition) -> f64 {
    let same = boxes.iter().filter(|group| group.group.place == place);
    same.map(|group| group.x + group.width).fold(0.0, f64::max)
}

/// How far from groups the line of this number runs.
fn lane(number: usize) -> f64 {
    14.0 + LANE * number as f64
}

/// A line from under one group to over another, around the groups between.
fn flow(boxes: &[Frame], link: &GroupLink, number: usize) -> String {
    let (from, to) = (&boxes[link.from], &boxes[link.to]);
    let lane = lane(number);
    let (start_x, start_y) = (from.x + from.width / 2.0, from.y + from.height);
    let (end_x, end_y) = (to.x + to.width / 2.0, to.y);
    let over = end_y - lane;
    let points = if end_y > start_y {
        vec![(start_x, start_y), (start_x, over), (end_x, over), (end_x, end_y)]
    } else {
        let layers = boxes.iter().filter(|group| group.group.place == GroupPosition::Layers);
        let tower = matches!(from.group.place, GroupPosition::Tower(_));
        let (under, aside) = if tower {
            (start_y + lane, side(boxes, from.group.place) + lane)
        } else {
            (layers.map(|group| group.y + group.height).fold(start_y, f64::max) + lane, to.x - lane)
        };
        vec![
            (start_x, start_y),
            (start_x, under),
            (aside, under),
            (aside, over),
            (end_x, over),
            (end_x, end_y),
        ]
    };
    let label = visible_xml(&format!(
        "{} → {}: {} elements per token",
        from.group.name, to.group.name, link.elements
    ));
    let (x, y) = (end_x + 5.0, end_y - 3.0);
    format!(
        "<g role=\"graphics-symbol\" aria-label=\"{label}\"><title>{label}</title><path class=\"flow\" d=\"{}\" \
         marker-end=\"url(#tip)\"/><text class=\"shape\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text></g>\n",
        bent(&points),
        link.elements
    )
}

/// Straight lines with round bends.
fn bent(points: &[(f64, f64)]) -> String {
    let mut path = format!("M{:.1} {:.1}", points[0].0, points[0].1);
    for three in points.windows(3) {
        let [before, corner, after] = [three[0], three[1], three[2]];
        let towards = |other: (f64, f64)| {
            let (x, y) = (other.0 - corner.0, other.1 - corner.1);
            let length = libm::hypot(x, y).max(1e-9);
            let step = BEND.min(length / 2.0) / length;
            (corner.0 + x * step, corner.1 + y * step)
        };
        let (enter, leave) = (towards(before), towards(after));
        path.push_str(&format!(
            "L{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}",
            enter.0, enter.1, corner.0, corner.1, leave.0, leave.1
        ));
    }
    let last = points[points.len() - 1];
    path.push_str(&format!("L{:.1} {:.1}", last.0, last.1));
    path
}

fn drawn(view: &GraphDrawing, group: &Frame) -> String {
    let Frame { x, y, width, height, .. } = *group;
    let (name, note) = (visible_xml(&group.group.name), visible_xml(&group.group.note));
    let mut text = format!(
        "<g role=\"graphics-object\" aria-label=\"{name}, {note}\">\n\
         <rect class=\"group\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"10\"/>\n\
         <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>\
         <text class=\"note\" x=\"{:.1}\" y=\"{:.1}\">{note}</text>\n",
        x + PAD,
        y + 20.0,
        x + PAD,
        y + 35.0
    );
    // Its operators are in the middle.
    let (left, top) = (x + (width - group.layout.width) / 2.0, y + HEADING);
    let sizes: Vec<(f64, f64)> = group.group.nodes.iter().map(|node| size(&view.graph[*node])).collect();
    for (number, (_, to, _)) in group.edges.iter().enumerate() {
        let mut points = group.layout.edges[number].clone();
        let arrives = |edge: usize| group.layout.edges[edge][group.layout.edges[edge].len() - 2].0;
        // Edges into one operator arrive next to each other.
        let mut arriving: Vec<usize> =
            (0..group.edges.len()).filter(|edge| group.edges[*edge].1 == *to).collect();
        arriving.sort_by(|a, b| arrives(*a).total_cmp(&arrives(*b)));
        let place = arriving.iter().position(|edge| *edge == number).unwrap_or(0) as f64;
        let step = (sizes[*to].0 / (arriving.len() + 1) as f64).min(22.0);
        if let Some(last) = points.last_mut() {
            last.0 += (place - (arriving.len() - 1) as f64 / 2.0) * step;
        }
        text.push_str(&format!(
            "<path class=\"edge\" d=\"{}\" marker-end=\"url(#tip)\"/>\n",
            curved(&points, left, top)
        ));
    }
    for (at, node) in group.group.nodes.iter().enumerate() {
        let (centre_x, centre_y) = group.layout.nodes[at];
        let step = &view.graph[*node];
        let ((x, y), (width, height)) = ((left + centre_x, top + centre_y), sizes[at]);
        if let Some((.., elements)) = group.edges.iter().find(|(from, ..)| *from == at) {
            let (x, y) = (x + 4.0, y + height / 2.0 + 11.0);
            text.push_str(&format!("<text class=\"shape\" x=\"{x:.1}\" y=\"{y:.1}\">{elements}</text>\n"));
        }
        text.push_str(&operator(step, (x, y), (width, height)));
    }
    text.push_str("</g>\n");
    text
}

fn operator(step: &DrawnOperator, (x, y): (f64, f64), (width, height): (f64, f64)) -> String {
    let (left, top) = (x - width / 2.0, y - height / 2.0);
    let name = visible_xml(&step.name);
    let mut text = format!(
        "<g role=\"graphics-symbol\" aria-label=\"{name}: {}\"><title>{}</title>\
         <rect class=\"{}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"6\"/>\
         <text class=\"step\" x=\"{x:.1}\" y=\"{:.1}\">{name}</text>",
        visible_xml(&step.lines.join(", ")),
        visible_xml(&format!("{}\n{}", step.name, step.details.join("\n"))),
        SORTS[step.sort as usize].class,
        top + 16.0
    );
    for (number, line) in step.lines.iter().enumerate() {
        let y = top + 16.0 + LINE * (number + 1) as f64;
        text.push_str(&format!(
            "<text class=\"dims\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            visible_xml(line)
        ));
    }
    text.push_str("</g>\n");
    text
}

/// A line that leaves and arrives upright.
fn curved(points: &[(f64, f64)], left: f64, top: f64) -> String {
    let mut path = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let (x, y) = (x + left, y + top);
        if at == 0 {
            path.push_str(&format!("M{x:.1} {y:.1}"));
            continue;
        }
        let (before_x, before_y) = (points[at - 1].0 + left, points[at - 1].1 + top);
        if (before_x - x).abs() < 0.5 {
            path.push_str(&format!("L{x:.1} {y:.1}"));
        } else {
            let middle = (before_y + y) / 2.0;
            path.push_str(&format!("C{before_x:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {y:.1}"));
        }
    }
    path
}

fn legend(y: f64) -> String {
    let mut x = PAD;
    let mut text = String::from("<g aria-hidden=\"true\">");
    for DrawnSort { class, words, .. } in SORTS {
        text.push_str(&format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"12\" rx=\"3\"/>\
             <text class=\"note\" x=\"{:.1}\" y=\"{y:.1}\">{words}</text>",
            y - 10.0,
            x + 19.0
        ));
        x += 34.0 + text_width(words, 6.4);
    }
    text.push_str(&format!(
        "<text class=\"note\" x=\"{x:.1}\" y=\"{y:.1}\">numbers on lines: elements per token</text></g>\n"
    ));
    text
}

/// The rules, with those of the sorts, and the tip of lines.
fn style() -> String {
    let sorts =
        SORTS.map(|one| format!(".{}{{fill:{};stroke:#5b6573;stroke-width:.8}}", one.class, one.fill));
    let rules = include_str!("graph.css").replace('\n', "").replace("/*sorts*/", &sorts.concat());
    format!(
        "<style>{rules}</style>\n\
         <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
         markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 .8L7.5 4L0 7.2Z\" fill=\"#5b6573\"/></marker></defs>\n"
    )
}
