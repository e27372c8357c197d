//! Memory in use and memory limits of the process, from Linux; unknown elsewhere.
//!
//! A search near the limit stops with the best found so far: a failed allocation would end the process.

use std::fs;

/// Fraction of the limit above which memory counts as scarce.
const SCARCE: f64 = 0.9;

/// Memory limits in bytes; absent where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Addresses (`ulimit -v`).
    addresses: Option<u64>,
    /// Pages: of the machine, or of the control group.
    pages: Option<u64>,
}

impl ProcessMemory {
    pub fn here() -> ProcessMemory {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        ProcessMemory {
            addresses: addresses(&read("/proc/self/limits")),
            pages: [kib(&read("/proc/meminfo"), "MemTotal:"), number(&read("/sys/fs/cgroup/memory.max"))]
                .into_iter()
                .flatten()
                .min(),
        }
    }

    /// Memory in use and its limit, in bytes, where the use is close to the limit.
    pub fn scarce(&self) -> Option<(u64, u64)> {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        self.scarce_at(kib(&status, "VmSize:")?, kib(&status, "VmRSS:")?)
    }

    fn scarce_at(&self, addresses: u64, pages: u64) -> Option<(u64, u64)> {
        let near = |used: u64, most: Option<u64>| {
            most.filter(|most| used as f64 > *most as f64 * SCARCE).map(|most| (used, most))
        };
        near(addresses, self.addresses).or_else(|| near(pages, self.pages))
    }
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Bytes on the line of `key`, whose unit is kB.
fn kib(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    number(line.trim().strip_suffix("kB")?)?.checked_mul(1024)
}

/// The soft limit of the address space, if any.
fn addresses(limits: &str) -> Option<u64> {
    number(limits.lines().find_map(|line| line.strip_prefix("Max address space"))?.split_whitespace().next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_linux_writes_them() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max address space         1500000000           unlimited            bytes\n";
        assert_eq!(addresses(limits), Some(1_500_000_000));
        assert_eq!(addresses(&limits.replace("1500000000", "unlimited ")), None);
        assert_eq!(kib("Name:\tx\nVmSize:\t  2048 kB\nVmRSS:\t1024 kB\n", "VmSize:"), Some(2 << 20));
        assert_eq!(number("max\n"), None);
    }

    #[test]
    fn memory_is_scarce_before_it_is_gone_whatever_limits_it() {
        let memory = ProcessMemory { addresses: Some(1000), pages: Some(500) };
        assert_eq!(memory.scarce_at(899, 449), None);
        assert_eq!(memory.scarce_at(901, 0), Some((901, 1000)));
        assert_eq!(memory.scarce_at(0, 451), Some((451, 500)));
        assert_eq!(ProcessMemory::default().scarce_at(u64::MAX, u64::MAX), None);
    }
}
