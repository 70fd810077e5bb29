//! Lines into sections and settings. As in fio, `;` and `#` begin a comment anywhere, and a key without a value is a switch.

use super::problem::{PROBLEMS_MAX, Problem, SourceLocation};
use std::sync::Arc;

pub(super) struct Section {
    pub(super) name: String,
    pub(super) place: SourceLocation,
    pub(super) settings: Vec<Setting>,
}

pub(super) struct Setting {
    pub(super) key: String,
    pub(super) key_location: SourceLocation,
    pub(super) value: Option<String>,
    /// The key's when there is no value.
    pub(super) value_location: SourceLocation,
}

pub(super) fn sections(text: &str, origin: &Arc<str>, problems: &mut Vec<Problem>) -> Vec<Section> {
    let mut sections = Vec::<Section>::new();
    for (index, line) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
        if problems.len() >= PROBLEMS_MAX {
            break;
        }
        let content = line.split([';', '#']).next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        let shared: Arc<str> = Arc::from(line);
        let place = |part: &str| place(index + 1, &shared, line, part);
        if let Some(rest) = content.strip_prefix('[') {
            match rest.strip_suffix(']').map(str::trim) {
                Some(name) if !name.is_empty() => {
                    sections.push(Section { name: name.to_owned(), place: place(content), settings: Vec::new() });
                }
                _ => {
                    let help = Some("write it as [name]".to_owned());
                    problems.push(Problem::at(origin, &place(content), "not a section's name".to_owned(), help));
                }
            }
            continue;
        }
        let (key, value) = match content.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim())),
            None => (content, None),
        };
        if key.is_empty() {
            problems.push(Problem::at(origin, &place(content), "a value without a key".to_owned(), None));
            continue;
        }
        let Some(section) = sections.last_mut() else {
            let help = Some("begin with [global] or a job such as [reader]".to_owned());
            problems.push(Problem::at(origin, &place(content), "a setting before the first section".to_owned(), help));
            continue;
        };
        section.settings.push(Setting {
            key: key.to_owned(),
            key_location: place(key),
            value: value.map(str::to_owned),
            value_location: place(value.filter(|value| !value.is_empty()).unwrap_or(key)),
        });
    }
    sections
}

/// The place of `part`, which is a part of `line`.
fn place(number: usize, shared: &Arc<str>, line: &str, part: &str) -> SourceLocation {
    let from = (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
    let before = line.get(..from).unwrap_or_default();
    SourceLocation {
        line: number,
        column: before.chars().count() + 1,
        width: part.chars().count().max(1),
        text: Arc::clone(shared),
    }
}
