//! What outlives a restart: the models of slices and of sessions, what ordering by the latter was worth, and what is known of families. The days ahead are kept by
//! [`Loads`].

use super::{Forecaster, ForecasterSettings};
use crate::codec::Damaged;
use crate::load::Loads;
use minerva_model::{FittedModel, ModelKind};

/// Marks in the files; 2 are the days ahead.
const NEXT_SLICE: u16 = 1;
const FAMILIES: u16 = 3;
const SESSIONS: u16 = 4;

/// Whether the bytes are a whole model of its kind and of this version.
///
/// # Errors
/// What is wrong with them.
pub fn check(model: &FittedModel) -> Result<(), Damaged> {
    match model.kind {
        ModelKind::DaysAhead => Loads::default().recall(&model.bytes),
        _ => Forecaster::new(ForecasterSettings::default()).recall(model),
    }
}

impl Forecaster {
    /// All that is fitted; a kind of which nothing is known yet is left out.
    pub fn models(&self) -> Vec<FittedModel> {
        let bytes = |kind| match kind {
            ModelKind::NextSlice => self.next_slice.encode(NEXT_SLICE),
            ModelKind::Sessions => self.sessions.encode(SESSIONS),
            ModelKind::Families => self.families.encode(FAMILIES),
            ModelKind::DaysAhead => None,
        };
        ModelKind::ALL.into_iter().filter_map(|kind| Some(FittedModel { kind, bytes: bytes(kind)? })).collect()
    }

    /// Takes over a model that was kept.
    ///
    /// # Errors
    /// Damaged bytes, or those of [`Loads`], which change nothing.
    pub fn recall(&mut self, model: &FittedModel) -> Result<(), Damaged> {
        self.forget_next_slices();
        match model.kind {
            ModelKind::NextSlice => self.next_slice.decode(&model.bytes, NEXT_SLICE),
            ModelKind::Sessions => self.sessions.decode(&model.bytes, SESSIONS),
            ModelKind::Families => self.families.decode(&model.bytes, FAMILIES),
            ModelKind::DaysAhead => Err(Damaged::Version),
        }
    }
}
