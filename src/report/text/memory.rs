//! Memory of the fullest device of each pool, as bars.

use super::page::{BAD, heading, styled};
use crate::report::detail::PoolMemory;
use crate::report::number::{bar, gib, gib_number, percent};
use crate::report::pool::divided_role;
use crate::report::result::MemoryReport;

/// Width of a bar, in characters.
const CELLS: usize = 30;

fn rows(memory: &MemoryReport) -> String {
    let over = memory.total_bytes - memory.usable_bytes;
    let parts = [
        ("weights", memory.weights_bytes),
        ("KV cache", memory.kv_cache_bytes),
        ("activations", memory.activations_bytes),
        ("buffers", memory.buffers_bytes),
        ("free", (-over).max(0.0)),
    ];
    let mut text = String::new();
    for (name, bytes) in parts {
        let share = bytes / memory.capacity_bytes;
        let (number, bar) = (gib_number(bytes), bar(share, CELLS));
        text.push_str(&format!("  {name:<12} {number:>9} GiB  {bar}  {:>5}\n", percent(share)));
    }
    let (number, usable) = (gib_number(memory.total_bytes), gib(memory.usable_bytes));
    let (seen, share) = (gib(memory.capacity_bytes), memory.utilization);
    let of = format!("of {usable} ({seen} x memory utilization {share})");
    text.push_str(&format!("  {:<12} {number:>9} GiB  {of}\n", "total"));
    if let Some(found) = &memory.interval {
        let between = format!("{} to {}", gib(found.p10), gib(found.p90));
        text.push_str(&format!("  {:<12} {:>9}      p10–p90 {between}\n", "", ""));
    }
    if memory.host_bytes > 0.0 {
        let number = gib_number(memory.host_bytes);
        text.push_str(&format!("  {:<12} {number:>9} GiB  in host memory, computed there\n", "host"));
    }
    if memory.offloaded_bytes > 0.0 {
        let number = gib_number(memory.offloaded_bytes);
        text.push_str(&format!("  {:<12} {number:>9} GiB  of the above in host memory\n", "offloaded"));
    } else if over > 0.0 {
        text.push_str(&format!("  {}\n", styled(BAD, &format!("SHORT BY {}", gib(over)))));
    }
    text
}

pub fn memory(pools: &[PoolMemory]) -> String {
    let mut text = String::new();
    for pool in pools {
        let role = divided_role(pool.role, ", ", "");
        text.push_str(&heading(
            &format!("Memory per device{role} ({})", pool.label),
            "% of the memory that software sees",
        ));
        text.push_str(&rows(&pool.memory));
    }
    text
}
