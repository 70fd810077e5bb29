//! `minerva-ctl explain`: why a tenant has its shares.

use crate::moment;
use crate::output::{self, Verdict};
use crate::part;
use anyhow::anyhow;
use minerva_api::client::Operator;
use minerva_api::v1;

/// Asks and prints one explanation a disk.
pub(crate) async fn run(
    mut client: Operator,
    tenant: String,
    at: Option<String>,
    json: bool,
) -> anyhow::Result<Verdict> {
    let instant =
        at.map(|text| moment::parse(&text, &jiff::Zoned::now())).transpose().map_err(|error| anyhow!(error))?;
    let at_unix_ns = instant.and_then(|instant| i64::try_from(instant.as_nanosecond()).ok());
    let answer = client.explain(v1::ExplainRequest { tenant: tenant.clone(), at_unix_ns }).await?.into_inner();
    if instant.is_none()
        && !json
        && let Some(part) = part_of(&mut client, &tenant).await?
    {
        output::text(&format!("{part}\n"))?;
    }
    for explanation in &answer.explanations {
        if json {
            output::json(explanation)?;
        } else {
            output::text(&page(explanation))?;
        }
    }
    if answer.explanations.is_empty() {
        eprintln!("nothing was decided about {tenant} up to then: it has not used a steered disk");
    }
    Ok(Verdict::found_if(answer.explanations.is_empty()))
}

/// What the tenant takes part in now, as a line.
async fn part_of(client: &mut Operator, asked: &str) -> anyhow::Result<Option<String>> {
    let slice = client.status(v1::StatusRequest {}).await?.into_inner().slice.unwrap_or_default();
    let path = asked.trim_matches('/');
    let is_asked = |tenant: &&v1::Tenant| tenant.name == asked || tenant.id == asked || tenant.cgroup == path;
    let tenant = slice.tenants.iter().find(is_asked);
    Ok(tenant.and_then(|tenant| Some(format!("{}: {}", tenant.name, part::full(tenant.part.as_ref()?)))))
}

fn page(explanation: &v1::Explanation) -> String {
    format!("{}  {}: {}\n", moment::show(explanation.unix_ns), explanation.tenant, explanation.text)
}
