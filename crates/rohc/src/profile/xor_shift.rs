//! Random numbers of tests.

/// Numbers from a seed (xorshift).
pub(crate) struct XorShift(pub(crate) u64);

impl XorShift {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
