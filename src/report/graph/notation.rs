//! The graph in the languages of Graphviz and Mermaid, which do the layout.

use petgraph::dot::{Config, Dot};
use petgraph::graph::NodeIndex;
use petgraph::visit::NodeFiltered;

use super::GraphDrawing;
use crate::spec::visible::visible;

/// For Graphviz: a cluster for each group of equal layers.
pub fn dot(view: &GraphDrawing) -> String {
    let GraphDrawing { title, description, groups, graph, links } = view;
    let mut text = format!("digraph {{\n    label={}\n    tooltip={}\n", quoted(title), quoted(description));
    text.push_str("    labelloc=t\n    compound=true\n    fontname=\"sans-serif\"\n");
    text.push_str("    node [shape=box style=\"rounded,filled\" fontname=\"sans-serif\" fontsize=11]\n");
    text.push_str("    edge [fontname=\"sans-serif\" fontsize=9]\n");
    let settings = [Config::GraphContentOnly, Config::NodeNoLabel, Config::EdgeNoLabel];
    for (number, group) in groups.iter().enumerate() {
        let inside = NodeFiltered::from_fn(graph, |node: NodeIndex| group.nodes.contains(&node));
        let content = Dot::with_attr_getters(
            &inside,
            &settings,
            &|_, edge| format!("label=\"{}\"", edge.weight()),
            &|_, (_, step)| {
                let label = [std::slice::from_ref(&step.name), &step.lines].concat().join("\n");
                let colour = SORTS[step.sort as usize].fill;
                format!(
                    "label={} tooltip={} fillcolor=\"{colour}\"",
                    quoted(&label),
                    quoted(&step.details.join("\n"))
                )
            },
        );
        let heading = format!("{}\n{}", group.name, group.note);
        text.push_str(&format!("    subgraph cluster_{number} {{\n    label={}\n", quoted(&heading)));
        text.push_str(&format!("{content:?}"));
        text.push_str("    }\n");
    }
    for link in links {
        if let Some((from, to)) = ends(view, link.from, link.to) {
            text.push_str(&format!(
                "    {} -> {} [ label=\"{}\" ltail=cluster_{} lhead=cluster_{} ]\n",
                from.index(),
                to.index(),
                link.elements,
                link.from,
                link.to
            ));
        }
    }
    text.push_str("}\n");
    text
}

/// For Mermaid, as Markdown on the web draws it.
pub fn mermaid(view: &GraphDrawing) -> String {
    let GraphDrawing { title, description, groups, graph, links } = view;
    // A line end or a brace would end a description.
    let plain = |text: &str| visible(text).replace(['{', '}', ';', '#'], ",");
    let mut text =
        format!("flowchart TB\n    accTitle: {}\n    accDescr: {}\n", plain(title), plain(description));
    for (number, group) in groups.iter().enumerate() {
        text.push_str(&format!(
            "    subgraph g{number}[\"{}<br/>{}\"]\n",
            marked(&group.name),
            marked(&group.note)
        ));
        text.push_str("        direction TB\n");
        for node in &group.nodes {
            let step = &graph[*node];
            let lines: Vec<String> =
                [&step.name].into_iter().chain(&step.lines).map(|line| marked(line)).collect();
            let class = SORTS[step.sort as usize].class;
            text.push_str(&format!("        n{}[\"{}\"]:::{class}\n", node.index(), lines.join("<br/>")));
        }
        for edge in graph.raw_edges().iter().filter(|edge| group.nodes.contains(&edge.source())) {
            let (from, to) = (edge.source().index(), edge.target().index());
            text.push_str(&format!("        n{from} -->|{}| n{to}\n", edge.weight));
        }
        text.push_str("    end\n");
    }
    for link in links {
        if let Some((from, to)) = ends(view, link.from, link.to) {
            text.push_str(&format!("    n{} -->|{}| n{}\n", from.index(), link.elements, to.index()));
        }
    }
    for DrawnSort { class, fill, .. } in SORTS {
        text.push_str(&format!("    classDef {class} fill:{fill},color:#111\n"));
    }
    text
}

/// The operators between which a link between groups runs.
fn ends(view: &GraphDrawing, from: usize, to: usize) -> Option<(NodeIndex, NodeIndex)> {
    Some((*view.groups[from].nodes.last()?, *view.groups[to].nodes.first()?))
}

/// How a sort of work is drawn.
pub struct DrawnSort {
    /// Its name in style sheets.
    pub class: &'static str,
    /// Its colour behind dark text.
    pub fill: &'static str,
    /// Its name in the legend.
    pub words: &'static str,
}

/// The sorts in the order of the variants.
pub const SORTS: [DrawnSort; 4] = [
    DrawnSort { class: "matrix", fill: "#dbe9ff", words: "matrices" },
    DrawnSort { class: "mixer", fill: "#ffe3c4", words: "mixes tokens" },
    DrawnSort { class: "experts", fill: "#d9f2dc", words: "experts" },
    DrawnSort { class: "small", fill: "#f1f3f6", words: "element by element" },
];

/// A string of Graphviz.
fn quoted(text: &str) -> String {
    // Lines are the program's own here; what is in them is not.
    let lines: Vec<String> =
        text.split('\n').map(|line| visible(line).replace('\\', "\\\\").replace('"', "\\\"")).collect();
    format!("\"{}\"", lines.join("\\n"))
}

/// Text inside quotes of Mermaid.
fn marked(text: &str) -> String {
    visible(text)
        .replace('#', "#35;")
        .replace('&', "#amp;")
        .replace('"', "#quot;")
        .replace('<', "#lt;")
        .replace('>', "#gt;")
}
