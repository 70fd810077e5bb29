//! What tenants say, for fuzzing: messages of every call, through the code that judges them.

use crate::{decode, request};
use minerva_api::v1;
use minerva_model::{Nanos, RequestId};
use prost::Message;

/// More than ten years are refused.
const SPAN_MAX: Nanos = Nanos::from_secs(10 * 365 * 86_400);

/// A call and its message: the first byte says which, the rest are the bytes of the message.
pub fn messages(input: &[u8]) {
    let [call, message @ ..] = input else { return };
    match call % 7 {
        0 => judge(message, set_level),
        1 => judge(message, set_schedule),
        2 => judge(message, boost),
        3 => judge(message, coordinate),
        4 => judge(message, report),
        5 => {
            judge(message, |one: v1::HoldDebtRequest| {
                let decode::PutOff { debt, within, .. } = decode::debt(one)?;
                within.into_iter().for_each(assert_span);
                assert_debt(&debt);
                Ok(())
            });
            judge(message, |one: v1::ReportDebtRequest| decode::debt_report(one).map(|debt| assert_debt(&debt)));
        }
        // Begin, Finish and Cancel are a key; HoldLevel is a level; HoldJob a job; Credits a number.
        _ => {
            judge(message, |one: v1::FinishRequest| decode::request_id(one.request_id).map(|id| assert_key(&id)));
            judge(message, |one: v1::HoldLevelRequest| decode::level(one.level).map(drop));
            judge(message, |one: v1::HoldJobRequest| {
                decode::job(one).map(|job| assert!(!job.name.is_empty() && job.bytes != Some(0)))
            });
            judge(message, |one: v1::CreditsRequest| {
                assert!(decode::entries_max(&one) <= 1000);
                Ok(())
            });
        }
    }
}

fn set_level(one: v1::SetLevelRequest) -> Result<(), request::Refusal> {
    let (level, lifetime) = decode::set_level(&one)?;
    assert_eq!(decode::level_number(level), one.level);
    if let decode::AskedLifetime::For(span) = lifetime {
        assert_span(span);
    }
    Ok(())
}

fn set_schedule(one: v1::SetScheduleRequest) -> Result<(), request::Refusal> {
    let (entries, _) = decode::schedule(one)?;
    assert!(entries.iter().all(|entry| entry.begin_minute < 1440 && entry.end_minute < 1440 && entry.days < 128));
    Ok(())
}

fn boost(one: v1::BoostRequest) -> Result<(), request::Refusal> {
    let decode::Purchase { id, amount, .. } = decode::boost(one)?;
    assert_key(&id);
    match amount {
        request::BoostAmount::Slices(slices) => assert!(slices > 0),
        request::BoostAmount::For(span) => assert_span(span),
    }
    Ok(())
}

fn coordinate(one: v1::CoordinateRequest) -> Result<(), request::Refusal> {
    let one = decode::coordinate(one)?;
    assert_key(&one.id);
    assert!((1..=1 << 60).contains(&one.size_bytes));
    if let Some(request::Within::Begin(span) | request::Within::Done(span)) = one.within {
        assert_span(span);
    }
    Ok(())
}

fn report(one: v1::ReportRequest) -> Result<(), request::Refusal> {
    decode::report(&one)?;
    assert!(one.processes.len() <= 256 && one.processes.iter().all(|process| process.files.len() <= 32));
    Ok(())
}

/// A message is judged; a refusal is a sentence that fits into the header that carries it.
fn judge<M: Message + Default>(bytes: &[u8], judge: impl FnOnce(M) -> Result<(), request::Refusal>) {
    let Ok(message) = M::decode(bytes) else { return };
    if let Err(refusal) = judge(message) {
        assert!((20..400).contains(&refusal.message.len()), "{}", refusal.message);
    }
}

fn assert_span(span: Nanos) {
    assert!(span > Nanos::ZERO && span <= SPAN_MAX);
}

fn assert_debt(debt: &request::Debt) {
    assert_span(debt.service);
    assert!(!debt.name.is_empty() && debt.done <= debt.service);
}

fn assert_key(id: &RequestId) {
    assert!((1..=64).contains(&id.0.len()) && !id.0.starts_with(RequestId::OWN_PREFIX));
    assert!(id.0.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
}
