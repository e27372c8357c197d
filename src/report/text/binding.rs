//! What binds, and how much room there is elsewhere.

use super::page::{bullet, heading, paragraph};
use crate::report::constraint::{Constraint, Resource};
use crate::report::number::percent;

fn told(constraint: &Constraint) -> String {
    match (constraint.resource, constraint.used) {
        // Their words have the share already.
        (Resource::Step | Resource::Devices, _) | (_, None) => constraint.why.clone(),
        (_, Some(used)) => format!("{} ({})", constraint.why, percent(used)),
    }
}

/// What stands in the way of more, and what does not.
pub fn binding(constraints: &[Constraint]) -> String {
    let (binds, slack): (Vec<_>, Vec<_>) = constraints.iter().partition(|constraint| constraint.binds);
    let mut text = heading("What binds", "");
    text.extend(binds.into_iter().map(|constraint| bullet(&told(constraint))));
    let slack: Vec<String> = slack.into_iter().map(told).collect();
    if !slack.is_empty() {
        text.push_str(&paragraph(&format!("not: {}", slack.join("; "))));
    }
    text
}
