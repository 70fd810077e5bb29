//! Judges tables and keys of one file, whatever their section; notes where each key was set.

use crate::key::Key;
use crate::keys::{belongs_elsewhere, renamed};
use crate::problem::{Problem, Source};
use crate::value::{Wrong, did_you_mean, found, judge_value, list};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Where a key was set, as "table.key".
pub(crate) type Locations = BTreeMap<String, (Arc<Source>, Range<usize>)>;

/// Judges the values of one file.
pub(crate) struct Judge<'a> {
    pub(crate) source: &'a Arc<Source>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) places: &'a mut Locations,
}

impl Judge<'_> {
    pub(crate) fn error(
        &mut self,
        span: Range<usize>,
        title: impl Into<String>,
        label: impl Into<String>,
        help: Option<String>,
    ) {
        self.problem(true, span, title.into(), label.into(), help);
    }

    pub(crate) fn problem(
        &mut self,
        is_error: bool,
        span: Range<usize>,
        title: String,
        label: String,
        help: Option<String>,
    ) {
        // A parser's span may end past the text or inside a character; the renderer must not be given such a one.
        let text = &self.source.text;
        let whole = |at: &usize| text.is_char_boundary(*at);
        let start = (0..=span.start.min(text.len())).rev().find(whole).unwrap_or(0);
        let end = (span.end.clamp(start, text.len())..=text.len()).find(whole).unwrap_or(text.len());
        self.problems.push(Problem { source: Arc::clone(self.source), span: start..end, is_error, title, label, help });
    }

    pub(crate) fn table<'v>(&mut self, value: &'v Spanned<DeValue<'v>>, name: &str) -> Option<&'v DeTable<'v>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            let help = format!("write `[{name}]` on a line of its own, and its keys below it");
            self.error(value.span(), format!("`{name}` is not a table"), found(value.get_ref()), Some(help));
        }
        table
    }

    pub(crate) fn keys<T>(&mut self, prefix: &str, table: &DeTable<'_>, keys: &'static [Key<T>], into: &mut T) {
        for (name, value) in table {
            let written = name.get_ref().as_ref();
            let word = match renamed(prefix, written) {
                Some(now) if table.contains_key(now) => {
                    let help = format!("`{written}` is the former name of `{now}`; remove it");
                    self.error(name.span(), format!("`{now}` is set twice"), "once by its former name", Some(help));
                    continue;
                }
                Some(now) => {
                    let title = format!("`{written}` is called `{now}` now");
                    let help = Some(format!("rename it to `{now}`; the former name is still read"));
                    self.problem(false, name.span(), title, "a former name".into(), help);
                    now
                }
                None => written,
            };
            match keys.iter().find(|key| key.name == word) {
                Some(key) => self.key(key, format!("{prefix}.{word}"), value, into),
                None => {
                    let help = belongs_elsewhere(prefix, word)
                        .or_else(|| did_you_mean(word, keys.iter().map(|key| key.name)))
                        .unwrap_or_else(|| format!("known here: {}", list(keys.iter().map(|key| key.name))));
                    let label = format!("`{prefix}` has no key of this name");
                    self.error(name.span(), format!("unknown key `{word}`"), label, Some(help));
                }
            }
        }
    }

    pub(crate) fn key<T>(&mut self, key: &Key<T>, path: String, value: &Spanned<DeValue<'_>>, into: &mut T) {
        match judge_value(&key.kind, value, into) {
            Ok(()) => {
                self.places.insert(path, (Arc::clone(self.source), value.span()));
            }
            Err(Wrong { span, label, help }) => {
                self.error(span, format!("invalid value of `{}`", key.name), label, help)
            }
        }
    }

    /// The tables of a list such as `[[rules]]`.
    pub(crate) fn rows<'v>(
        &mut self,
        value: &'v Spanned<DeValue<'v>>,
        name: &str,
        one: &str,
    ) -> Option<&'v DeArray<'v>> {
        let rows = value.get_ref().as_array();
        if rows.is_none() {
            let help = format!("write `[[{name}]]`, with two brackets, above each {one}");
            self.error(value.span(), format!("`{name}` is not a list of tables"), found(value.get_ref()), Some(help));
        }
        // Where the list begins, for what all files together show.
        self.places.entry(name.to_owned()).or_insert_with(|| (Arc::clone(self.source), value.span()));
        rows
    }

    /// A place of this file, as people write it.
    pub(crate) fn place(&self, span: Range<usize>) -> String {
        let line = self.source.text[..span.start.min(self.source.text.len())].matches('\n').count() + 1;
        format!("{}:{line}", self.source.path.display())
    }
}
