//! What a tenant asks for itself: `priority`, `credits`, `boost`, `whoami`. Who asks, the server finds out; no root is needed.

use crate::figures::{long_span, table};
use crate::moment;
use crate::output::{self, CommandStatus};
use crate::place::OperatorFile;
use crate::quantity::schedule_text;
use anyhow::{Context, anyhow};
use minerva_client::{BoostAmount, Client, Error, Level, Lifetime, Options, v1};
use minerva_model::{MicroCredits, RequestId};
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// What to do about one's priority.
#[derive(Debug)]
pub(crate) struct Priority {
    pub(crate) level: Option<Level>,
    pub(crate) lifetime: Lifetime,
    /// Absent: leave the schedule alone.
    pub(crate) schedule: Option<Vec<v1::ScheduleEntry>>,
    /// Absent: this machine's.
    pub(crate) time_zone: Option<String>,
}

/// Until when a level is to last.
pub(crate) fn lifetime(duration: Option<Duration>, until_pid: Option<u32>) -> Lifetime {
    match (duration, until_pid) {
        (Some(span), _) => Lifetime::For(span),
        (None, Some(pid)) => Lifetime::Process(pid),
        (None, None) => Lifetime::UntilReleased,
    }
}

/// Connects as the environment says; on a host whose operator has put the socket elsewhere, there.
pub(crate) async fn connect(file: &OperatorFile) -> anyhow::Result<Client> {
    let mut options = Options::from_environment()?;
    let config = match (file.load(), file) {
        (Ok(config), _) => Some(config),
        (Err(error), OperatorFile::Named(_)) => return Err(error),
        // A broken file is the operator's business, and so is one that this user may not read.
        (Err(_), OperatorFile::Default) => None,
    };
    if let Some(socket) = config.and_then(|config| config.participation.socket)
        && !options.sockets.contains(&socket)
    {
        options.sockets.insert(0, socket);
    }
    // Each command has its own words for it.
    options.quiet = true;
    Ok(options.connect().await?)
}

/// As [`connect`], for what cannot be done without a server.
pub(crate) async fn connect_to_server(file: &OperatorFile) -> anyhow::Result<Client> {
    let client = connect(file).await?;
    ensure_served(&client)?;
    Ok(client)
}

/// Behind an agent, an answer shows whether there is a server: without one it is nobody's.
fn ensure_served(client: &Client) -> anyhow::Result<()> {
    match client.absence() {
        Some(reason) => Err(anyhow!("{reason}: is minervad running? MINERVA_ADDRESS names a server elsewhere")),
        None => Ok(()),
    }
}

/// A refusal, for programs.
#[derive(Debug, Serialize)]
struct RefusalLine<'a> {
    refusal: &'a str,
    message: String,
}

/// A refusal of the server is a finding, everything else a failure.
pub(crate) fn found(error: Error, json: bool) -> anyhow::Result<CommandStatus> {
    let Error::Refused { word, message, .. } = &error else { return Err(error.into()) };
    if json {
        output::json(&RefusalLine { refusal: word, message: message.clone() })?;
    }
    output::note(message);
    Ok(CommandStatus::Found)
}

/// The level in force, for programs.
#[derive(Debug, Serialize)]
struct LevelLine {
    level: &'static str,
}

/// Sets the level, the schedule, or both; tells the level in force.
pub(crate) async fn priority(file: &OperatorFile, wanted: Priority, json: bool) -> anyhow::Result<CommandStatus> {
    let client = connect_to_server(file).await?;
    let mut in_force = Ok(Level::Normal);
    if let Some(level) = wanted.level {
        in_force = client.set_level(level, wanted.lifetime).await;
    }
    if let (Ok(_), Some(entries)) = (&in_force, wanted.schedule) {
        let own = || jiff::tz::TimeZone::system().iana_name().unwrap_or_default().to_owned();
        in_force = client.set_schedule(&entries, &wanted.time_zone.unwrap_or_else(own)).await;
    }
    ensure_served(&client)?;
    match in_force {
        Ok(level) if json => output::json(&LevelLine { level: level.as_str() })?,
        Ok(level) => output::text(&format!("{level}\n"))?,
        Err(error) => return found(error, json),
    }
    Ok(CommandStatus::Well)
}

/// What the account holds, and its last entries.
pub(crate) async fn credits(file: &OperatorFile, entries_max: u32, json: bool) -> anyhow::Result<CommandStatus> {
    let client = connect_to_server(file).await?;
    let answer = match client.credits(entries_max).await {
        Ok(answer) => answer,
        Err(error) => return found(error, json),
    };
    ensure_served(&client)?;
    if json {
        output::json(&answer)?;
    } else {
        output::text(&credits_page(&answer))?;
    }
    Ok(CommandStatus::Well)
}

fn credits_page(credits: &v1::CreditsResponse) -> String {
    let held = MicroCredits(credits.held_micro_credits);
    let price = MicroCredits(credits.slice_price_micro_credits);
    let affordable = credits.held_micro_credits.checked_div(credits.slice_price_micro_credits).unwrap_or_default();
    let mut text = format!("held:      {held}");
    if affordable > 0 {
        let span = long_span(affordable.saturating_mul(credits.slice_ns));
        // Writing into a string cannot fail.
        let _ = write!(text, ", enough for {affordable} boosted slices ({span})");
    }
    let _ = writeln!(text, "\naccruing:  {}", MicroCredits(credits.accruing_micro_credits));
    let _ = writeln!(text, "price:     {price} a slice");
    if !credits.entries.is_empty() {
        let rows: Vec<Vec<String>> = credits.entries.iter().map(entry_row).collect();
        let _ = write!(text, "\n{}", table(&["TIME", "WHAT", "CREDITS", "REQUEST"], &rows, &[2]));
    }
    text
}

fn entry_row(entry: &v1::CreditEntry) -> Vec<String> {
    let amount = MicroCredits(entry.micro_credits).to_string();
    let is_moved = entry.request_id.starts_with(RequestId::MOVED_PREFIX);
    let kind = if is_moved { format!("{}, by files moved in gaps", entry.kind) } else { entry.kind.clone() };
    vec![moment::show(entry.unix_ns), kind, amount, entry.request_id.clone()]
}

/// Buys high priority.
pub(crate) async fn boost(
    file: &OperatorFile,
    amount: BoostAmount,
    device: Option<&str>,
    key: Option<String>,
    json: bool,
) -> anyhow::Result<CommandStatus> {
    let client = connect_to_server(file).await?;
    let key = key.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let bought = match client.boost_as(&key, amount, device).await {
        Ok(bought) => bought,
        Err(Error::Unreachable { address, waited, source, .. }) => {
            return Err(anyhow!(
                "no answer from {address} within {} s ({}): is minervad running? It may have been bought, and with `--key {key}` it is \
                 not bought twice",
                waited.as_secs(),
                source.message()
            ));
        }
        Err(error) => return found(error, json),
    };
    ensure_served(&client)?;
    if json {
        output::json(&bought)?;
    } else {
        let (price, left) = (MicroCredits(bought.price_micro_credits), MicroCredits(bought.held_micro_credits));
        output::text(&format!("boosted for {} slices: {price} credits spent, {left} left\n", bought.slices))?;
    }
    Ok(CommandStatus::Well)
}

/// Who the server takes the caller for, and what is in force for it.
pub(crate) async fn whoami(file: &OperatorFile, json: bool) -> anyhow::Result<CommandStatus> {
    let client = connect_to_server(file).await?;
    let who = match client.describe().await {
        Ok(who) => who,
        Err(error) => return found(error, json),
    };
    ensure_served(&client)?;
    if json {
        output::json(&with_words(&who)?)?;
    } else {
        output::text(&who_page(&who, &client.address().unwrap_or_default()))?;
    }
    Ok(CommandStatus::Well)
}

/// The message with words for its levels.
fn with_words(who: &v1::DescribeResponse) -> anyhow::Result<serde_json::Value> {
    let mut value = serde_json::to_value(who).context("failed to turn the answer into JSON")?;
    value["level"] = Level::from_wire(who.level).as_str().into();
    for (entry, known) in who.schedule.iter().zip(value["schedule"].as_array_mut().into_iter().flatten()) {
        known["level"] = Level::from_wire(entry.level).as_str().into();
    }
    Ok(value)
}

fn who_page(who: &v1::DescribeResponse, address: &str) -> String {
    let mut text = String::new();
    let until = who.level_left_ns.map_or_else(String::new, |left| format!(" for {}", long_span(left)));
    let mode = if who.mode == "enforce" { String::new() } else { format!(", {}: nothing is steered", who.mode) };
    // Writing into a string cannot fail.
    let _ = writeln!(text, "tenant:    {} (known by {}, role {})", who.tenant, who.identified_by, who.role);
    let _ = writeln!(text, "server:    minervad {} at {address}{mode}", who.version);
    let _ = writeln!(text, "level:     {}{until}", Level::from_wire(who.level));
    for entry in &who.schedule {
        let _ = writeln!(text, "schedule:  {}", schedule_text(entry));
    }
    let _ = writeln!(text, "credits:   {}", MicroCredits(who.held_micro_credits));
    for boost in &who.boosts {
        let disk = if boost.device.is_empty() { "every disk" } else { &boost.device };
        let _ = writeln!(text, "boost:     {} slices left on {disk}", boost.slices_left);
    }
    for operation in &who.operations {
        let stage = if operation.begun { "under way" } else { "waits" };
        let _ = writeln!(text, "operation: {} of {} bytes {stage}", operation.request_id, operation.size_bytes);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{credits_page, who_page, with_words};
    use minerva_client::v1;

    #[test]
    fn credits_say_what_they_buy() {
        let credits = v1::CreditsResponse {
            held_micro_credits: 2_510_500_000,
            accruing_micro_credits: 3_000_000,
            slice_price_micro_credits: 25_000_000,
            slice_ns: 1_000_000_000,
            entries: vec![v1::CreditEntry {
                kind: "spent".to_owned(),
                micro_credits: 50_000_000,
                ..Default::default()
            }],
        };
        let moved = v1::CreditEntry {
            kind: "earned".to_owned(),
            request_id: "minerva:moved-5e".to_owned(),
            ..Default::default()
        };
        let of_cache = credits_page(&v1::CreditsResponse { entries: vec![moved], ..Default::default() });
        assert!(of_cache.contains("earned, by files moved in gaps"), "{of_cache}");
        let text = credits_page(&credits);
        assert!(text.starts_with("held:      2510.5, enough for 100 boosted slices (1 min 40 s)\n"), "{text}");
        assert!(text.contains("price:     25 a slice"), "{text}");
        assert!(text.contains("  spent       50"), "{text}");
        assert!(credits_page(&v1::CreditsResponse::default()).starts_with("held:      0\n"));
    }

    #[test]
    fn whoami_speaks_in_words() {
        let who = v1::DescribeResponse {
            tenant: "db".to_owned(),
            identified_by: "cgroup".to_owned(),
            role: "participant".to_owned(),
            mode: "shadow".to_owned(),
            level: v1::Level::Low.into(),
            level_left_ns: Some(60_000_000_000),
            schedule: vec![v1::ScheduleEntry { begin_minute: 60, end_minute: 90, days: 1, level: 4 }],
            ..v1::DescribeResponse::default()
        };
        let text = who_page(&who, "unix:/a");
        assert!(text.contains("db (known by cgroup, role participant)"), "{text}");
        assert!(text.contains("shadow: nothing is steered"), "{text}");
        assert!(text.contains("level:     low for 1 min 0 s"), "{text}");
        assert!(text.contains("schedule:  mon 01:00-01:30 idle"), "{text}");
        let value = with_words(&who).expect("JSON");
        assert_eq!((value["level"].as_str(), value["schedule"][0]["level"].as_str()), (Some("low"), Some("idle")));
    }
}
