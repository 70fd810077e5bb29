//! The memory that the kernel is given for one request: the guest's own where direct I/O can reach it, else a buffer that fits.

use crate::transfer::Pieces;
use libc::iovec;

/// What is written where the file system or disk has no other way to zero.
#[repr(align(4096))]
struct Zeroes([u8; 64 << 10]);
static ZEROES: Zeroes = Zeroes([0; 64 << 10]);

/// A longer buffer is not kept for the next request.
const BOUNCE_BYTES_KEPT: usize = 256 << 10;
/// So many buffers are kept, as many as may be at a disk as a rule. A guest can have a thousand times as many requests under way.
const BOUNCES_KEPT: usize = 64;

/// Buffers that nobody uses now.
#[derive(Debug, Default)]
pub(super) struct Bounces(Vec<Vec<u8>>);

/// What direct I/O asks of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alignment {
    /// Of addresses; 1 through the page cache.
    pub(super) memory: usize,
    /// Of lengths, where that of addresses is not 1.
    pub(super) block_bytes: u32,
}

impl Alignment {
    fn fits(self, piece: &iovec) -> bool {
        let block = if self.memory > 1 { self.block_bytes as usize } else { 1 };
        (piece.iov_base as usize).is_multiple_of(self.memory) && piece.iov_len.is_multiple_of(block)
    }
}

/// Memory of one part of a request. Its lists are kept for the next.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// The guest's pieces of the part.
    part: Vec<iovec>,
    /// What the kernel is given: these pieces, or the buffer, less what is done.
    given: Vec<iovec>,
    given_first: usize,
    bounce: Vec<u8>,
    bounce_start: usize,
    is_bounced: bool,
    done_bytes: u64,
}

impl Given {
    /// So many bytes of the guest's, from so many on; to be written to the disk, or read from it.
    pub(super) fn prepare(
        &mut self,
        pieces: &[iovec],
        (from, length): (usize, usize),
        to: Alignment,
        is_write: bool,
        spare: &mut Bounces,
    ) {
        self.clear();
        self.find_part(pieces, from, length);
        self.is_bounced = !self.part.iter().all(|piece| to.fits(piece));
        if !self.is_bounced {
            self.given.extend_from_slice(&self.part);
            return;
        }
        let length = self.part.iter().map(|piece| piece.iov_len).sum::<usize>();
        if self.bounce.capacity() == 0 {
            self.bounce = spare.0.pop().unwrap_or_default();
        }
        self.bounce.resize(length + to.memory, 0);
        self.bounce_start = self.bounce.as_ptr().align_offset(to.memory);
        let mut target = self.bounce[self.bounce_start..].as_mut_ptr();
        self.given.push(iovec { iov_base: target.cast(), iov_len: length });
        if is_write {
            for piece in &self.part {
                // SAFETY: the pieces were located in memory that stays mapped until the request is released, the buffer is as long as
                // all of them, and the two are apart. The guest may write meanwhile: then bytes of both are written, as on any disk.
                unsafe {
                    std::ptr::copy_nonoverlapping(piece.iov_base.cast::<u8>(), target, piece.iov_len);
                    target = target.add(piece.iov_len);
                }
            }
        }
    }

    /// So many zeroes.
    pub(super) fn prepare_zeroes(&mut self, length: usize) {
        self.clear();
        let mut left = length;
        while left > 0 {
            let now = left.min(ZEROES.0.len());
            self.given.push(iovec { iov_base: ZEROES.0.as_ptr().cast_mut().cast(), iov_len: now });
            left -= now;
        }
    }

    fn clear(&mut self) {
        self.given.clear();
        (self.given_first, self.done_bytes, self.is_bounced) = (0, 0, false);
    }

    fn find_part(&mut self, pieces: &[iovec], from: usize, length: usize) {
        let (mut before, mut left) = (from, length);
        let within = |piece: &iovec| {
            let skipped = before.min(piece.iov_len);
            let iov_len = left.min(piece.iov_len - skipped);
            (before, left) = (before - skipped, left - iov_len);
            let iov_base = piece.iov_base.cast::<u8>().wrapping_add(skipped).cast();
            Some(iovec { iov_base, iov_len }).filter(|_| iov_len > 0)
        };
        self.part.clear();
        self.part.extend(pieces.iter().filter_map(within));
    }

    /// What is left to do, of a part that lies at `offset` in the image.
    pub(super) fn pieces(&self, offset: u64) -> Pieces {
        let given = &self.given[self.given_first..];
        Pieces { first: given.as_ptr(), count: given.len() as u32, offset: offset + self.done_bytes }
    }

    /// So many bytes more were moved; whether that is all of them.
    pub(super) fn moved(&mut self, mut bytes: usize) -> bool {
        self.done_bytes += bytes as u64;
        while let Some(piece) = self.given.get_mut(self.given_first) {
            if bytes < piece.iov_len {
                piece.iov_base = piece.iov_base.cast::<u8>().wrapping_add(bytes).cast();
                piece.iov_len -= bytes;
                return false;
            }
            bytes -= piece.iov_len;
            self.given_first += 1;
        }
        true
    }

    /// What was read into the buffer goes to the guest.
    pub(super) fn deliver(&mut self) {
        if !self.is_bounced {
            return;
        }
        let mut source = self.bounce[self.bounce_start..].as_ptr();
        for piece in &self.part {
            // SAFETY: as in `prepare`, the other way.
            unsafe {
                std::ptr::copy_nonoverlapping(source, piece.iov_base.cast::<u8>(), piece.iov_len);
                source = source.add(piece.iov_len);
            }
        }
    }

    /// The lists keep room for so many pieces at most; the part is done.
    pub(super) fn shrink_to(&mut self, pieces: usize) {
        self.clear();
        self.part.clear();
        self.part.shrink_to(pieces);
        self.given.shrink_to(pieces);
    }

    /// Room that its lists keep.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.part.capacity().max(self.given.capacity())
    }

    /// The part is done, and its buffer the next one's.
    pub(super) fn give_back(&mut self, spare: &mut Bounces) {
        let bounce = std::mem::take(&mut self.bounce);
        if (1..=BOUNCE_BYTES_KEPT).contains(&bounce.capacity()) && spare.0.len() < BOUNCES_KEPT {
            spare.0.push(bounce);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Alignment, BOUNCE_BYTES_KEPT, BOUNCES_KEPT, Bounces, Given};
    use libc::iovec;

    const ALIGNMENT: Alignment = Alignment { memory: 512, block_bytes: 512 };

    #[test]
    fn a_part_has_its_pieces_and_a_buffer_for_odd_addresses_that_is_no_longer() {
        let mut memory = vec![0u8; 64 << 10];
        let start = memory.as_ptr().align_offset(512);
        let piece = |at: usize, iov_len| iovec { iov_base: memory[start + at..].as_ptr().cast_mut().cast(), iov_len };
        let pieces = [piece(0, 1024), piece(2048, 4096), piece(8192, 512), piece(10_241, 512)];
        let (mut given, mut spare) = (Given::default(), Bounces::default());
        let lengths = |given: &Given| given.given.iter().map(|piece| piece.iov_len).collect::<Vec<_>>();
        for (from, length, expected, is_bounced) in [
            (0, 6144, vec![6144], true),
            (0, 5632, vec![1024, 4096, 512], false),
            (512, 1024, vec![512, 512], false),
            (1024, 4096, vec![4096], false),
            (5120, 1024, vec![1024], true),
            (500, 1024, vec![1024], true),
        ] {
            given.prepare(&pieces, (from, length), ALIGNMENT, true, &mut spare);
            assert_eq!((lengths(&given), given.is_bounced), (expected, is_bounced), "{length} from {from}");
            assert!(given.bounce.len() <= 6144 + 512);
            assert_eq!(given.part.iter().map(|piece| piece.iov_len).sum::<usize>(), length);
        }
        given.prepare_zeroes(100 << 10);
        assert_eq!(lengths(&given), [64 << 10, 36 << 10]);
        memory.clear();
    }

    #[test]
    fn few_buffers_are_kept_for_the_next_however_many_were_needed_and_long_ones_are_not() {
        let memory = vec![0u8; 1 << 20];
        let odd = memory.as_ptr().align_offset(512) + 1;
        let mut spare = Bounces::default();
        for (length, kept) in [(4096, BOUNCES_KEPT), (BOUNCE_BYTES_KEPT, 0)] {
            let pieces = [iovec { iov_base: memory[odd..].as_ptr().cast_mut().cast(), iov_len: length }];
            let mut all: Vec<Given> = std::iter::repeat_with(Given::default).take(1000).collect();
            for given in &mut all {
                given.prepare(&pieces, (0, length), ALIGNMENT, true, &mut spare);
                assert!(given.bounce.len() > length);
            }
            assert_eq!(spare.0.len(), 0);
            all.iter_mut().for_each(|given| given.give_back(&mut spare));
            assert!(all.iter().all(|given| given.bounce.capacity() == 0), "{length}");
            assert_eq!(spare.0.len(), kept, "{length}");
        }
    }
}
