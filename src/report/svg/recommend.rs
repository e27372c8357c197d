//! A recommendation: builds by cost and output, with the tiers; models of one machine as bars.

use super::bars::{LabelledBar, bars};
use super::frame::{PlotAxis, PlotFrame};
use super::marks::{chosen, point};
use super::scale::{PlotScale, drawable};
use super::{Anchor, SvgPanel, SvgPicture, text};
use crate::report::number::digits;
use crate::report::recommend::models::ServedModels;
use crate::report::recommend::{Build, Recommendation};

const MOST_BARS: usize = 40;

/// Cost of a build in USD/h and its output, where both can be drawn.
fn place(build: &Build) -> Option<[f64; 2]> {
    let place = [build.money.usd_per_hour?, build.most_output_tok_s];
    place.iter().all(|value| drawable(*value) && *value > 0.0).then_some(place)
}

fn words(build: &Build) -> String {
    let usd = build.money.usd_per_hour.map(|usd| format!(", {} USD/h", digits(usd))).unwrap_or_default();
    let because = build.because.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let output = digits(build.most_output_tok_s);
    format!("{}{usd}, up to {output} output tok/s ({}{because})", build.name, build.standing)
}

/// Builds over cost and output; rings are the choices.
pub fn recommend_picture(found: &Recommendation) -> SvgPicture {
    let model = found.sought.model.clone().unwrap_or_default();
    SvgPicture {
        title: format!("Hardware for {model}"),
        subtitle: format!(
            "{} users at {} tok/s each, ISL {}, OSL {}; rings: minimum, cheapest, value and tiers",
            found.sought.users,
            digits(found.sought.target_tok_s),
            found.sought.isl,
            found.sought.osl
        ),
        panels: builds(found).into_iter().collect(),
    }
}

fn builds(found: &Recommendation) -> Option<SvgPanel> {
    let placed: Vec<(&Build, [f64; 2])> =
        found.builds.iter().filter_map(|build| Some((build, place(build)?))).collect();
    let mut kinds: Vec<&str> = Vec::new();
    for (build, _) in &placed {
        if !kinds.contains(&build.standing.as_str()) {
            kinds.push(&build.standing);
        }
    }
    let axis = |at: usize, label: &str| {
        let scale = PlotScale::over(placed.iter().map(|(_, place)| place[at]))?;
        Some(PlotAxis { scale, label: label.to_owned() })
    };
    let frame = PlotFrame {
        title: format!("{} builds that meet the SLO", found.builds.len()),
        x: axis(0, "USD/h")?,
        y: axis(1, "output tok/s at most, within the SLO")?,
        width: 640.0,
        height: 320.0,
        legend: kinds.iter().enumerate().map(|(at, kind)| (at, (*kind).to_owned())).collect(),
    };
    let at = |[x, y]: [f64; 2]| [frame.x(x), frame.y(y)];
    let mut marks = String::new();
    for (build, place) in &placed {
        let series = kinds.iter().position(|kind| *kind == build.standing).unwrap_or(0);
        marks.push_str(&point(series, at(*place), &words(build)));
    }
    let choices = [("minimum", &found.minimum), ("cheapest", &found.cheapest), ("value", &found.value)];
    let choices = choices.into_iter().filter_map(|(name, build)| Some((name.to_owned(), build.as_ref()?)));
    let tiers = found.tiers.iter().enumerate().map(|(at, build)| (format!("tier {}", at + 1), build));
    let mut named: Vec<([f64; 2], String, &Build)> = Vec::new();
    for (name, build) in choices.chain(tiers) {
        let Some(place) = place(build).map(at) else { continue };
        match named.iter_mut().find(|(known, ..)| *known == place) {
            Some((_, names, _)) => names.push_str(&format!(", {name}")),
            None => named.push((place, name, build)),
        }
    }
    for (place, names, build) in named {
        marks.push_str(&chosen(place, &format!("{names}: {}", words(build))));
        let right = place[0] > frame.left() + frame.width * 0.7;
        let (anchor, shift) = if right { (Anchor::End, -12.0) } else { (Anchor::Start, 12.0) };
        marks.push_str(&text("value", anchor, [place[0] + shift, place[1] + 4.0], &names));
    }
    Some(frame.panel("", &marks))
}

/// Speeds of the models that a machine serves.
pub fn models_picture(found: &ServedModels) -> SvgPicture {
    let bar = |served: &crate::report::recommend::models::ServedModel| {
        let build = &served.build;
        let title = format!("{}: {} tok/s per user", build.model, digits(build.tok_s_per_user));
        LabelledBar {
            label: build.model.clone(),
            parts: vec![(0, build.tok_s_per_user, title)],
            note: format!("{} tok/s, {}", digits(build.tok_s_per_user), build.each.weight_format),
        }
    };
    let all: Vec<LabelledBar> = found.models.iter().take(MOST_BARS).map(bar).collect();
    let panels = if all.is_empty() { vec![] } else { vec![bars("tok/s per user", &[], &all)] };
    SvgPicture {
        title: format!("Models on {}", found.sought.hardware.clone().unwrap_or_default()),
        subtitle: format!("{} of {} models that meet the SLO", all.len(), found.models.len()),
        panels,
    }
}
