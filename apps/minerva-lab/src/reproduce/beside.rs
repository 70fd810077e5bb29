//! A figure of a paper, what the simulator makes of it, and what real guests do.

use serde::Serialize;
use std::fmt::Write as _;

/// Columns of text that a terminal shows without breaking words.
const COLUMNS: usize = 118;
const INDENT: usize = 13;

/// Who served the requests of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum By {
    Guests,
    Simulator,
}

impl By {
    /// For people.
    pub(crate) const fn told(self) -> &'static str {
        match self {
            Self::Guests => "guests",
            Self::Simulator => "simulator",
        }
    }
}

/// One figure.
pub(crate) struct Beside {
    pub(crate) figure: &'static str,
    pub(crate) paper: &'static str,
    /// None where no arm of this run shows it.
    pub(crate) simulator: Option<String>,
    pub(crate) guests: Option<String>,
    /// Whether the guests show what the paper does.
    pub(crate) agrees: Option<bool>,
    pub(crate) remark: &'static str,
}

/// All of them, for people.
pub(crate) fn text(besides: &[Beside]) -> String {
    let mut text = String::from("Figure by figure\n");
    for Beside { figure, paper, simulator, guests, agrees, remark } in besides {
        let found = match agrees {
            Some(true) => "agrees with the paper",
            Some(false) => "DIFFERS from the paper",
            None => "not played",
        };
        let not_played = || "not played".to_owned();
        let rows = [
            ("paper", (*paper).to_owned()),
            ("simulator", simulator.clone().unwrap_or_else(not_played)),
            ("guests", guests.clone().unwrap_or_else(not_played)),
            ("result", found.to_owned()),
            ("remark", (*remark).to_owned()),
        ];
        // Writing into a string cannot fail; so everywhere below.
        let _ = writeln!(text, "\n{figure}");
        for (head, row) in rows {
            for (number, line) in lines(&row).iter().enumerate() {
                let _ = writeln!(text, "  {:<11}{line}", if number == 0 { head } else { "" });
            }
        }
    }
    text
}

/// In lines of at most [`COLUMNS`], broken between words.
fn lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        match line.is_empty() {
            true => line.push_str(word),
            false if line.chars().count() + 1 + word.chars().count() <= COLUMNS - INDENT => {
                line.push(' ');
                line.push_str(word);
            }
            false => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{Beside, text};

    #[test]
    fn what_was_not_played_is_not_compared() {
        let beside = Beside {
            figure: "Fig. 1",
            paper: "up",
            simulator: Some("up ".repeat(60)),
            guests: None,
            agrees: None,
            remark: "",
        };
        let text = text(&[beside]);
        assert!(text.contains("  guests     not played\n  result     not played\n"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 118) && text.contains("\n             up up"), "{text}");
    }
}
