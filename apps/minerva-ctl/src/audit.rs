//! `minerva-ctl audit`: what tenants asked for, what they were answered, and every credit earned and spent.

use crate::daemon::answered;
use crate::figures::table;
use crate::moment;
use crate::output::{self, CommandStatus};
use anyhow::anyhow;
use minerva_api::client::Operator;
use minerva_api::v1;
use minerva_model::MicroCredits;

/// Asks and prints, oldest first.
pub(crate) async fn run(
    mut client: Operator,
    tenant: Option<String>,
    since: Option<String>,
    entries_max: u32,
    json: bool,
) -> anyhow::Result<CommandStatus> {
    let since =
        since.map(|text| moment::parse(&text, &jiff::Zoned::now())).transpose().map_err(|error| anyhow!(error))?;
    let since_unix_ns = since.and_then(|instant| i64::try_from(instant.as_nanosecond()).ok());
    let request = v1::AuditRequest { tenant: tenant.unwrap_or_default(), since_unix_ns, entries_max };
    let mut answers = answered(client.audit(request)).await?.into_inner();
    let mut rows = Vec::new();
    while let Some(answer) = answers.message().await? {
        let entry = answer.entry.unwrap_or_default();
        if json {
            output::json(&entry)?;
        } else {
            rows.push(row(&entry));
        }
    }
    if !json && rows.is_empty() {
        output::say("nobody asked for anything, and no credits were earned");
    } else if !json {
        output::text(&table(&["TIME", "TENANT", "WHAT", "CREDITS", "REQUEST", "TEXT"], &rows, &[3]))?;
    }
    Ok(CommandStatus::Well)
}

fn row(entry: &v1::AuditEntry) -> Vec<String> {
    let who = if entry.tenant.is_empty() { &entry.account } else { &entry.tenant };
    let credits = entry.micro_credits.map_or_else(String::new, |amount| MicroCredits(amount).to_string());
    vec![
        moment::show(entry.unix_ns),
        who.clone(),
        entry.kind.clone(),
        credits,
        entry.request_id.clone(),
        entry.text.clone(),
    ]
}
