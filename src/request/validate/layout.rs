//! Layout and load of a measured row, and the reasons against incomplete rows.

use crate::traffic::draft::DraftSettings;
use crate::validate::measured::{MeasuredDegrees, MeasuredRow};
use crate::validate::measured_traffic::MeasuredArrivals;
use crate::validate::run_kind::RunKind;

/// The draft of a row with speculative decoding; or the reason why it is not known.
pub(super) fn draft(row: &MeasuredRow) -> Result<Option<DraftSettings>, String> {
    let Some(method) = &row.speculative else { return Ok(None) };
    let Some(yields) = row.accepted else {
        return Err(format!("speculative: {method}, with unknown acceptance rate"));
    };
    if !method.contains("mtp") {
        return Err(format!("speculative: {method}, whose draft is not in the checkpoint"));
    }
    let digits = method.split(|letter: char| !letter.is_ascii_digit()).find_map(|word| word.parse().ok());
    let Some(tokens) = digits.filter(|tokens| yields <= f64::from(*tokens) + 1.0) else {
        return Err(format!("speculative: {method}, with unknown draft tokens for {yields} tokens per step"));
    };
    Ok(Some(DraftSettings::of_share(tokens, (yields - 1.0) / f64::from(tokens))))
}

fn devices_by_degrees(row: &MeasuredRow) -> u64 {
    row.pools.iter().map(MeasuredDegrees::devices).fold(0, u64::saturating_add)
}

/// Devices of the whole deployment: as given, else the product of the degrees.
pub(super) fn devices(row: &MeasuredRow) -> u64 {
    row.devices.unwrap_or(0).max(devices_by_degrees(row)).max(1)
}

/// Requests in flight, at least one under a rate; or the reason against an incomplete row.
pub(super) fn known_load(row: &MeasuredRow) -> Result<u64, String> {
    draft(row)?;
    let disaggregated = row.pools.len() > 1;
    if disaggregated && row.pools.iter().any(|pool| pool.workers.is_none()) {
        return Err("workers: missing, so the load per worker is unknown".into());
    }
    let placed = devices_by_degrees(row);
    if let Some(stated) = row.devices.filter(|stated| *stated > 0 && *stated != placed) {
        let layout = match row.pools.iter().any(|pool| pool.given) {
            true => format!("degrees for {placed}"),
            false => "no degrees".into(),
        };
        return Err(format!("devices: {stated} with {layout}, so the use of all devices is unknown"));
    }
    match row.kind {
        RunKind::Started | RunKind::Saturated => return Ok(1),
        // One prompt of each rank is computed at a time.
        RunKind::Prompts => {
            let ranks = |pool: &MeasuredDegrees| pool.workers.unwrap_or(1).saturating_mul(pool.dp);
            return Ok(row.pools.iter().map(ranks).sum());
        }
        RunKind::Served | RunKind::Home(_) => {}
    }
    let arrivals = row.traffic.as_ref().map(|traffic| &traffic.arrivals);
    match (row.concurrency, arrivals) {
        (_, Some(MeasuredArrivals::Trace(name))) => {
            Err(format!("traffic: `{name}`, a trace that the table does not hold"))
        }
        (_, Some(_)) if disaggregated => {
            Err("rate: not simulated for separate pools of prefill and decode".into())
        }
        (Some(requests), _) => Ok(requests),
        // How many are in flight follows from the simulation.
        (None, Some(_)) => Ok(1),
        (None, None) => Err("concurrency: missing, and rate too, so the load is unknown".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::num::Qty;
    use crate::serving::speculative::accepted;
    use crate::validate::measured::Record;

    #[test]
    fn a_draft_is_known_or_has_a_reason() {
        let of = |method: &str, length: &str| {
            let cells = [
                ("model", "a/b"),
                ("hardware", "x"),
                ("runtime", "vllm"),
                ("workload", "AgentX"),
                ("hit_rate_theoretical", ""),
                ("speculative", method),
                ("acceptance_length", length),
            ];
            draft(&Record(cells.into_iter().collect()).measured().unwrap())
        };
        assert_eq!(of("", ""), Ok(None));
        assert_eq!(of("mtp 3", "2.49").unwrap().unwrap().tokens, 3);
        for (method, length, reason) in [
            ("mtp 3", "", "unknown acceptance rate"),
            ("eagle3 3", "2.78", "not in the checkpoint"),
            ("mtp", "2.49", "unknown draft tokens"),
            ("mtp 1", "2.49", "unknown draft tokens"),
        ] {
            assert!(of(method, length).unwrap_err().contains(reason), "{method} {length}");
        }
    }

    #[test]
    fn the_acceptance_rate_gives_the_tokens_of_a_step() {
        for (yields, tokens) in [("2.49", 3), ("2.99", 3), ("1.0", 1), ("4.0", 3)] {
            let method = format!("mtp {tokens}");
            let cells = [
                ("model", "a/b"),
                ("hardware", "x"),
                ("runtime", "vllm"),
                ("workload", "AgentX"),
                ("hit_rate_theoretical", ""),
                ("speculative", method.as_str()),
                ("acceptance_length", yields),
            ];
            let draft = draft(&Record(cells.into_iter().collect()).measured().unwrap()).unwrap().unwrap();
            let back = accepted(Qty::<f64>::from(draft.share()), tokens).value();
            let yields: f64 = yields.parse().unwrap();
            assert!((back - yields).abs() < 1e-9, "{yields}: {draft:?} gives {back}");
        }
    }
}
