//! An input, read from its beginning.

pub(super) struct Script<'a>(pub(super) &'a [u8]);

impl<'a> Script<'a> {
    /// The next byte; none at the end.
    pub(super) fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next byte, 0 at the end.
    pub(super) fn byte(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    /// So many bytes, or those that are left.
    pub(super) fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Bytes, after the byte that says how many.
    pub(super) fn some(&mut self) -> &'a [u8] {
        let count = self.byte();
        self.take(count.into())
    }

    /// A number of four bytes.
    pub(super) fn number(&mut self) -> u32 {
        self.take(4).iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
    }
}
