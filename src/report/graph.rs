//! A model's graph for people: layers folded by number, operators as nodes, elements per token on the edges.
//!
//! The modules `svg` and `notation` draw it.

pub mod layout;
pub mod notation;
pub mod svg;

use petgraph::graph::{DiGraph, NodeIndex};

use super::inspect::Inspected;
use super::table::{grouped, ranges};
use crate::graph::inspect::{InspectedBlock, InspectedOperator, Inspection};

#[derive(Clone, Debug)]
pub struct GraphDrawing {
    /// One line.
    pub title: String,
    /// Text description, for accessibility.
    pub description: String,
    /// Embedding, layers, head, encoders and multi-token prediction.
    pub groups: Vec<LayerGroup>,
    /// Operators, and elements per token between those of one group.
    pub graph: DiGraph<DrawnOperator, u64>,
    pub links: Vec<GroupLink>,
}

/// Equal layers, folded.
#[derive(Clone, Debug)]
pub struct LayerGroup {
    /// Its name and number of repetitions.
    pub name: String,
    /// Layers and size.
    pub note: String,
    pub place: GroupPosition,
    /// Its operators, in execution order.
    pub nodes: Vec<NodeIndex>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupPosition {
    /// An encoder, by its number.
    Tower(usize),
    /// The embedding, over the layers.
    Top,
    Layers,
    /// The head, under the layers.
    Bottom,
    Mtp,
}

#[derive(Clone, Debug)]
pub struct DrawnOperator {
    pub name: String,
    /// Kind and dimensions, in lines.
    pub lines: Vec<String>,
    /// Details, in lines.
    pub details: Vec<String>,
    pub sort: Sort,
}

/// Sort of work of an operator; each has its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Matrices that every token passes.
    Matrix,
    /// Token mixers: attention, recurrences, convolutions.
    Mixer,
    /// Experts and their routers.
    Experts,
    /// Element-wise operators.
    Small,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLink {
    pub from: usize,
    pub to: usize,
    /// Elements per token.
    pub elements: u64,
}

/// Characters in a line of a node's dimensions.
const LINE: usize = 30;

impl GraphDrawing {
    pub fn of(inspected: &Inspected) -> GraphDrawing {
        let inspection = &inspected.inspection;
        let mut view = GraphDrawing {
            title: format!("{}: {}, {} layers", inspected.name, inspection.model_type, inspection.layers),
            description: String::new(),
            groups: vec![],
            graph: DiGraph::new(),
            links: vec![],
        };
        let last = inspection.blocks.len() - 1;
        for (at, block) in inspection.blocks.iter().enumerate() {
            let place = match at {
                0 => GroupPosition::Top,
                at if at == last => GroupPosition::Bottom,
                _ => GroupPosition::Layers,
            };
            view.add(place, block, "");
        }
        view.links = transitions(inspection);
        view.towers(inspection);
        view.mtp(inspection);
        let groups = view.groups.iter().map(|group| format!("{} ({})", group.name, group.note));
        view.description = format!(
            "{} unique parameters, {} active per token. Groups of operators, in order: {}.",
            grouped(inspection.parameters.unique),
            grouped(inspection.parameters.active),
            groups.collect::<Vec<_>>().join("; ")
        );
        view
    }

    fn add(&mut self, place: GroupPosition, block: &InspectedBlock, prefix: &str) -> usize {
        let repeats = block.layers.len();
        let times = if repeats > 0 { format!(" × {repeats}") } else { String::new() };
        let parameters = format!("{} parameters", short(block.parameters));
        let note = match repeats {
            0 => parameters,
            _ => format!("layers {}, {parameters} each", ranges(&block.layers)),
        };
        let nodes: Vec<NodeIndex> =
            block.operators.iter().map(|operator| self.graph.add_node(step(operator))).collect();
        for (at, operator) in block.operators.iter().enumerate() {
            for input in &operator.inputs {
                // Names may come again; what is read was computed before.
                if let Some(from) = block.operators[..at].iter().rposition(|other| other.name == *input) {
                    self.graph.add_edge(nodes[from], nodes[at], block.operators[from].output);
                }
            }
        }
        self.groups.push(LayerGroup { name: format!("{prefix}{}{times}", block.name), note, place, nodes });
        self.groups.len() - 1
    }

    fn towers(&mut self, inspection: &Inspection) {
        let crossing = inspection
            .blocks
            .iter()
            .position(|block| block.operators.iter().any(|operator| operator.kind == "cross_attention"));
        for (number, tower) in inspection.towers.iter().enumerate() {
            let output =
                |block: &InspectedBlock| block.operators.last().map_or(0, |operator| operator.output);
            let mut before: Option<(usize, u64)> = None;
            for block in &tower.blocks {
                let at = self.add(GroupPosition::Tower(number), block, &format!("{} ", tower.name));
                if let Some((from, elements)) = before {
                    self.links.push(GroupLink { from, to: at, elements });
                }
                before = Some((at, output(block)));
            }
            if let Some((from, elements)) = before {
                // Its tokens are among the text's, or are attended to where layers do so.
                self.links.push(GroupLink { from, to: crossing.unwrap_or(0), elements });
            }
        }
    }

    fn mtp(&mut self, inspection: &Inspection) {
        if inspection.mtp.is_empty() {
            return;
        }
        let parameters = inspection.parameters;
        let details = inspection.mtp.iter().map(|tensor| shaped(&tensor.name, &tensor.shape));
        let node = self.graph.add_node(DrawnOperator {
            name: "multi-token prediction".to_owned(),
            lines: vec![format!("{} tensors", inspection.mtp.len())],
            details: details.collect(),
            sort: Sort::Matrix,
        });
        let note = format!("{} parameters", short(parameters.mtp + parameters.mtp_copies));
        let group = LayerGroup { name: "MTP".to_owned(), note, place: GroupPosition::Mtp, nodes: vec![node] };
        self.groups.push(group);
        let head = inspection.blocks.len() - 1;
        let (from, elements) =
            self.links.iter().find(|link| link.to == head).map_or((0, 0), |link| (link.from, link.elements));
        self.links.push(GroupLink { from, to: self.groups.len() - 1, elements });
    }
}

/// From which block to which the stream goes, each pair once. Indices of `inspection.blocks`.
fn transitions(inspection: &Inspection) -> Vec<GroupLink> {
    let blocks = &inspection.blocks;
    let mut layers: Vec<(u32, usize)> = vec![];
    for (at, block) in blocks.iter().enumerate() {
        layers.extend(block.layers.iter().map(|layer| (*layer, at)));
    }
    layers.sort_unstable();
    let path: Vec<usize> =
        [0].into_iter().chain(layers.into_iter().map(|(_, at)| at)).chain([blocks.len() - 1]).collect();
    let mut links: Vec<GroupLink> = vec![];
    for pair in path.windows(2).filter(|pair| pair[0] != pair[1]) {
        let elements = blocks[pair[0]].operators.last().map_or(0, |operator| operator.output);
        let link = GroupLink { from: pair[0], to: pair[1], elements };
        if !links.contains(&link) {
            links.push(link);
        }
    }
    links
}

fn step(operator: &InspectedOperator) -> DrawnOperator {
    let value = |name: &str| operator.dims.iter().find(|dim| dim.name == name).map_or(0, |dim| dim.value);
    let own = match operator.kind.as_str() {
        "linear" => Some(format!("{} → {}", value("input"), value("output"))),
        "embedding" => Some(format!("{} × {}", value("vocab"), value("hidden"))),
        "input" | "activation" | "add" => Some(value("width").to_string()),
        "norm" if value("rows") == 1 => Some(value("width").to_string()),
        "norm" => Some(format!("{} rows of {}", value("rows"), value("width"))),
        _ => None,
    };
    let kind = if operator.kind == operator.name { String::new() } else { operator.kind.replace('_', " ") };
    let mut lines = match own {
        Some(dims) => vec![format!("{kind} {dims}").trim().to_owned()],
        None => folded(operator, kind),
    };
    lines.retain(|line| !line.is_empty());
    let mut details: Vec<String> =
        operator.dims.iter().map(|dim| format!("{} {} ({})", dim.name, dim.value, dim.origin)).collect();
    details.extend(operator.weights.iter().map(|weight| shaped(&weight.name, &weight.shape)));
    details.push(format!("{} parameters", grouped(operator.parameters)));
    DrawnOperator { name: operator.name.clone(), lines, details, sort: sort(&operator.kind) }
}

/// The kind, then the dimensions in lines of `LINE` characters.
fn folded(operator: &InspectedOperator, kind: String) -> Vec<String> {
    let mut lines = vec![kind, String::new()];
    for dim in operator.dims.iter().map(|dim| format!("{} {}", dim.name, dim.value)) {
        let last = lines.last_mut().expect("there are two lines at least");
        if last.is_empty() {
            *last = dim;
        } else if last.chars().count() + 2 + dim.chars().count() <= LINE {
            *last = format!("{last}, {dim}");
        } else {
            lines.push(dim);
        }
    }
    lines
}

fn sort(kind: &str) -> Sort {
    match kind {
        "linear" | "grouped_linear" | "embedding" => Sort::Matrix,
        "router" | "experts" => Sort::Experts,
        "input" | "norm" | "activation" | "add" | "sampling" | "hyper_connection" | "rope" => Sort::Small,
        _ => Sort::Mixer,
    }
}

fn shaped(name: &str, shape: &[u64]) -> String {
    let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("{name} [{}]", shape.join(" × "))
}

/// `671026404352` → `671.0 B`: parameters for a heading.
fn short(number: u64) -> String {
    for (size, unit) in [(1_000_000_000, "B"), (1_000_000, "M"), (1_000, "k")] {
        if number >= size {
            let tenths = (u128::from(number) * 10 + u128::from(size) / 2) / u128::from(size);
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    number.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::inspect::tests::inspected;

    fn gemma() -> GraphDrawing {
        let config = r#"{"model_type": "gemma2", "hidden_size": 6, "num_hidden_layers": 4, "vocab_size": 11,
            "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 2, "intermediate_size": 10,
            "sliding_window": 5}"#;
        GraphDrawing::of(&inspected("a <b> & \"c\"", config))
    }

    #[test]
    fn equal_layers_are_one_group_and_the_stream_alternates_between_them() {
        let view = gemma();
        let groups: Vec<&str> = view.groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(groups, ["embedding", "sliding_layer × 2", "full_layer × 2", "head"]);
        let links: Vec<(usize, usize)> = view.links.iter().map(|link| (link.from, link.to)).collect();
        assert_eq!(links, [(0, 1), (1, 2), (2, 1), (2, 3)]);
        assert!(view.links.iter().all(|link| link.elements == 6));
        assert!(view.graph.edge_weights().any(|elements| *elements == 10), "from the up projection");
    }

    #[test]
    fn every_operator_is_drawn_with_its_title_and_every_element_is_closed() {
        let view = gemma();
        let picture = svg::svg(&view);
        assert!(picture.contains("a &lt;b&gt; &amp; &quot;c&quot;"));
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        for element in ["g", "title", "desc", "text", "svg", "style", "marker"] {
            let opened = picture.matches(&format!("<{element}>")).count()
                + picture.matches(&format!("<{element} ")).count();
            assert_eq!(opened, picture.matches(&format!("</{element}>")).count(), "{element}");
        }
        let titles = 1 + view.graph.node_count() + view.links.len();
        assert_eq!(picture.matches("<title").count(), titles);
    }

    #[test]
    fn notations_tell_the_same_graph() {
        let view = gemma();
        let (dot, mermaid) = (notation::dot(&view), notation::mermaid(&view));
        let edges = view.graph.edge_count() + view.links.len();
        assert_eq!(dot.matches(" -> ").count(), edges, "{dot}");
        assert_eq!(mermaid.matches(" -->|").count(), edges, "{mermaid}");
        assert_eq!(dot.matches("subgraph cluster_").count(), view.groups.len());
        assert_eq!(mermaid.matches("    subgraph ").count(), view.groups.len());
        assert!(dot.contains(r#"label="a <b> & \"c\": gemma2"#), "{dot}");
    }
}
