//! Fitted models: read at the start, and handed to the thread that writes them.

use minerva_forecast::check;
use minerva_model::{Finding, FindingKind, FittedModel, ModelKind};
use minerva_store::ModelFiles;
use std::collections::BTreeMap;

/// Those on their way from the files, and to them.
#[derive(Debug, Default)]
pub struct Models {
    recalled: Vec<FittedModel>,
    unsent: BTreeMap<ModelKind, FittedModel>,
    damaged: Vec<Finding>,
}

impl Models {
    /// Reads what an earlier run kept.
    pub(super) fn read(files: &ModelFiles) -> Self {
        let mut models = Self::default();
        for kind in ModelKind::ALL {
            let (model, unusable) = files.recall(kind, |model| check(model).map_err(|damaged| damaged.to_string()));
            let instead = match &model {
                Some(_) => "an older one is used",
                None => "what it held is learnt anew",
            };
            models.damaged.extend(unusable.into_iter().map(|error| Finding {
                kind: FindingKind::ModelDamaged,
                device: None,
                tenant: None,
                message: format!("{error}; {instead}. Nothing is to be done."),
            }));
            models.recalled.extend(model);
        }
        models
    }

    /// What was wrong with files at the start; told once.
    pub fn take_damaged(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.damaged)
    }

    /// The newest of each kind that an earlier run kept.
    pub fn take_recalled(&mut self) -> Vec<FittedModel> {
        std::mem::take(&mut self.recalled)
    }

    /// To be written.
    pub fn keep(&mut self, model: FittedModel) {
        self.unsent.insert(model.kind, model);
    }

    /// What is still to be written.
    pub(super) fn take_unsent(&mut self) -> BTreeMap<ModelKind, FittedModel> {
        std::mem::take(&mut self.unsent)
    }

    /// The thread could not take these; newer ones go before them.
    pub(super) fn give_back(&mut self, models: BTreeMap<ModelKind, FittedModel>) {
        for (kind, model) in models {
            self.unsent.entry(kind).or_insert(model);
        }
    }
}
