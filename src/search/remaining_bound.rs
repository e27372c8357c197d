//! What anything that was not looked at could be at best, where a search is stopped: the bounds that prune elsewhere,
//! over what is left.
//!
//! Knows the first aim alone: that is what a gap is told of.

use super::point::{Point, ideal, place};
use super::question::{Problem, Traffic};
use super::shape::PreparedShape;
use crate::spec::objective::{Direction, Metric};

/// The best that anything left could be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RemainingBound {
    /// In the first aim, in base units; none where nothing is left, or nothing of it keeps the limits.
    best: Option<f64>,
    /// Of something left nobody can tell.
    unknown: bool,
}

/// The figure of the first aim, where it is known.
fn figure(question: &Problem, point: &Point) -> Option<f64> {
    let value = point[place(question.aims.first()?.metric)];
    value.is_finite().then_some(value)
}

/// The better of two figures of the first aim.
fn better(question: &Problem, a: f64, b: f64) -> f64 {
    let smaller = question.aims.first().is_some_and(|aim| aim.direction == Direction::Minimize);
    if smaller { a.min(b) } else { a.max(b) }
}

impl RemainingBound {
    /// A shape by itself, and side by side with any others: in every respect no better than one request alone, and as
    /// many of them as fit.
    pub fn shape(&mut self, question: &Problem, laid: &PreparedShape) {
        let (shape, devices) = (laid.shape, laid.shape.plan.devices());
        if shape.fits == 0 {
            return;
        }
        if matches!(question.traffic, Traffic::Rate(_)) {
            // Fewer than one request on average may be quicker than one alone.
            self.unknown = true;
            return;
        }
        let alone = laid.free(1, laid.concurrency(1));
        let mut best = ideal(&alone, (1, shape.fits), question.idle(devices));
        // Instances of any shapes on all devices yield no more than the best of them on each.
        let all = question.cluster.devices() as f64;
        best[place(Metric::OutputTokS)] = best[place(Metric::OutputTokSPerDevice)] * all;
        self.point(question, &best);
    }

    /// Something that is in no respect better than `point`.
    pub fn point(&mut self, question: &Problem, point: &Point) {
        if question.missed(point).is_some() {
            return;
        }
        if let Some(value) = figure(question, point) {
            self.best = Some(self.best.map_or(value, |best| better(question, best, value)));
        }
    }

    /// Of both.
    pub fn with(self, question: &Problem, other: RemainingBound) -> RemainingBound {
        let best = match (self.best, other.best) {
            (Some(a), Some(b)) => Some(better(question, a, b)),
            (a, b) => a.or(b),
        };
        RemainingBound { best, unknown: self.unknown || other.unknown }
    }

    /// What nothing is better than, `found` being the best that was.
    pub fn bound(self, question: &Problem, found: Option<&Point>) -> Option<f64> {
        let found = found.and_then(|point| figure(question, point));
        let seen = RemainingBound { best: found, unknown: false };
        self.with(question, seen).best.filter(|_| !self.unknown)
    }
}
