//! What is wrong with a job file, where, and what to do.

use std::fmt;
use std::sync::Arc;

/// A place in the text: its line, and which part of it is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceLocation {
    /// From 1.
    pub(super) line: usize,
    /// In characters, from 1.
    pub(super) column: usize,
    /// Characters of the part.
    pub(super) width: usize,
    /// The line as it stands.
    pub(super) text: Arc<str>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    origin: Arc<str>,
    place: Option<SourceLocation>,
    what: String,
    help: Option<String>,
}

impl Problem {
    pub(super) fn at(origin: &Arc<str>, place: &SourceLocation, what: String, help: Option<String>) -> Self {
        Self { origin: Arc::clone(origin), place: Some(place.clone()), what, help }
    }

    pub(super) fn of_file(origin: &Arc<str>, what: String) -> Self {
        Self { origin: Arc::clone(origin), place: None, what, help: None }
    }

    /// The line, from 1, if it is about one.
    pub fn line(&self) -> Option<usize> {
        self.place.as_ref().map(|place| place.line)
    }

    /// What is wrong.
    pub fn what(&self) -> &str {
        &self.what
    }
}

/// Errors past this many say nothing new, and looking for what was meant takes its time.
pub(super) const PROBLEMS_MAX: usize = 20;

/// So many characters of a line are shown.
const SHOWN_MAX: usize = 120;

impl fmt::Display for Problem {
    /// `file:line:column: what`, then the line and a mark under the part that is meant.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(place) = &self.place else { return write!(f, "{}: {}", self.origin, self.what) };
        write!(f, "{}:{}:{}: {}", self.origin, place.line, place.column, self.what)?;
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        let shown: String = place.text.chars().map(printable).take(SHOWN_MAX).collect();
        let number = place.line.to_string();
        let margin = " ".repeat(number.len());
        write!(f, "\n {number} | {shown}")?;
        if place.column <= SHOWN_MAX {
            let width = place.width.clamp(1, SHOWN_MAX + 1 - place.column);
            write!(f, "\n {margin} | {}{}", " ".repeat(place.column - 1), "^".repeat(width))?;
        }
        Ok(())
    }
}

/// Everything that is wrong with a job file, in its order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct JobErrors {
    /// At least one.
    pub problems: Vec<Problem>,
}

impl JobErrors {
    pub(super) fn one(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl fmt::Display for JobErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}
