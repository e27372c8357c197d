//! Prompt shapes worth pairing with answering ones: none is beaten by another in every respect.

use super::answers::{Answer, even};
use super::question::Question;
use super::shape::{Laid, Shape};
use crate::plan::parallel::Phase;
use crate::quantity::read::Plain;
use crate::serving::evaluate::prefill_rate;
use crate::serving::residency::cache_per_sequence;

/// A shape that prefills, with what counts about it.
pub struct Front<'q> {
    /// Index of the shape.
    pub index: usize,
    /// Laid out.
    pub laid: Laid<'q>,
    /// Prompts per second of an instance.
    pub rate: f64,
    figures: [f64; 5],
}

impl Front<'_> {
    /// Whether `answers` are in its formats.
    pub fn suits(&self, answers: &[Answer]) -> bool {
        answers.first().is_some_and(|answer| answer.formats == self.laid.shape.formats)
    }

    /// Requests per second and device that it and `answers` come to at best, pools in proportion.
    pub fn promise(&self, answers: &[Answer]) -> f64 {
        let answer = answers.last().expect("a list of answers has one");
        1.0 / (self.laid.shape.plan.devices() as f64 / self.rate + answer.devices as f64 / answer.rate)
    }
}

/// The shapes worth prefilling with: none is beaten by another of the same formats in every respect.
pub fn fronts<'q>(question: &'q Question, shapes: &'q [Shape]) -> Vec<Front<'q>> {
    let mut kept: Vec<Front> = Vec::new();
    for (index, shape) in shapes.iter().enumerate() {
        if !shape.prefills || !even(question, shape) {
            continue;
        }
        let laid = Laid::new(question, shape);
        let rate = prefill_rate(&Plain, &laid.instance, &laid.prompt).value();
        let machine = question.formats[shape.formats].plain();
        let sent = cache_per_sequence(&Plain, &laid.instance, Phase::Prefill, question.terms().isl, machine);
        let prompt = &laid.prompt;
        let figures = [
            shape.plan.devices() as f64,
            prompt.total.value(),
            prompt.slowest.value(),
            1.0 / rate,
            sent.value(),
        ];
        let beats = |a: &[f64; 5], b: &[f64; 5]| a.iter().zip(b).all(|(x, y)| x <= y);
        let same = |front: &Front| front.laid.shape.formats == shape.formats;
        if kept.iter().any(|front| same(front) && beats(&front.figures, &figures)) {
            continue;
        }
        kept.retain(|front| !(same(front) && beats(&figures, &front.figures)));
        kept.push(Front { index, laid, rate, figures });
    }
    kept
}
