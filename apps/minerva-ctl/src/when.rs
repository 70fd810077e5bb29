//! `minerva-ctl when`: asks when an operation may begin, and waits until then.

use crate::figures::long_span;
use crate::output::{self, CommandStatus};
use crate::place::OperatorFile;
use crate::signals::{Came, Signals};
use crate::tenant;
use minerva_client::{Answer, Begun, Client, Coordinated, Error, Operation};
use serde::Serialize;
use std::time::Duration;

/// How long an end waits for the server to hear of it.
pub(crate) const TELL_MAX: Duration = Duration::from_secs(2);

/// The answer, for programs.
#[derive(Debug, Serialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
enum AnswerLine<'a> {
    Now { request_id: &'a str },
    Pool { request_id: &'a str },
    After { request_id: &'a str, slices: u32, slice_ns: u64 },
    Wait { request_id: &'a str, at_most_ns: Option<u64> },
}

/// The end of the wait, for programs.
#[derive(Debug, Serialize)]
struct BegunLine {
    /// `told`, `in-time` (its deadline has come), `unserved` (there is no server) or `in-pool`.
    begun: &'static str,
}

/// Prints the answer, and returns when the operation may begin. Whoever begins it then is another command: the server learns
/// of its end from what it sees.
pub(crate) async fn run(
    file: &OperatorFile,
    operation: Operation,
    wait: bool,
    json: bool,
) -> anyhow::Result<CommandStatus> {
    let mut signals = Signals::catch()?;
    let client = tenant::connect(file).await?;
    let ask = client.coordinate(operation);
    let coordinated = tokio::select! {
        answer = ask => match answer {
            Ok(coordinated) => coordinated,
            Err(error @ Error::Refused { .. }) => return tenant::found(error, json),
            Err(error) => return Err(error.into()),
        },
        came = signals.next() => return Ok(CommandStatus::Signalled(came.number)),
    };
    warn_of_absence(&client);
    let answer = coordinated.answer();
    print_answer(answer, coordinated.key(), json)?;
    let is_over = matches!(answer, Answer::Now | Answer::Pool);
    if !wait && !is_over {
        match answer {
            // Nobody is there to be called.
            Answer::Wait { .. } => give_up(coordinated).await,
            _ => coordinated.leave(),
        }
        return Ok(CommandStatus::Well);
    }
    // With an answer to begin, this only learns whether it was the server's.
    match until_begin(&client, coordinated, &mut signals).await {
        Ok((coordinated, begun)) => {
            coordinated.leave();
            if !is_over {
                print_begun(begun, json)?;
            }
            Ok(CommandStatus::Well)
        }
        Err(came) => Ok(CommandStatus::Signalled(came.number)),
    }
}

/// Waits until the operation may begin, and says if it does so because the server went away. A signal gives it up.
pub(crate) async fn until_begin(
    client: &Client,
    mut coordinated: Coordinated,
    signals: &mut Signals,
) -> Result<(Coordinated, Begun), Came> {
    let begun = tokio::select! {
        begun = coordinated.wait() => Ok(begun),
        came = signals.next() => Err(came),
    };
    match begun {
        Ok(begun) => {
            // Where there was none, that was said.
            if begun == Begun::Unserved && client.absence().is_none() {
                output::note("the server does not answer; going on without");
            }
            Ok((coordinated, begun))
        }
        Err(came) => {
            give_up(coordinated).await;
            Err(came)
        }
    }
}

/// It will not be done, whether the server hears of it or not.
pub(crate) async fn give_up(coordinated: Coordinated) {
    let _ = tokio::time::timeout(TELL_MAX, coordinated.cancel()).await;
}

/// Without a server everything begins at once, which a person should know.
pub(crate) fn warn_of_absence(client: &Client) {
    if let Some(reason) = client.absence() {
        output::note(&format!("{reason}; going on without"));
    }
}

fn print_answer(answer: Answer, key: &str, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&match answer {
            Answer::Now => AnswerLine::Now { request_id: key },
            Answer::Pool => AnswerLine::Pool { request_id: key },
            Answer::After { slices, slice } => {
                AnswerLine::After { request_id: key, slices, slice_ns: nanoseconds(slice) }
            }
            Answer::Wait { at_most } => AnswerLine::Wait { request_id: key, at_most_ns: at_most.map(nanoseconds) },
        });
    }
    output::text(&match answer {
        Answer::Now => "now\n".to_owned(),
        Answer::Pool => "pool\n".to_owned(),
        Answer::After { slices, slice } => {
            format!("in {slices} slices ({})\n", long_span(nanoseconds(slice.saturating_mul(slices))))
        }
        Answer::Wait { at_most: Some(span) } => format!("wait, at most {}\n", long_span(nanoseconds(span))),
        Answer::Wait { at_most: None } => "wait\n".to_owned(),
    })
}

fn print_begun(begun: Begun, json: bool) -> anyhow::Result<()> {
    let word = match begun {
        Begun::Told => "told",
        Begun::InTime => "in-time",
        Begun::Unserved => "unserved",
        Begun::InPool => "in-pool",
    };
    if json {
        return output::json(&BegunLine { begun: word });
    }
    output::text("now\n")
}

fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
