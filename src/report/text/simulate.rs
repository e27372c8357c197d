//! A simulation as text.

use super::capacity::capacity;
use super::checked::checked;
use super::operation::operation;
use super::page::{BOLD, heading, indent, paragraph, styled};
use super::sampled_replicas::sampled_replicas;
use super::simulated_figures::{devices, intervals};
use super::tiers::{tier_hits, tier_sizes};
use crate::report::number::{count, digits, percent, time};
use crate::report::simulate::{LatencyRow, SimulateReport, SimulatedPool, SlowRequest};
use crate::report::table::table;
use crate::spec::role::Role;
use crate::traffic::engine::SchedulerSettings;

/// The report; `detail` adds the slowest requests.
pub fn simulate(report: &SimulateReport, detail: bool) -> String {
    let traffic = &report.traffic;
    let load = match (traffic.rate_per_s, traffic.clients) {
        (Some(rate), _) => format!("{} requests/s", digits(rate)),
        (None, Some(clients)) => count(clients, "client"),
        (None, None) => "a trace".to_owned(),
    };
    let head = format!("{}: {load}, {} output tok/s", report.notation, digits(report.output_tok_s));
    let mut text = format!("{}\n", styled(BOLD, &head));
    if let Some(of) = &report.found {
        text.push_str(&capacity(of));
    }
    let sent = format!(
        "{} sent, {} counted; on average {} prompt tokens, and {} in the system",
        count(traffic.requests, "request"),
        traffic.measured,
        digits(traffic.mean_isl),
        digits(report.concurrency)
    );
    text.push_str(&paragraph(&sent));
    if let Some(sessions) = traffic.sessions {
        let cut = match traffic.sessions_cut.unwrap_or(0) {
            0 => String::new(),
            cut => {
                format!("; {cut} ended early: the cache, or the model's window, does not hold what came next")
            }
        };
        text.push_str(&paragraph(&format!("{}{cut}", count(sessions, "session"))));
    }
    if traffic.refused > 0 {
        text.push_str(&paragraph(&format!(
            "{} refused: the cache holds none of that length",
            traffic.refused
        )));
    }
    let cell = |ms: Option<f64>| ms.map_or_else(String::new, time);
    let row = |one: &LatencyRow| {
        let times = [one.mean_ms, one.p50_ms, one.p90_ms, one.p95_ms, one.p99_ms].map(cell);
        std::iter::once(one.metric.to_uppercase()).chain(times).collect::<Vec<_>>()
    };
    let rows = report.latencies.iter().map(row);
    text.push_str(&heading("Latencies", "over requests; ITL over tokens"));
    text.push_str(&indent(&table(&["", "mean", "p50", "p90", "p95", "p99"], rows), 2));
    if let Some(closed) = &report.closed_form {
        let closed = format!(
            "closed form: TTFT {}, TPOT {}, E2E {}, {} output tok/s",
            time(closed.ttft_ms),
            time(closed.tpot_ms),
            time(closed.e2e_ms),
            digits(closed.output_tok_s)
        );
        text.push_str(&paragraph(&closed));
    }
    let good = report.goodput.map_or_else(String::new, |part| format!("within the SLOs {}; ", percent(part)));
    let unlimited = match report.unlimited_hit_rate {
        0.0 => String::new(),
        rate => format!(", in one without limits {}", percent(rate)),
    };
    let drafted = report.tokens_per_step.map_or_else(String::new, |tokens| {
        format!("{} tokens per step and request with the draft; ", digits(tokens))
    });
    let cache = format!(
        "{good}prompt tokens in the cache {}{unlimited}; {drafted}{}; {}",
        percent(report.hit_rate),
        count(report.preemptions, "preemption"),
        count(report.steps, "step")
    );
    text.push_str(&paragraph(&cache));
    text.push_str(&devices(report));
    text.push_str(&intervals(report.intervals.as_ref()));
    if let Some(of) = &report.tiers {
        text.push_str(&tier_hits(of));
    }
    if let Some(of) = &report.operation {
        text.push_str(&operation(of));
    }
    text.push_str(&checked(report.checked.as_ref()));
    if let Some(sample) = &report.sample {
        text.push_str(&sampled_replicas(sample));
    }
    for one in &report.pools {
        text.push_str(&paragraph(&pool(one)));
        if let Some(of) = &one.tiers {
            text.push_str(&paragraph(&tier_sizes(of)));
        }
    }
    if detail {
        text.push_str(&heading("Slowest requests", "where their time went"));
        let sends = report.pools.iter().any(|pool| pool.role == Role::Decode);
        let mut header = vec!["request", "E2E", "queue", "prefill", "decode", "preempted", "cached"];
        if sends {
            header.insert(4, "transfer");
        }
        let loads = report.tiers.is_some();
        if loads {
            header.push("loaded");
        }
        let rows = report.slowest.iter().map(|one| {
            let loaded = loads.then(|| loaded(one));
            slow(one, sends).into_iter().chain(loaded).collect::<Vec<_>>()
        });
        text.push_str(&indent(&table(&header, rows), 2));
    }
    text
}

fn pool(pool: &SimulatedPool) -> String {
    let replicas = match pool.role {
        Role::Aggregated => count(pool.replicas, "replica"),
        role => count(pool.replicas, &format!("{} worker", role.name())),
    };
    format!("{replicas} with {}: {}", count(pool.attention_ranks, "scheduler"), settings(&pool.scheduler))
}

fn slow(one: &SlowRequest, sends: bool) -> Vec<String> {
    let preempted = match one.preemptions {
        0 => String::new(),
        times => format!("{times} x, {}", time(one.preempted_ms)),
    };
    let transfer = sends.then(|| time(one.transfer_ms));
    let before = [one.id.to_string(), time(one.e2e_ms), time(one.queue_ms), time(one.prefill_ms)];
    let after = [time(one.decode_ms), preempted, one.cached_tokens.to_string()];
    before.into_iter().chain(transfer).chain(after).collect()
}

/// Tokens that came from tiers, and their time.
fn loaded(one: &SlowRequest) -> String {
    let load = one.loaded_tokens.zip(one.load_ms);
    load.map_or_else(String::new, |(tokens, load_ms)| format!("{tokens} in {}", time(load_ms)))
}

fn settings(scheduler: &SchedulerSettings) -> String {
    match scheduler {
        SchedulerSettings::Vllm(of) => format!(
            "{} new tokens a step, at most {} at a time, {} KV blocks of {}",
            of.token_budget,
            count(u64::from(of.max_sequences), "request"),
            of.blocks,
            count(u64::from(of.block_tokens), "token")
        ),
        SchedulerSettings::Trtllm(of) => format!(
            "{} new tokens a step{}, at most {} at a time, {} KV blocks of {}",
            of.token_budget,
            if of.overlap { ", made up while the step before runs" } else { "" },
            count(u64::from(of.max_requests), "request"),
            of.blocks,
            count(u64::from(of.block_tokens), "token")
        ),
        SchedulerSettings::Llamacpp(of) => format!(
            "{} a batch, {} with {} of KV cache {}",
            count(u64::from(of.batch_tokens), "token"),
            count(u64::from(of.slots), "slot"),
            count(u64::from(of.context_tokens), "token"),
            if of.unified { "together" } else { "each" }
        ),
        SchedulerSettings::Sglang(of) => format!(
            "{} of prompts a step{}, at most {} at a time, {} of KV cache in pages of {}",
            count(u64::from(of.chunk_tokens.unwrap_or(of.prefill_tokens)), "new token"),
            if of.overlap { ", made up while the step before runs" } else { "" },
            count(u64::from(of.max_requests), "request"),
            count(u64::from(of.cache_tokens), "token"),
            of.page_tokens
        ),
    }
}
