//! `minerva-ctl explain`: why a tenant has its shares.

use crate::disk_name;
use crate::forecast;
use crate::moment;
use crate::output::{self, CommandStatus};
use crate::part;
use anyhow::anyhow;
use minerva_api::client::Operator;
use minerva_api::v1;
use serde::Serialize;

/// Why nothing was decided about most tenants about which nothing was.
const NOT_USED: &str = "it has not used a steered disk";

/// One line for programs.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Line<'a> {
    /// What the tenant takes part in now.
    Part { tenant: &'a str, part: &'a v1::Part },
    /// Its share of one disk.
    Explanation(&'a v1::Explanation),
    /// What it is expected to do on one disk now.
    Forecast { tenant: &'a str, device: &'a str, device_name: &'a str, forecast: &'a v1::Forecast },
    /// What a disk that it uses, or its group, is expected to do within a day or a week.
    Ahead { of: &'a str, ahead: &'a v1::LoadAhead },
    /// There is no share to explain.
    Nothing { tenant: &'a str, message: &'a str },
}

/// Asks and prints one explanation a disk.
pub(crate) async fn run(
    mut client: Operator,
    tenant: String,
    at: Option<String>,
    json: bool,
) -> anyhow::Result<CommandStatus> {
    let instant =
        at.map(|text| moment::parse(&text, &jiff::Zoned::now())).transpose().map_err(|error| anyhow!(error))?;
    let at_unix_ns = instant.and_then(|instant| i64::try_from(instant.as_nanosecond()).ok());
    let answer = client.explain(v1::ExplainRequest { tenant: tenant.clone(), at_unix_ns }).await?.into_inner();
    let present = if instant.is_none() { present(&mut client, &tenant).await? } else { None };
    if let Some((slice, tenant)) = &present {
        let lines = as_it_is(slice, tenant);
        if json {
            lines.iter().try_for_each(output::json)?;
        } else {
            output::text(&lines.iter().map(words).collect::<String>())?;
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
        let why = present.map_or(NOT_USED, |(slice, tenant)| why_not(&slice, &tenant));
        let message = format!("nothing was decided about {tenant} up to then: {why}");
        if json {
            output::json(&Line::Nothing { tenant: &tenant, message: &message })?;
        }
        output::say(&message);
    }
    Ok(CommandStatus::found_if(answer.explanations.is_empty()))
}

/// Why nothing is decided about a tenant as it is now.
fn why_not(slice: &v1::Slice, tenant: &v1::Tenant) -> &'static str {
    match slice.mode.as_str() {
        "observe" => "the mode is observe, in which nothing is decided",
        _ if tenant.excluded => "a rule of the operator's file excludes it",
        _ => NOT_USED,
    }
}

/// The tenant as it is now, and the slice that says so.
async fn present(client: &mut Operator, asked: &str) -> anyhow::Result<Option<(v1::Slice, v1::Tenant)>> {
    let mut slice = client.status(v1::StatusRequest {}).await?.into_inner().slice.unwrap_or_default();
    let path = asked.trim_matches('/');
    let is_asked = |tenant: &v1::Tenant| tenant.name == asked || tenant.id == asked || tenant.cgroup == path;
    let found = std::mem::take(&mut slice.tenants).into_iter().find(is_asked);
    Ok(found.map(|tenant| (slice, tenant)))
}

/// What it takes part in, and what it is expected to do.
fn as_it_is<'a>(slice: &'a v1::Slice, tenant: &'a v1::Tenant) -> Vec<Line<'a>> {
    let name = &tenant.name;
    let part = tenant.part.iter().map(|part| Line::Part { tenant: name, part });
    let forecasts = tenant.uses.iter().flat_map(|used| {
        let (device, device_name) = (used.device.as_str(), disk_name::of(slice, &used.device));
        used.forecasts.iter().map(move |forecast| Line::Forecast { tenant: name, device, device_name, forecast })
    });
    let disks = slice.devices.iter().filter(|disk| tenant.uses.iter().any(|used| used.device == disk.number));
    let disks = disks.flat_map(|disk| disk.ahead.iter().map(|ahead| Line::Ahead { of: &disk.name, ahead }));
    let group = slice.groups.iter().filter(|group| group.name == tenant.group);
    let group = group.flat_map(|group| group.ahead.iter().map(|ahead| Line::Ahead { of: &group.name, ahead }));
    part.chain(forecasts).chain(disks).chain(group).collect()
}

fn words(line: &Line<'_>) -> String {
    match line {
        Line::Part { tenant, part } => format!("{tenant}: {}\n", part::full(part)),
        Line::Forecast { tenant, device_name, forecast, .. } => {
            format!("{tenant} on {device_name}, expected: {}\n", forecast::sentence(forecast))
        }
        Line::Ahead { of, ahead } => format!("{of} as a whole, expected: {}\n", forecast::sentence_ahead(ahead)),
        Line::Explanation(explanation) => page(explanation),
        Line::Nothing { message, .. } => format!("{message}\n"),
    }
}

fn page(explanation: &v1::Explanation) -> String {
    let v1::Explanation { unix_ns, tenant, text, cgroup, .. } = explanation;
    let then = if cgroup.is_empty() { String::new() } else { format!(" (then in {cgroup})") };
    format!("{}  {tenant}{then}: {text}\n", moment::show(*unix_ns))
}

#[cfg(test)]
mod tests {
    use super::Line;
    use minerva_api::v1;

    #[test]
    fn why_nothing_is_decided_is_the_mode_a_rule_or_that_no_disk_was_used() {
        let why = |mode: &str, excluded| {
            let slice = v1::Slice { mode: mode.to_owned(), ..v1::Slice::default() };
            super::why_not(&slice, &v1::Tenant { excluded, ..v1::Tenant::default() })
        };
        assert!(why("observe", false).contains("mode is observe") && why("observe", true).contains("mode is observe"));
        assert!(why("enforce", true).contains("excludes it"));
        assert_eq!(why("shadow", false), super::NOT_USED);
    }

    #[test]
    fn each_line_for_programs_says_what_it_is() {
        let explanation = v1::Explanation { tenant: "copy".to_owned(), share: 7, ..v1::Explanation::default() };
        let part = v1::Part { level: "idle".to_owned(), ..v1::Part::default() };
        let line = |line: Line<'_>| serde_json::to_value(line).expect("an object");
        let explained = line(Line::Explanation(&explanation));
        assert_eq!((explained["kind"].as_str(), explained["tenant"].as_str()), (Some("explanation"), Some("copy")));
        let taking_part = line(Line::Part { tenant: "copy", part: &part });
        assert_eq!((taking_part["kind"].as_str(), taking_part["part"]["level"].as_str()), (Some("part"), Some("idle")));
        let expected = v1::Forecast { horizon: "pattern".to_owned(), skill: 0.5, ..v1::Forecast::default() };
        let used = v1::Use { device: "8:0".to_owned(), forecasts: vec![expected], ..v1::Use::default() };
        let gone = v1::Use { device: "8:16".to_owned(), ..used.clone() };
        let tenant = v1::Tenant { name: "copy".to_owned(), uses: vec![used, gone], ..v1::Tenant::default() };
        let disk = v1::Device { number: "8:0".to_owned(), name: "sda".to_owned(), ..v1::Device::default() };
        let slice = v1::Slice { devices: vec![disk], ..v1::Slice::default() };
        let lines = super::as_it_is(&slice, &tenant);
        let expected = "expected: next 15 s: reads nothing, writes nothing, busy with a probability of 0 %, skill 0.50, not seen by decisions";
        assert_eq!(
            lines.iter().map(super::words).collect::<String>(),
            format!("copy on sda, {expected}\ncopy on 8:16, {expected}\n"),
            "a disk has its kernel name as long as it is there"
        );
        let foreseen = serde_json::to_value(&lines[0]).expect("an object");
        assert_eq!((foreseen["kind"].as_str(), foreseen["device"].as_str()), (Some("forecast"), Some("8:0")));
        assert_eq!(foreseen["device_name"].as_str(), Some("sda"));
        let day = v1::LoadAhead { horizon: "day".to_owned(), ..v1::LoadAhead::default() };
        let slice = v1::Slice {
            devices: vec![v1::Device { ahead: vec![day.clone()], ..slice.devices[0].clone() }],
            groups: ["web", "mail"].map(|name| v1::Group { name: name.to_owned(), ahead: vec![day.clone()] }).into(),
            ..v1::Slice::default()
        };
        let tenant = v1::Tenant { group: "web".to_owned(), ..tenant };
        let wholes: String = super::as_it_is(&slice, &tenant)[2..].iter().map(super::words).collect();
        let expected = "as a whole, expected: next day: reads nothing, writes nothing, skill not measured yet";
        assert_eq!(wholes, format!("sda {expected}\nweb {expected}\n"), "its disk and its group, and no other");
        let nothing = line(Line::Nothing { tenant: "copy", message: "why" });
        assert_eq!((nothing["kind"].as_str(), nothing["message"].as_str()), (Some("nothing"), Some("why")));
    }
}
