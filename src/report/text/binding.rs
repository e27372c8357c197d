//! Binding constraints, and the slack of the others.

use super::page::{bullet, heading, paragraph};
use crate::report::constraint::{Constraint, Resource};
use crate::report::number::percent;

fn render_constraint(constraint: &Constraint) -> String {
    match (constraint.resource, constraint.used) {
        // These descriptions already include the share.
        (Resource::Step | Resource::Devices, _) | (_, None) => constraint.why.clone(),
        (_, Some(used)) => format!("{} ({})", constraint.why, percent(used)),
    }
}

pub fn binding(constraints: &[Constraint]) -> String {
    let (binds, slack): (Vec<_>, Vec<_>) = constraints.iter().partition(|constraint| constraint.binds);
    let mut text = heading("Bottlenecks", "");
    text.extend(binds.into_iter().map(|constraint| bullet(&render_constraint(constraint))));
    let slack: Vec<String> = slack.into_iter().map(render_constraint).collect();
    if !slack.is_empty() {
        text.push_str(&paragraph(&format!("Slack: {}", slack.join("; "))));
    }
    text
}
