//! Routing of a fleet as rows.

use super::FleetResult;
use crate::report::sheet;

/// One row for each share of a bucket.
pub fn csv(answer: &FleetResult) -> String {
    let header = [
        "isl",
        "osl",
        "model",
        "requests_per_s",
        "share",
        "hardware",
        "offer",
        "plan",
        "systems",
        "usd_per_hour",
    ];
    sheet::csv(
        header,
        answer.routes.iter().map(|route| {
            let system = &answer.systems[route.systems as usize];
            vec![
                route.isl.to_string(),
                route.osl.to_string(),
                route.model.clone(),
                route.requests_per_s.to_string(),
                route.share.to_string(),
                system.hardware.clone(),
                system.offer.clone(),
                system.plan.clone(),
                system.count.to_string(),
                system.usd_per_hour.to_string(),
            ]
        }),
    )
}
