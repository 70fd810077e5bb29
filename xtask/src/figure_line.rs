//! One line of a figure, as every measurement prints it.

use serde::{Deserialize, Serialize};

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

impl Line {
    pub(crate) fn not_measured(id: &str, why: &str) -> Self {
        let (value, goal) = (serde_json::Value::Null, serde_json::Value::Null);
        Self { id: id.to_owned(), value, unit: String::new(), goal, met: false, detail: format!("not measured: {why}") }
    }
}
