//! Seeded randomness of the embedded cluster: uids, name suffixes, node ports, dice.
//!
//! Owns the one generator; the same seed gives the same sequence. Must not be seeded from the machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The letters of generated names, as `k8s.io/apimachinery/pkg/util/rand` has them: no vowels, no look-alikes.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A seeded source of ids.
#[derive(Debug, Clone)]
pub struct Ids(ChaCha8Rng);

impl Ids {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number below `bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Multiply-shift keeps the bias below 2^-32 for the small bounds asked here.
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A version 4 UUID.
    pub fn uid(&mut self) -> String {
        let mut b = [0u8; 16];
        self.0.fill_bytes(&mut b);
        b[6] = (b[6] & 0x0f) | 0x40;
        b[8] = (b[8] & 0x3f) | 0x80;
        let hex: String = b.iter().map(|byte| format!("{byte:02x}")).collect();
        let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
        format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
    }

    /// Letters for a generated name.
    pub fn suffix(&mut self, length: usize) -> String {
        (0..length).map(|_| LETTERS.get(self.below(27) as usize).copied().map_or('x', char::from)).collect()
    }

    /// Random bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut b = [0u8; N];
        self.0.fill_bytes(&mut b);
        b
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_ids_and_another_gives_others() {
        let take = |seed| {
            let mut ids = Ids::new(seed);
            (ids.uid(), ids.suffix(5), ids.below(1000))
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
        let (uid, suffix, _) = take(7);
        assert_eq!((uid.len(), uid.as_bytes().get(14), suffix.len()), (36, Some(&b'4'), 5));
    }
}
