//! The disk's buffer: which sectors it holds.
//!
//! A segment holds one run of sectors, at most its size: when more is read into it, what came first is lost. Segments are
//! reused in the order of their last use.

/// One run of sectors in the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Filled by a write.
    pub(crate) written: bool,
    used: u64,
}

/// All segments.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    segments: Vec<Segment>,
    segment_sectors: u64,
    uses: u64,
}

impl Cache {
    pub(crate) fn new(segments: u32, segment_sectors: u32) -> Self {
        let count = if segment_sectors == 0 { 0 } else { segments as usize };
        Self { segments: vec![Segment::default(); count], segment_sectors: u64::from(segment_sectors), uses: 0 }
    }

    pub(crate) fn get(&self, index: usize) -> Segment {
        self.segments[index]
    }

    /// The segment that holds `first` and, if there are several, the most of what follows it.
    pub(crate) fn find(&self, first: u64, written_too: bool) -> Option<usize> {
        let holds =
            |segment: &Segment| segment.start <= first && first < segment.end && (written_too || !segment.written);
        let mut best: Option<usize> = None;
        for (index, segment) in self.segments.iter().enumerate() {
            if holds(segment) && best.is_none_or(|other| segment.end > self.segments[other].end) {
                best = Some(index);
            }
        }
        best
    }

    /// Marks a segment as used just now.
    pub(crate) fn touch(&mut self, index: usize) {
        self.uses += 1;
        self.segments[index].used = self.uses;
    }

    /// Sectors up to `end` are in the segment now.
    pub(crate) fn extend(&mut self, index: usize, end: u64) {
        let segment = &mut self.segments[index];
        segment.end = segment.end.max(end);
        segment.start = segment.start.max(segment.end.saturating_sub(self.segment_sectors));
    }

    /// Empties the segment used longest ago and gives it `start..start`; `None` without segments.
    pub(crate) fn replace(&mut self, start: u64, written: bool) -> Option<usize> {
        let index = (0..self.segments.len()).min_by_key(|index| self.segments[*index].used)?;
        self.segments[index] = Segment { start, end: start, written, used: 0 };
        self.touch(index);
        Some(index)
    }

    /// What is written makes every copy of it stale.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        for segment in &mut self.segments {
            if segment.start < end && start < segment.end {
                *segment = Segment::default();
            }
        }
    }

    /// Keeps what was written: behind the run it continues, or in a segment of its own.
    pub(crate) fn keep_written(&mut self, start: u64, end: u64) {
        let continued = self.segments.iter().position(|segment| segment.written && segment.end == start && end > start);
        if let Some(index) = continued.or_else(|| self.replace(start, true)) {
            self.extend(index, end);
            self.touch(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cache;

    #[test]
    fn a_segment_forgets_what_came_first() {
        let mut cache = Cache::new(2, 10);
        let index = cache.replace(100, false).unwrap();
        cache.extend(index, 125);
        assert_eq!((cache.find(114, true), cache.find(115, true), cache.find(125, true)), (None, Some(index), None));
    }

    #[test]
    fn the_segment_used_longest_ago_is_reused() {
        let mut cache = Cache::new(2, 10);
        let (a, b) = (cache.replace(0, false).unwrap(), cache.replace(50, false).unwrap());
        cache.extend(a, 5);
        cache.extend(b, 55);
        cache.touch(a);
        assert_eq!(cache.replace(90, false), Some(b));
        assert_eq!((cache.find(2, true), cache.find(52, true)), (Some(a), None));
    }

    #[test]
    fn a_write_drops_old_copies_and_may_be_kept() {
        let mut cache = Cache::new(2, 10);
        let index = cache.replace(0, false).unwrap();
        cache.extend(index, 10);
        cache.forget(9, 12);
        assert_eq!(cache.find(3, true), None);
        cache.keep_written(20, 24);
        cache.keep_written(24, 28);
        assert_eq!(cache.find(27, false), None);
        assert!(cache.find(20, true).is_some_and(|index| cache.get(index).end == 28));
    }
}
