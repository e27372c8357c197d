//! The kinds of deployments that rows measured.

use std::collections::BTreeMap;

use super::predict::{PreparedRow, ProfileFit, has_layer, ready};
use crate::plan::legal::has_experts;
use crate::spec::evidence::MeasuredKind;
use crate::store::catalog::Catalog;
use crate::validate::measured::MeasuredRow;

/// One kind for each runtime, class of devices and of models, role and set of degrees, in the order of these.
pub fn measured_kinds(catalog: &Catalog, rows: &[MeasuredRow]) -> Vec<MeasuredKind> {
    let mut found = BTreeMap::new();
    for (row, prepared) in rows.iter().zip(ready(catalog, rows, ProfileFit::KernelsOnly)) {
        let Ok(prepared) = prepared else { continue };
        if has_layer(&row.runtime) {
            continue;
        }
        for one in kinds_of(row, &prepared) {
            let used = one.largest().map(|degree| degree > 1);
            let MeasuredKind { runtime, vendor, class, experts, drafts, role, .. } = one.clone();
            let key = (runtime, vendor, class, (experts, drafts), role, used);
            found.entry(key).and_modify(|known: &mut MeasuredKind| add(known, &one)).or_insert(one);
        }
    }
    found.into_values().collect()
}

fn add(known: &mut MeasuredKind, one: &MeasuredKind) {
    for (most, degree) in [
        (&mut known.tp, one.tp),
        (&mut known.pp, one.pp),
        (&mut known.dp, one.dp),
        (&mut known.cp, one.cp),
        (&mut known.ep, one.ep),
    ] {
        *most = degree.max(*most);
    }
    known.rows += one.rows;
}

/// Those of the pools of a row.
fn kinds_of(row: &MeasuredRow, prepared: &PreparedRow) -> Vec<MeasuredKind> {
    let device = &prepared.problem.cluster.device;
    let pools = prepared.deployment.pools.iter().filter_map(|pool| {
        let [tp, pp, dp, cp, ep] = pool.plan.kind_degrees()?;
        Some(MeasuredKind {
            runtime: prepared.runtime.clone(),
            vendor: device.vendor.name().to_owned(),
            class: device.class.clone(),
            experts: has_experts(&prepared.problem.graph),
            drafts: row.speculative.is_some(),
            role: pool.role,
            tp,
            pp,
            dp,
            cp,
            ep,
            rows: 1,
        })
    });
    pools.collect()
}
