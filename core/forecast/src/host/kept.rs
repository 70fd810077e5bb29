//! What of a learner outlives a restart, as bytes: its trees and a sample of its rows.

use super::growth::Growth;
use super::learner::Learner;
use super::reservoir::Reservoir;
use super::ridge::Ridge;
use crate::boosting::Boosted;
use crate::codec::{Damaged, Reader, Writer};
use crate::tenant::{FEATURES, FEATURES_WITHOUT_DAY_AGO, Row};

/// As a file: since the second with rows, since the third also before there are trees, since the fourth with trees that grow by leaves
/// and rows that know the day before.
const VERSION: u16 = 4;
const VERSION_BY_LEVELS: u16 = 3;
const VERSION_WITH_TREES: u16 = 2;
const VERSION_WITHOUT_ROWS: u16 = 1;
/// Rows that outlive a restart, 130 bytes each.
const ROWS_KEPT: usize = 2_000;

impl Learner {
    /// The model as bytes, versioned and checksummed, with the mark `kind` of what it is of; `None` before it can answer. A sample of the
    /// rows is part of it, from which the next start goes on.
    pub fn encode(&self, kind: u16) -> Option<Vec<u8>> {
        let mut writer = Writer::default();
        self.write(&mut writer)?;
        Some(writer.seal(kind, if self.is_by_levels() { VERSION_BY_LEVELS } else { VERSION }))
    }

    /// Trees grow as in earlier versions, whose files it writes then.
    fn is_by_levels(&self) -> bool {
        self.settings.growth == Growth::ByLevels
    }

    /// The same as a part of other bytes.
    pub(crate) fn write(&self, writer: &mut Writer) -> Option<()> {
        if self.trees.is_none() && !self.ridge.is_solved() {
            return None;
        }
        writer.u8(self.trees.is_some().into());
        for trees in self.trees.iter().flatten() {
            trees.encode(writer);
            if !self.is_by_levels() {
                trees.encode_leaves(writer);
            }
        }
        self.reservoir.encode(ROWS_KEPT, writer);
        Some(())
    }

    /// Takes over a model that was encoded.
    ///
    /// # Errors
    /// Bytes that are damaged, of another kind or version, or of a model with other features; the learner is then as before.
    pub fn decode(&mut self, bytes: &[u8], kind: u16) -> Result<(), Damaged> {
        if let Ok(mut reader) = Reader::open(bytes, kind, VERSION) {
            if self.is_by_levels() {
                return Err(Damaged::Version);
            }
            let kept = self.read(&mut reader)?;
            reader.end()?;
            self.adopt(kept);
            return Ok(());
        }
        if let Ok(mut reader) = Reader::open(bytes, kind, VERSION_BY_LEVELS) {
            let has_trees = has_trees(&mut reader)?;
            let kept = self.read_parts(&mut reader, Shape { has_trees, has_rows: true, is_by_levels: true })?;
            reader.end()?;
            self.adopt(kept);
            return Ok(());
        }
        let opened = Reader::open(bytes, kind, VERSION_WITH_TREES);
        let has_rows = opened.is_ok();
        let mut reader = opened.or_else(|_| Reader::open(bytes, kind, VERSION_WITHOUT_ROWS))?;
        let kept = self.read_parts(&mut reader, Shape { has_trees: true, has_rows, is_by_levels: true })?;
        reader.end()?;
        self.adopt(kept);
        Ok(())
    }

    /// What [`Self::write`] of a learner whose trees grow alike wrote; nothing changes before [`Self::adopt`].
    pub(crate) fn read(&self, reader: &mut Reader<'_>) -> Result<Kept, Damaged> {
        let has_trees = has_trees(reader)?;
        self.read_parts(reader, Shape { has_trees, has_rows: true, is_by_levels: self.is_by_levels() })
    }

    fn read_parts(&self, reader: &mut Reader<'_>, shape: Shape) -> Result<Kept, Damaged> {
        let mut tree = || {
            let mut trees = Boosted::decode(reader)?;
            if !shape.is_by_levels {
                trees.decode_leaves(reader)?;
            }
            Ok(trees)
        };
        let trees = if shape.has_trees { Some([tree()?, tree()?]) } else { None };
        let mut reservoir = Reservoir::new(self.settings.rows, self.settings.growth.features(), self.settings.seed);
        let width = if shape.is_by_levels { FEATURES_WITHOUT_DAY_AGO } else { FEATURES };
        if shape.has_rows {
            reservoir.decode(ROWS_KEPT, width, reader)?;
        }
        if trees.iter().flatten().any(|trees| trees.features() != width) {
            return Err(Damaged::Value);
        }
        Ok(Kept { trees, reservoir })
    }

    /// Goes on from what was kept.
    pub(crate) fn adopt(&mut self, kept: Kept) {
        let Kept { trees, reservoir } = kept;
        if trees.is_none() {
            self.ridge = Ridge::new(reservoir.width());
            let (rows, targets) = reservoir.content();
            // Of rates the first entry of a row is the base, from which targets are differences.
            let greatest = rows.chunks_exact(reservoir.width()).zip(targets).map(|(row, target)| row[0] + target);
            self.greatest = None;
            greatest.for_each(|target| self.note_target(target));
            for (row, target) in rows.chunks_exact(reservoir.width()).zip(targets) {
                self.ridge.observe(&Row::from(row.to_vec()), *target);
            }
            self.ridge.solve();
        }
        self.trees = trees;
        if !reservoir.is_empty() {
            self.reservoir = reservoir;
        }
    }
}

/// What a file has, by its version.
#[derive(Clone, Copy)]
struct Shape {
    has_trees: bool,
    has_rows: bool,
    is_by_levels: bool,
}

fn has_trees(reader: &mut Reader<'_>) -> Result<bool, Damaged> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Damaged::Value),
    }
}

/// What outlived a restart.
pub(crate) struct Kept {
    trees: Option<[Boosted; 2]>,
    reservoir: Reservoir,
}
