//! `minerva-ctl reload`: the operator's file, read again by the daemon.

use crate::output::{self, CommandStatus};
use minerva_api::client::Operator;
use minerva_api::v1;

/// Asks and says what came of it; a refused file is a finding.
pub(crate) async fn run(mut client: Operator, json: bool) -> anyhow::Result<CommandStatus> {
    let answer = client.reload(v1::ReloadRequest {}).await?.into_inner();
    if json {
        output::json(&answer)?;
    } else {
        output::say(&answer.message);
    }
    Ok(CommandStatus::found_if(!answer.accepted))
}
