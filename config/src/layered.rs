//! A file of settings and its drop-ins, read onto one another.

use crate::judge::{Judge, Locations};
use crate::problem::{ConfigErrors, Problem, Source};
use crate::value::did_you_mean;
use std::path::PathBuf;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads files one after the other, each by `read`; later ones win. `across_files` judges what only all together can show.
/// The answer holds the warnings too. Errors: every problem, if one of them is an error.
pub(crate) fn read_layers<C: Default>(
    files: impl IntoIterator<Item = (PathBuf, String)>,
    read: impl Fn(&mut Judge<'_>, &mut C),
    across_files: impl FnOnce(&C, &Locations) -> Vec<Problem>,
) -> Result<(C, Vec<Problem>), ConfigErrors> {
    let (mut config, mut problems, mut places) = (C::default(), Vec::new(), Locations::new());
    for (path, text) in files {
        let source = Arc::new(Source { path, text });
        let mut judge = Judge { source: &source, problems: Vec::new(), places: &mut places };
        read(&mut judge, &mut config);
        judge.problems.sort_by_key(|problem| problem.span.start);
        problems.append(&mut judge.problems);
    }
    problems.extend(across_files(&config, &places));
    if problems.iter().any(|problem| problem.is_error) {
        return Err(ConfigErrors { problems });
    }
    Ok((config, problems))
}

impl Judge<'_> {
    /// Hands each of a file's top-level keys that is among `known` to `each`; every other one is an error.
    pub(crate) fn top_level(
        &mut self,
        known: &[&'static str],
        mut each: impl FnMut(&mut Self, &str, &Spanned<DeValue<'_>>),
    ) {
        let source = Arc::clone(self.source);
        let (root, errors) = DeTable::parse_recoverable(&source.text);
        for error in errors {
            self.error(error.span().unwrap_or(0..0), "not valid TOML", error.message(), None);
        }
        // What is left of a file with a syntax error is not what its author meant.
        let is_readable = self.problems.is_empty();
        for (name, value) in root.get_ref().iter().filter(|_| is_readable) {
            let word = name.get_ref().as_ref();
            if known.contains(&word) {
                each(self, word, value);
            } else {
                let help = did_you_mean(word, known.iter().copied());
                self.error(name.span(), format!("unknown key `{word}`"), "nothing has this name", help);
            }
        }
    }
}
