//! `minerva-ctl explain`: why a tenant has its shares.

use crate::moment;
use crate::output::{self, Verdict};
use crate::part;
use anyhow::anyhow;
use minerva_api::client::Operator;
use minerva_api::v1;
use serde::Serialize;

/// One line for programs.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Line<'a> {
    /// What the tenant takes part in now.
    Part { tenant: &'a str, part: &'a v1::Part },
    /// Its share of one disk.
    Explanation(&'a v1::Explanation),
    /// There is no share to explain.
    Nothing { tenant: &'a str, message: &'a str },
}

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
        && let Some((name, part)) = part_of(&mut client, &tenant).await?
    {
        if json {
            output::json(&Line::Part { tenant: &name, part: &part })?;
        } else {
            output::text(&format!("{name}: {}\n", part::full(&part)))?;
        }
    }
    for explanation in &answer.explanations {
        if json {
            output::json(&Line::Explanation(explanation))?;
        } else {
            output::text(&page(explanation))?;
        }
    }
    if answer.explanations.is_empty() {
        let message = format!("nothing was decided about {tenant} up to then: it has not used a steered disk");
        if json {
            output::json(&Line::Nothing { tenant: &tenant, message: &message })?;
        }
        eprintln!("{message}");
    }
    Ok(Verdict::found_if(answer.explanations.is_empty()))
}

/// What the tenant takes part in now, and its name.
async fn part_of(client: &mut Operator, asked: &str) -> anyhow::Result<Option<(String, v1::Part)>> {
    let slice = client.status(v1::StatusRequest {}).await?.into_inner().slice.unwrap_or_default();
    let path = asked.trim_matches('/');
    let is_asked = |tenant: &&v1::Tenant| tenant.name == asked || tenant.id == asked || tenant.cgroup == path;
    let tenant = slice.tenants.iter().find(is_asked);
    Ok(tenant.and_then(|tenant| Some((tenant.name.clone(), tenant.part.clone()?))))
}

fn page(explanation: &v1::Explanation) -> String {
    format!("{}  {}: {}\n", moment::show(explanation.unix_ns), explanation.tenant, explanation.text)
}

#[cfg(test)]
mod tests {
    use super::Line;
    use minerva_api::v1;

    #[test]
    fn each_line_for_programs_says_what_it_is() {
        let explanation = v1::Explanation { tenant: "copy".to_owned(), share: 7, ..v1::Explanation::default() };
        let part = v1::Part { level: "idle".to_owned(), ..v1::Part::default() };
        let line = |line: Line<'_>| serde_json::to_value(line).expect("an object");
        let explained = line(Line::Explanation(&explanation));
        assert_eq!((explained["kind"].as_str(), explained["tenant"].as_str()), (Some("explanation"), Some("copy")));
        let taking_part = line(Line::Part { tenant: "copy", part: &part });
        assert_eq!((taking_part["kind"].as_str(), taking_part["part"]["level"].as_str()), (Some("part"), Some("idle")));
        let nothing = line(Line::Nothing { tenant: "copy", message: "why" });
        assert_eq!((nothing["kind"].as_str(), nothing["message"].as_str()), (Some("nothing"), Some("why")));
    }
}
