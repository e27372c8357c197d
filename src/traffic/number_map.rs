//! Maps by number, with a hasher that keeps neighbouring numbers together.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::content::mixed;

/// A map by number, or by several. Its order is of no use.
pub type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// A hasher of numbers. Eight neighbours are next to each other, since most lookups follow one of the number before.
#[derive(Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        let low = value & 7;
        // A table takes the place of an entry from the lowest bits, and compares the highest before the number itself.
        self.0 = (mixed(self.0, value >> 3) << 3 | low) ^ low << 57;
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, Hash};

    use super::*;

    fn hash(of: impl Hash) -> u64 {
        BuildHasherDefault::<NumberHasher>::default().hash_one(of)
    }

    #[test]
    fn neighbours_are_together_and_others_are_not() {
        let places: Vec<u64> = (800..808u64).map(|number| hash(number) & 1023).collect();
        let first = places[0] & !7;
        assert_eq!(places, (first..first + 8).collect::<Vec<_>>());
        let tags: HashSet<u64> = (800..808u64).map(|number| hash(number) >> 57).collect();
        assert_eq!(tags.len(), 8);
        // A thousand groups of neighbours over a thousand places: as many as random ones, 1 - 1/e of them, are taken.
        let groups: HashSet<u64> = (0..1024u64).map(|number| (hash(number * 8) >> 3) & 1023).collect();
        assert!((590..700).contains(&groups.len()), "{}", groups.len());
    }

    #[test]
    fn several_numbers_have_an_order() {
        assert_ne!(hash((1usize, 2u32, 3u64)), hash((2usize, 1u32, 3u64)));
        assert_ne!(hash((1usize, 2u32, 3u64)), hash((1usize, 3u32, 2u64)));
    }
}
