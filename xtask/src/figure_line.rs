//! One line of a figure, as every measurement prints it.

use crate::skips;
use serde::{Deserialize, Serialize};

/// What a line that tells of a part that was left out begins with, besides a test's.
const NOT_MEASURED: &str = "not measured: ";

/// One measured line. A measurement may print several for one id, one a condition.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) id: String,
    pub(crate) value: serde_json::Value,
    pub(crate) unit: String,
    pub(crate) goal: serde_json::Value,
    pub(crate) met: bool,
    pub(crate) detail: String,
}

/// How a program that measures ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Succeeded,
    /// It did not measure all: it fails for nothing else.
    Failed,
    /// It failed, as it also does when a goal that it printed was missed.
    FailedOrMissed,
}

impl End {
    /// Of a program that also fails when a goal is missed, or does not.
    pub(crate) const fn of(has_succeeded: bool, fails_on_a_miss: bool) -> Self {
        match (has_succeeded, fails_on_a_miss) {
            (true, _) => Self::Succeeded,
            (false, true) => Self::FailedOrMissed,
            (false, false) => Self::Failed,
        }
    }
}

impl Line {
    pub(crate) fn not_measured(id: &str, why: &str) -> Self {
        let (value, goal) = (serde_json::Value::Null, serde_json::Value::Null);
        Self { id: id.to_owned(), value, unit: String::new(), goal, met: false, detail: format!("{NOT_MEASURED}{why}") }
    }

    /// The figure's lines. A part that the program left out is one that was not measured, and so is what one that ended in `end` did not
    /// get to; what it said last is why.
    pub(crate) fn judged(id: &str, printed: &str, end: End, told: &str) -> Vec<Self> {
        let line = |text: &str| {
            let left_out = || skips::reason(text).or_else(|| text.trim_start().strip_prefix(NOT_MEASURED));
            match serde_json::from_str(text) {
                Ok(line) => Some(line),
                // A condition that it measured and could not tell, such as a number that is none.
                Err(error) if text.trim_start().starts_with('{') => {
                    Some(Self::not_measured(id, &format!("it printed `{}`, which is no line: {error}", text.trim())))
                }
                Err(_) => left_out().map(|why| Self::not_measured(id, why)),
            }
        };
        let mut lines: Vec<Self> = printed.lines().filter_map(line).collect();
        let is_incomplete = match end {
            End::Succeeded => false,
            End::Failed => true,
            End::FailedOrMissed => lines.iter().all(|line| line.met),
        };
        if lines.is_empty() || is_incomplete {
            lines.push(Self::not_measured(id, told));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::{End, Line};

    #[test]
    fn a_figure_that_could_not_be_measured_says_why() {
        let met = r#"{"id":"weights-bite","value":8.1,"unit":"ratio","goal":"8","met":true,"detail":"v1"}"#;
        let missed = &met.replace("true", "false");
        let why = "Error: no /dev/fuse; modprobe fuse";
        // What was printed, how the program ended, how many lines come of it, and whether the last was not measured.
        let table = [
            (met, End::Succeeded, 1, false),
            (missed, End::Succeeded, 1, false),
            (missed, End::FailedOrMissed, 1, false),
            (met, End::FailedOrMissed, 2, true),
            // One that missed a goal and then ended has not measured the rest.
            (missed, End::Failed, 2, true),
            (met, End::Failed, 2, true),
            ("", End::Failed, 1, true),
            ("?", End::Succeeded, 1, true),
        ];
        let left_out =
            |line: &str| Line::judged("golden", &format!("{line}: needs shared/data\n{met}"), End::Succeeded, "");
        for line in ["skipped", "not measured"] {
            let lines = left_out(line);
            assert_eq!(lines.iter().map(|line| line.met).collect::<Vec<_>>(), [false, true]);
            assert!(lines[0].value.is_null() && lines[0].detail.contains("needs shared/data"), "{}", lines[0].detail);
        }
        for (printed, end, count, unmeasured) in table {
            let lines = Line::judged("weights-bite", printed, end, why);
            let last = lines.last().expect("a line");
            assert_eq!((lines.len(), last.value.is_null()), (count, unmeasured), "{printed}");
            if unmeasured {
                let text = serde_json::to_string(last).expect("JSON");
                assert!(text.contains(r#""value":null"#) && text.contains(r#""met":false"#), "{text}");
                assert!(last.detail.contains("modprobe fuse"), "{text}");
            }
        }
    }

    #[test]
    fn a_condition_that_cannot_be_read_is_not_measured() {
        let met = r#"{"id":"blk-speed","value":8.1,"unit":"ratio","goal":"8","met":true,"detail":"v1"}"#;
        // A number that is none, a quote within a text, a key that is not there, and half a line.
        let table =
            [met.replace("8.1", "NaN"), met.replace("v1", "\"v1\""), met.replace("unit", "u"), met[..9].to_owned()];
        for bad in table {
            for end in [End::Succeeded, End::FailedOrMissed] {
                let lines = Line::judged("blk-speed", &format!("{met}\n  {bad}\n{met}"), end, "");
                assert_eq!(lines.iter().map(|line| line.met).collect::<Vec<_>>(), [true, false, true], "{bad}");
                assert!(lines[1].value.is_null() && lines[1].detail.contains(&bad), "{}", lines[1].detail);
            }
        }
    }
}
