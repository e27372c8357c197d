//! Launch commands as text.

use super::page::{BAD, heading, indent, join, paragraph, section, styled, wrap};
use crate::report::cost::CostReport;
use crate::report::launch::{CommandReport, LaunchReport, LaunchWorker, PublishedFlags, UnreadWord};
use crate::report::number::{count, digits};
use crate::report::result::ReportedDeployment;
use crate::spec::objective::METRICS;
use crate::spec::option_effect::WordEffect;

/// The end of a first screen, in lines of at most `width` characters: the first command, and where the others are.
/// Commands are never wrapped.
pub fn first_command(launch: Option<&LaunchReport>, width: usize) -> String {
    let Some(launch) = launch else { return String::new() };
    if let Some(first) = launch.unsupported.first() {
        return wrap(&format!("Launch: no command; {}", unsupported(launch, first)), width, 0, 2);
    }
    let Some(worker) = launch.workers.first() else { return String::new() };
    let processes: u64 = launch.workers.iter().map(|worker| worker.replicas * worker.hosts).sum();
    let which = if processes == 1 { String::new() } else { format!(" {} of {processes};", worker.name) };
    format!("Launch:{which} --emit DIR writes all files\n  {}\n", worker.command)
}

fn unsupported(launch: &LaunchReport, what: &str) -> String {
    if launch.runtime_version.is_empty() {
        what.to_owned()
    } else {
        format!("{} {} does not know {what}", launch.runtime, launch.runtime_version)
    }
}

/// Every command with its reasons, and the files.
pub fn table(launch: &LaunchReport) -> String {
    let infeasible = launch.infeasible.iter().map(|why| paragraph(&format!("Not launched: {why}")));
    let unsupported = launch.unsupported.iter().map(|what| unsupported(launch, what));
    let refused = infeasible.chain(unsupported.map(|what| format!("Not launched: {what}\n")));
    let notes = launch.notes.iter().map(|note| paragraph(&format!("Note: {note}.")));
    let names: Vec<&str> = launch.files.iter().map(|file| file.path.as_str()).collect();
    let files = match names.is_empty() {
        true => String::new(),
        false => paragraph(&format!("--emit DIR writes {}.", names.join(", "))),
    };
    let router = launch
        .router
        .as_ref()
        .map_or(String::new(), |router| heading("Router", "") + &indent(&format!("{router}\n"), 2));
    join([
        refused.collect::<String>(),
        launch.workers.iter().map(worker).collect::<Vec<_>>().join("\n"),
        router,
        launch.published.as_ref().map_or(String::new(), published),
        launch.cost.as_ref().map_or(String::new(), cost),
        notes.collect::<String>(),
        files,
    ])
}

/// Options of a measured server beyond those of the commands.
fn published(published: &PublishedFlags) -> String {
    let longest = published.flags.iter().map(|flag| flag.words.chars().count()).max().unwrap_or(0);
    let flags = published.flags.iter().map(|flag| {
        let pad = " ".repeat(longest - flag.words.chars().count());
        format!("  {}{pad}  # {}\n", flag.words, flag.why)
    });
    let which = format!("{}; {}", published.model, published.source);
    heading("Of the nearest measured server, not in the prediction", &which) + &flags.collect::<String>()
}

fn cost(cost: &CostReport) -> String {
    paragraph(&format!("{}: {}.", cost.label(), cost.row("", "")))
}

/// The command of a pool, an option a line.
fn worker(worker: &LaunchWorker) -> String {
    let hosts = if worker.hosts > 1 { format!(" on {} hosts", worker.hosts) } else { String::new() };
    let each = format!("{} x {}{hosts}", worker.replicas, count(worker.devices, "device"));
    let longest = worker.options.iter().map(|option| option.words.chars().count()).max().unwrap_or(0);
    let options = worker.options.iter().map(|option| {
        let pad = " ".repeat(longest - option.words.chars().count());
        format!("  {}{pad}  # {}\n", option.words, option.why)
    });
    let environment = worker.environment.iter().map(|(name, value)| format!("  {name}={value}\n"));
    let yaml = worker.yaml.iter().map(|(key, value)| format!("  {key}: {value}\n"));
    let yaml = yaml.collect::<String>();
    let yaml = if yaml.is_empty() { yaml } else { format!("  {}.yaml:\n{}", worker.name, indent(&yaml, 2)) };
    heading(&worker.name, &each)
        + &format!("  {}\n", worker.command)
        + "\n"
        + &environment.collect::<String>()
        + &options.collect::<String>()
        + &yaml
}

/// Why the server of a command does not start, and the command that is priced instead; empty if it starts.
pub fn start_faults(command: &CommandReport, width: usize) -> String {
    if command.will_not_start.is_empty() {
        return String::new();
    }
    let reasons = command.will_not_start.iter().map(|reason| wrap(&format!("- {reason}"), width, 2, 4));
    let corrected = command.corrected.iter().map(|text| format!("Corrected, as priced below:\n  {text}\n\n"));
    format!("{}\n", styled(BAD, "WILL NOT START"))
        + &reasons.collect::<String>()
        + &corrected.collect::<String>()
}

/// Words of a command that set nothing, by their effect.
pub fn words_without_setting(unread: &[UnreadWord], width: usize) -> String {
    let of = |effect: WordEffect| unread.iter().filter(move |word| word.effect == effect);
    let place = |word: &UnreadWord| match word.position {
        0 => word.place.clone(),
        position => format!("{}, word {position}", word.place),
    };
    let not_understood = of(WordEffect::NotUnderstood).map(|word| {
        wrap(&format!("NOT READ: `{}` ({}): {}", word.word, place(word), word.reason), width, 0, 2)
    });
    let not_modelled: Vec<String> =
        of(WordEffect::NotModelled).map(|word| format!("{} ({})", word.word, word.reason)).collect();
    let not_modelled = match not_modelled.is_empty() {
        true => String::new(),
        false => wrap(&format!("Matters, not modelled: {}.", not_modelled.join("; ")), width, 2, 4),
    };
    let ignored: Vec<&str> = of(WordEffect::WithoutEffect).map(|word| word.word.as_str()).collect();
    let ignored = match ignored.is_empty() {
        true => String::new(),
        false => paragraph(&format!("No effect on the prediction: {}.", ignored.join(", "))),
    };
    not_understood.collect::<String>() + &not_modelled + &ignored
}

/// A command that was read back: words without a setting, remarks, and better plans.
pub fn read_back(command: &CommandReport, now: &ReportedDeployment, width: usize) -> String {
    let notes = command.notes.iter().map(|note| paragraph(&format!("Note: {note}.")));
    let changes = command.changes.iter().take(3).map(|change| {
        let heading =
            METRICS.iter().find(|entry| entry.name == change.metric).map_or("", |entry| entry.heading);
        format!("  {heading} {} -> {}: {}\n", digits(change.now), digits(change.then), change.flags)
    });
    join([
        words_without_setting(&command.unread, width) + &notes.collect::<String>(),
        command.best.as_deref().map_or(String::new(), |best| compared(now, best)),
        section("Changes that help", "", changes.collect::<String>()),
    ])
}

/// The best plan for the same hardware next to the command's.
fn compared(now: &ReportedDeployment, best: &ReportedDeployment) -> String {
    let (Some(metrics), Some(better)) = (&now.metrics, &best.metrics) else { return String::new() };
    if now.notation == best.notation {
        return "The best plan for this hardware is the same.\n".to_owned();
    }
    paragraph(&format!(
        "The best plan for this hardware: {}, {} weights; {} tok/s instead of {}, TTFT {} ms instead of {}, TPOT {} ms \
         instead of {}.",
        best.plan.label,
        best.weight_format,
        digits(better.output_tok_s),
        digits(metrics.output_tok_s),
        digits(better.ttft_ms),
        digits(metrics.ttft_ms),
        digits(better.tpot_ms),
        digits(metrics.tpot_ms),
    ))
}
