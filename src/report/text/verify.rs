//! The checks of a saved result as text.

use super::page::{BAD, GOOD, bullet, paragraph, styled};
use crate::report::table::grouped;
use crate::report::verify::Verified;

/// The verdict, then every check with its faults.
pub fn table(verified: &Verified) -> String {
    let failed = verified.checks.iter().filter(|check| !check.faults.is_empty()).count();
    let mut text = if verified.holds {
        format!("{}\n\n", styled(GOOD, &format!("VERIFIED: all {} checks pass", verified.checks.len())))
    } else {
        let of = verified.checks.len();
        format!("{}\n\n", styled(BAD, &format!("FAILED: {failed} of {of} checks fail")))
    };
    for check in &verified.checks {
        let mark = if check.faults.is_empty() { styled(GOOD, "ok  ") } else { styled(BAD, "FAIL") };
        text.push_str(&format!("{mark}  {}  ({})\n", check.what, grouped(check.of)));
        text.extend(check.faults.iter().map(|fault| bullet(fault)));
    }
    text.extend(verified.notes.iter().map(|note| paragraph(&format!("Note: {note}."))));
    if let Some(seed) = verified.seed {
        text.push_str(&format!("\nrandom sample with seed {seed}\n"));
    }
    text
}
