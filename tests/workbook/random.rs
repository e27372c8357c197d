//! Random deployments of shipped models on shipped systems.

use mantile::quantity::read::Plain;
use mantile::report::workbook::workbook;
use mantile::request::UNCONTROLLED;
use mantile::request::estimate::{EstimateRequest, estimate};
use mantile::store::catalog::Catalog;
use proptest::prelude::*;

use super::changed::metrics;
use super::{Book, same};
use crate::ask::on;
use crate::cases::each_case;

#[test]
fn random_deployments_recalculate_to_the_plain_reading() {
    // Only texts of the first sheet come from it.
    let request = EstimateRequest::of(on("Llama-3.1-8B", "1xh100"));
    let question = estimate(&Catalog::default(), &request, &UNCONTROLLED).unwrap().question;
    each_case(CASES, |case| {
        let bytes = workbook(&case.problem, &question, &case.candidate, vec![]).unwrap();
        let mut book = Book::read(&bytes);
        let faults = book.recalculated();
        prop_assert!(faults.is_empty(), "{faults:#?}");
        let plain = metrics(case, &Plain);
        for (name, number) in book.metrics() {
            prop_assert!(same(number, plain[name]), "{name}: {number} is not {}", plain[name]);
        }
        Ok(())
    });
}

/// Number of deployments; `PROPTEST_CASES` sets another one.
const CASES: u32 = 40;
