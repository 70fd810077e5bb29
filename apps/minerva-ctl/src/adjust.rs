//! `minerva-ctl credits give` and `take`: what the operator gives accounts and takes from them.

use crate::arguments::{Adjusted, CreditsCommand};
use crate::output::{self, CommandStatus};
use anyhow::anyhow;
use minerva_api::client::Operator;
use minerva_api::v1;
use minerva_api::v1::adjust_credits_request::Change;
use minerva_model::MicroCredits;
use tonic::Code;

/// Asks and says what the account holds then; a refusal is a finding.
pub(crate) async fn run(mut client: Operator, command: CreditsCommand, json: bool) -> anyhow::Result<CommandStatus> {
    let (change, Adjusted { tenant, reason, key, .. }) = match command {
        CreditsCommand::Give(adjusted) => (Change::GiveMicroCredits(adjusted.amount.0), adjusted),
        CreditsCommand::Take(adjusted) => (Change::TakeMicroCredits(adjusted.amount.0), adjusted),
    };
    let request_id = key.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let request = v1::AdjustCreditsRequest {
        request_id: request_id.clone(),
        tenant,
        change: Some(change),
        reason: reason.unwrap_or_default(),
    };
    match client.adjust_credits(request).await.map(tonic::Response::into_inner) {
        Ok(answer) if json => output::json(&answer)?,
        Ok(answer) => {
            output::text(&format!("{} holds {} credits\n", answer.account, MicroCredits(answer.held_micro_credits)))?;
        }
        Err(status) if is_refusal(status.code()) => {
            if json {
                output::json(&serde_json::json!({ "refusal": status.message() }))?;
            }
            output::note(status.message());
            return Ok(CommandStatus::Found);
        }
        Err(status) => {
            return Err(anyhow!(
                "no answer that counts: {}; it may have been done, and with `--key {request_id}` it is not done twice",
                status.message()
            ));
        }
    }
    Ok(CommandStatus::Well)
}

/// Nothing was changed, and asking again would not help.
const fn is_refusal(code: Code) -> bool {
    matches!(
        code,
        Code::NotFound
            | Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::ResourceExhausted
    )
}
