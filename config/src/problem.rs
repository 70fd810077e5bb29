//! What is wrong in a file, and where, shown with the line.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One file as it was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// Something wrong, or worth a warning, at one place of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub(crate) source: Arc<Source>,
    pub(crate) span: Range<usize>,
    pub(crate) is_error: bool,
    pub(crate) title: String,
    pub(crate) label: String,
    pub(crate) help: Option<String>,
}

impl Problem {
    /// What is wrong, in one line without the place.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What to do about it, if that is known.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.source.path
    }

    /// Line and column of the place, both from 1; the column counts characters.
    pub fn line_column(&self) -> (usize, usize) {
        let before = self.source.text.get(..self.span.start).unwrap_or(&self.source.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// With the line of the file and a caret under the place; `color` adds terminal colours.
    pub fn render(&self, color: bool) -> String {
        let level = if self.is_error { Level::ERROR } else { Level::WARNING };
        let path = self.source.path.to_string_lossy();
        let place = AnnotationKind::Primary.span(self.span.clone()).label(self.label.as_str());
        let snippet = Snippet::source(self.source.text.as_str()).path(path).annotation(place);
        let mut report: Group<'_> = level.primary_title(self.title.as_str()).element(snippet);
        if let Some(help) = &self.help {
            report = report.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[report]).to_string()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

/// Everything that is wrong in the operator's files: all of it, in the order of the lines, so that one look mends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    /// Errors and warnings; at least one is an error.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "{problem}\n")?;
        }
        let errors = self.problems.iter().filter(|problem| problem.is_error).count();
        write!(f, "{errors} error{} in the configuration; nothing was changed", if errors == 1 { "" } else { "s" })
    }
}

impl std::error::Error for ConfigErrors {}

/// Why the operator's files could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file or the drop-in directory could not be read.
    #[error("read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file of a server is not there.
    #[error("there is no {}: write it; {example} has every key with its default, and so has the folder config of the sources", path.display())]
    Missing {
        /// Which.
        path: PathBuf,
        /// Where its package has one.
        example: String,
    },
    /// A file is not what it should be before its contents are looked at.
    #[error("{}: {detail}", path.display())]
    NotConfig {
        /// Which.
        path: PathBuf,
        /// What it is instead.
        detail: String,
    },
    /// Something in the files is wrong.
    #[error(transparent)]
    Invalid(#[from] ConfigErrors),
}
