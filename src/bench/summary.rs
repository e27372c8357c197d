//! The figures of a run: percentiles over its counted requests, rates, and how far its repeats agree.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use super::client::{ClientTally, Exchange, ExchangeEnd, STOPPED};
use super::load::LoadRun;
use crate::report::simulate::LatencyRow;
use crate::spec::percentile::Percentile;
use crate::spec::run::{
    BenchMetrics, ClientOverhead, MOST_VARIATION, RunLatency, RunRepeats, RunRequests, RunStatistic,
};
use crate::traffic::outcome::Distribution;
use crate::validate::score::quantile;

/// The latencies of an answered request, in seconds.
struct AnswerTimes {
    ttft_s: f64,
    e2e_s: f64,
    tpot_s: Option<f64>,
    tokens: u64,
}

impl AnswerTimes {
    /// Those of an exchange; `None` of one that was not answered.
    fn of(exchange: &Exchange) -> Option<AnswerTimes> {
        let (first, last) = (exchange.chunks_s.first()?, exchange.chunks_s.last()?);
        let tokens = exchange.output_tokens.unwrap_or(exchange.chunks_s.len() as u64).max(1);
        let after = (tokens > 1).then(|| (last - first) / (tokens - 1) as f64);
        (exchange.end == ExchangeEnd::Answered).then_some(AnswerTimes {
            ttft_s: first - exchange.scheduled_s,
            e2e_s: last - exchange.scheduled_s,
            tpot_s: after,
            tokens,
        })
    }
}

/// A run in figures.
#[derive(Debug, Default)]
pub(super) struct RunSummary {
    pub(super) metrics: BenchMetrics,
    pub(super) requests: RunRequests,
    pub(super) repeats: RunRepeats,
    pub(super) client: ClientOverhead,
    /// Mean tokens of prompts and of answers, where the server counted them.
    pub(super) prompt_tokens: Option<f64>,
    pub(super) output_tokens: Option<f64>,
    /// Whether it counted those of every answer.
    pub(super) counted_by_server: bool,
    /// When the counted requests were in the system, in seconds of the run.
    pub(super) part: Option<(f64, f64)>,
}

/// The figures of a run, of which `counted` requests count, in this number of repeats.
pub(super) fn summary(
    run: &LoadRun,
    counted: Range<u64>,
    repeats: u64,
    under_a_rate: bool,
    tally: &ClientTally,
) -> RunSummary {
    let all: Vec<&Exchange> =
        run.exchanges.iter().filter(|exchange| counted.contains(&exchange.number)).collect();
    let answered = || all.iter().copied().filter(|exchange| exchange.end == ExchangeEnd::Answered);
    let mean = |of: fn(&Exchange) -> Option<u64>| {
        let found: Vec<f64> = answered().filter_map(of).map(|tokens| tokens as f64).collect();
        (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
    };
    let requests = ends(&all, counted.start);
    let mut metrics = latencies(&all);
    let part = measured_part(&all);
    if let Some(part) = part {
        rates(&mut metrics, run, &all, part);
    }
    RunSummary {
        part,
        prompt_tokens: mean(|exchange| exchange.prompt_tokens),
        output_tokens: mean(|exchange| exchange.output_tokens),
        counted_by_server: answered().all(|exchange| exchange.output_tokens.is_some()),
        repeats: agreement(&all, repeats, under_a_rate),
        client: overhead(run, &all, tally),
        metrics,
        requests,
    }
}

fn ends(all: &[&Exchange], warm_up: u64) -> RunRequests {
    let mut requests = RunRequests { warm_up, sent: all.len() as u64, ..RunRequests::default() };
    for exchange in all {
        match &exchange.end {
            ExchangeEnd::Answered => requests.answered += 1,
            ExchangeEnd::TimedOut => requests.timed_out += 1,
            ExchangeEnd::Failed(reason) => *requests.errors.entry(reason.clone()).or_default() += 1,
            ExchangeEnd::Stopped => *requests.errors.entry(STOPPED.to_owned()).or_default() += 1,
        }
    }
    requests
}

fn latencies(all: &[&Exchange]) -> BenchMetrics {
    let mut metrics = BenchMetrics::default();
    let mut found: [Distribution; 4] = Default::default();
    let [ttft, tpot, itl, e2e] = &mut found;
    for exchange in all {
        let Some(times) = AnswerTimes::of(exchange) else { continue };
        ttft.add(times.ttft_s, 1);
        e2e.add(times.e2e_s, 1);
        times.tpot_s.into_iter().for_each(|seconds| tpot.add(seconds, 1));
        exchange.chunks_s.windows(2).for_each(|pair| itl.add(pair[1] - pair[0], 1));
    }
    for (latency, values) in RunLatency::ALL.into_iter().zip(&found) {
        let row = LatencyRow::of("", values);
        let parts = Percentile::ALL.map(|part| (RunStatistic::At(part), row.at(part)));
        for (statistic, value) in parts.into_iter().chain([(RunStatistic::Mean, row.mean_ms)]) {
            if let Some(place) = metrics.latency_mut(latency, statistic) {
                *place = value;
            }
        }
    }
    metrics
}

/// The time in which counted requests were in the system: from the first that was sent to the last that ended.
fn measured_part(all: &[&Exchange]) -> Option<(f64, f64)> {
    let from_s = all.iter().map(|exchange| exchange.scheduled_s).fold(f64::INFINITY, f64::min);
    let to_s = all.iter().map(|exchange| exchange.ended_s).fold(0.0, f64::max);
    (from_s < to_s).then_some((from_s, to_s))
}

/// Rates over that time. Tokens of all requests count that came in it.
fn rates(metrics: &mut BenchMetrics, run: &LoadRun, all: &[&Exchange], (from_s, to_s): (f64, f64)) {
    let lasted_s = to_s - from_s;
    let (mut tokens, mut prompts, mut ends, mut in_flight_s) = (0.0, 0.0, 0.0, 0.0);
    for exchange in &run.exchanges {
        let within = exchange.chunks_s.iter().filter(|at| (from_s..=to_s).contains(*at)).count() as f64;
        let times = AnswerTimes::of(exchange);
        // Tokens of a chunk, where the server counted those of the answer.
        let each = times.as_ref().map_or(1.0, |times| times.tokens as f64 / exchange.chunks_s.len() as f64);
        tokens += within * each;
        in_flight_s += (exchange.ended_s.min(to_s) - exchange.scheduled_s.max(from_s)).max(0.0);
        if times.is_some() && (from_s..=to_s).contains(&exchange.ended_s) {
            ends += 1.0;
            prompts += exchange.prompt_tokens.map_or(0.0, |tokens| tokens as f64);
        }
    }
    metrics.decode_toks_sec = (tokens > 0.0).then_some(tokens / lasted_s);
    metrics.prefill_toks_sec = (prompts > 0.0).then_some(prompts / lasted_s);
    metrics.requests_sec = (ends > 0.0).then_some(ends / lasted_s);
    metrics.mean_concurrency = Some(in_flight_s / lasted_s);
    let cached: Vec<(f64, f64)> = all
        .iter()
        .filter_map(|exchange| Some((exchange.cached_tokens? as f64, exchange.prompt_tokens? as f64)))
        .collect();
    let [cached, prompt] = cached.iter().fold([0.0; 2], |[a, b], (c, p)| [a + c, b + p]);
    metrics.cached_share = (prompt > 0.0).then(|| cached / prompt);
}

fn agreement(all: &[&Exchange], repeats: u64, under_a_rate: bool) -> RunRepeats {
    let size = all.len().div_ceil(repeats.max(1) as usize).max(1);
    let variation = |of: fn(&AnswerTimes) -> Option<f64>| {
        let medians: Option<Vec<f64>> = all
            .chunks(size)
            .map(|part| {
                let times = part.iter().filter_map(|exchange| AnswerTimes::of(exchange));
                let mut found: Vec<f64> = times.filter_map(|times| of(&times)).collect();
                (!found.is_empty()).then(|| quantile(&mut found, 0.5))
            })
            .collect();
        spread(&medians?)
    };
    let tpot_variation = variation(|times| times.tpot_s);
    let e2e_variation = if under_a_rate { None } else { variation(|times| Some(times.e2e_s)) };
    let known = tpot_variation.is_some() || e2e_variation.is_some();
    let within = |found: Option<f64>| found.is_none_or(|variation| variation <= MOST_VARIATION);
    RunRepeats {
        count: all.chunks(size).len() as u64,
        tpot_variation,
        e2e_variation,
        stable: known && within(tpot_variation) && within(e2e_variation),
    }
}

/// Coefficient of variation of a sample; `None` of fewer than two.
fn spread(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (values.len() > 1 && mean > 0.0).then(|| (squares / (count - 1.0)).sqrt() / mean)
}

fn overhead(run: &LoadRun, all: &[&Exchange], tally: &ClientTally) -> ClientOverhead {
    let mut delays = run.delays_s.clone();
    let mut late: Vec<f64> =
        all.iter().map(|exchange| (exchange.sent_s - exchange.scheduled_s).max(0.0)).collect();
    let at = |values: &mut Vec<f64>, part| Some(quantile(values, part) * 1e3).filter(|ms| ms.is_finite());
    let chunks = tally.chunks.load(Relaxed);
    ClientOverhead {
        delay_ms_p50: at(&mut delays, 0.5),
        delay_ms_p99: at(&mut delays, 0.99),
        delay_ms_max: at(&mut delays, 1.0),
        chunk_us_mean: (chunks > 0).then(|| tally.reading_ns.load(Relaxed) as f64 / chunks as f64 / 1e3),
        late_ms_p99: at(&mut late, 0.99),
        connections: tally.connections.load(Relaxed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of three tokens, a tenth of a second after each other, sent every second.
    fn exchanges(count: u64) -> Vec<Exchange> {
        let of = |number: u64| {
            let scheduled_s = number as f64;
            let chunks_s = [0.5, 0.6, 0.7].map(|at| scheduled_s + at).to_vec();
            Exchange {
                number,
                scheduled_s,
                sent_s: scheduled_s + 0.001,
                ended_s: scheduled_s + 0.7,
                chunks_s,
                prompt_tokens: Some(10),
                output_tokens: Some(3),
                cached_tokens: Some(1),
                end: ExchangeEnd::Answered,
            }
        };
        (0..count).map(of).collect()
    }

    fn near(found: Option<f64>, expected: f64) {
        let found = found.unwrap();
        assert!((found / expected - 1.0).abs() < 2e-3, "{found}, not {expected}");
    }

    #[test]
    fn figures_are_those_of_the_counted_requests() {
        let mut run = LoadRun { exchanges: exchanges(30), delays_s: vec![], begun: None };
        // The warm-up was slow, and a request failed.
        run.exchanges[0].chunks_s = vec![0.9, 0.95, 0.99];
        run.exchanges[7].end = ExchangeEnd::Failed("status 500".to_owned());
        let found = summary(&run, 5..25, 10, false, &ClientTally::default());
        assert_eq!((found.requests.sent, found.requests.answered, found.requests.warm_up), (20, 19, 5));
        assert_eq!(found.requests.errors["status 500"], 1);
        near(found.metrics.ttft_ms_p99, 500.0);
        near(found.metrics.tpot_ms_p50, 100.0);
        near(found.metrics.itl_ms_p95, 100.0);
        near(found.metrics.latency_ms_mean, 700.0);
        // 20 requests of three tokens from 5 s to 24.7 s; the one that failed sent its tokens too.
        near(found.metrics.decode_toks_sec, 60.0 / 19.7);
        near(found.metrics.mean_concurrency, 14.0 / 19.7);
        near(found.metrics.cached_share, 0.1);
        near(found.client.late_ms_p99, 1.0);
        assert_eq!((found.repeats.count, found.repeats.stable), (10, true));
        assert_eq!(
            (found.prompt_tokens, found.output_tokens, found.counted_by_server),
            (Some(10.0), Some(3.0), true)
        );
    }

    #[test]
    fn repeats_that_differ_are_unstable() {
        let mut run = LoadRun { exchanges: exchanges(20), delays_s: vec![], begun: None };
        for exchange in &mut run.exchanges[10..] {
            let first = exchange.chunks_s[0];
            exchange.chunks_s = vec![first, first + 0.12, first + 0.24];
        }
        let found = summary(&run, 0..20, 10, true, &ClientTally::default()).repeats;
        assert!(!found.stable && found.e2e_variation.is_none(), "{found:?}");
        near(found.tpot_variation, 0.0958);
        assert_eq!(spread(&[1.0]), None);
    }
}
