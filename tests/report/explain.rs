//! The drill-down as text: narrow, each thing told once, formula and numbers and source for each number.

use mantile::quantity::ledger::{Explanation, Ledger};
use mantile::report::explain::{ExplainedNumber, candidate_words, explained};
use mantile::request::build_candidate::candidate;
use mantile::search::candidate::Candidate;
use mantile::search::problem::Problem;
use mantile::search::run::{UNWATCHED, run};
use mantile::spec::scenario::Scenario;

use super::{plain, pose, reads_well, scenario};

/// A number of a deployment without an interval.
fn alone(number: Explanation, of: String, violations: Vec<String>) -> ExplainedNumber {
    ExplainedNumber { number, of, violations, inputs: vec![], interval: None }
}

/// TPOT of a deployment, `depth` levels deep: as data and as text.
fn shown(problem: &Problem, candidate: &Candidate, depth: usize) -> (Explanation, String) {
    let ledger = Ledger::new();
    let number = candidate.evaluate(&&ledger, problem, &mut ()).metrics.tpot;
    let explanation = ledger.explain(number, depth);
    let of = candidate_words(problem, candidate);
    let text = plain(&explained(&alone(explanation.clone(), of, vec![])));
    (explanation, text)
}

/// TPOT of the best deployment.
fn tpot(requested: &Scenario, depth: usize) -> (Explanation, String) {
    let (_, problem) = pose(requested);
    let best = run(&problem, &UNWATCHED).best.unwrap();
    shown(&problem, &best.candidate, depth)
}

fn visit<'a>(explanation: &'a Explanation, see: &mut impl FnMut(&'a Explanation)) {
    see(explanation);
    explanation.parts.iter().for_each(|part| visit(part, see));
}

#[test]
fn everything_is_shown_and_long_sources_once() {
    let (explanation, text) = tpot(&scenario("gpt-oss-20b", "2xh100"), 12);
    reads_well(&text, 110);
    let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    visit(&explanation, &mut |number| {
        for text in number.bound.iter().chain(&number.substituted).chain([&number.text, &number.symbol]) {
            assert!(flat.contains(&spaced(text)), "{text} of {} is missing", number.symbol);
        }
        // `plan: pp` of pp is told as `plan`.
        let source = number.source.strip_suffix(&format!(": {}", number.symbol)).unwrap_or(&number.source);
        assert!(flat.contains(&spaced(source)), "{source} of {} is missing", number.symbol);
        if source.chars().count() >= 60 && number.formula.is_none() {
            assert_eq!(flat.matches(&spaced(source)).count(), 1, "{source}");
        }
    });
    assert!(!text.contains("can be expanded"), "everything is shown at this depth");
    let again = format!("(weakest source: {})", explanation.grade);
    assert!(
        !text.contains(&again) && text.contains("(weakest source: "),
        "grades are told where they change"
    );
}

#[test]
fn what_is_cut_off_says_how_to_go_on() {
    let (_, text) = tpot(&scenario("Llama-3.1-8B", "1xh100"), 1);
    reads_well(&text, 110);
    assert!(text.contains("--depth 2"), "{text}");
    let (_, deeper) = tpot(&scenario("Llama-3.1-8B", "1xh100"), 3);
    assert!(deeper.lines().count() > text.lines().count());
}

#[test]
fn a_number_that_is_another_takes_one_line() {
    // In pools apart no prompt delays an answer: TPOT is the decode cycle.
    let (_, problem) = pose(&scenario("Llama-3.1-8B", "2xh100"));
    let candidate = candidate(&problem, &"prefill tp1, decode tp1".parse().unwrap()).unwrap();
    let (explanation, text) = shown(&problem, &candidate, 1);
    assert_eq!(explanation.substituted.as_deref(), Some(explanation.text.as_str()));
    let line = format!("{} = {}", explanation.formula.unwrap(), explanation.text);
    assert!(text.contains(&line), "{line}:\n{text}");
    assert!(!text.contains(&format!("\n  = {0}\n  = {0}", explanation.text)), "{text}");
}

#[test]
fn what_is_broken_is_shown_before_the_number() {
    let (_, problem) = pose(&scenario("Llama-3.1-8B", "1xh100"));
    let candidate = candidate(&problem, &"tp1".parse().unwrap()).unwrap();
    let ledger = Ledger::new();
    let number = candidate.evaluate(&&ledger, &problem, &mut ()).metrics.tpot;
    let of = candidate_words(&problem, &candidate);
    let text = explained(&alone(ledger.explain(number, 1), of, vec!["too slow".to_string()]));
    assert!(plain(&text).starts_with("INFEASIBLE: too slow\n"), "{text}");
}
