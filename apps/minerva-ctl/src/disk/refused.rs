//! What a server refuses is a finding, which its sentence says what to do about, and no failure of the command.

use crate::output::{self, CommandStatus};
use std::fmt;

/// The server's own sentence.
#[derive(Debug)]
pub(super) struct Refused(pub(super) String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused: {}", self.0)
    }
}

impl std::error::Error for Refused {}

/// Says a refusal, which becomes exit status 1; everything else is as it was.
pub(super) fn is_a_finding(done: anyhow::Result<CommandStatus>, json: bool) -> anyhow::Result<CommandStatus> {
    let error = match done {
        Err(error) => error,
        well => return well,
    };
    let Some(refused) = error.downcast_ref::<Refused>() else { return Err(error) };
    if json {
        output::json(&serde_json::json!({ "refusal": refused.0 }))?;
    }
    output::note(&refused.to_string());
    Ok(CommandStatus::Found)
}
