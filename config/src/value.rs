//! One value against the kind of its key.

use crate::key::{Kind, duration_text, size_text};
use minerva_model::Nanos;
use minerva_quantity::{QuantityError, parse_duration, parse_size};
use std::ops::Range;
use toml::Spanned;
use toml::de::DeValue;

/// What is wrong with one value.
pub(crate) struct Wrong {
    pub(crate) span: Range<usize>,
    pub(crate) label: String,
    pub(crate) help: Option<String>,
}

/// Sets a value of this kind, or says what is wrong with it.
pub(crate) fn judge_value<T>(kind: &Kind<T>, spanned: &Spanned<DeValue<'_>>, into: &mut T) -> Result<(), Wrong> {
    let value = spanned.get_ref();
    let wrong = |label: String, help: Option<String>| Wrong { span: spanned.span(), label, help };
    let expected = |what: &str| wrong(format!("expected {what}, found {}", found(value)), None);
    match kind {
        Kind::Duration { least, most, set } => {
            let form = "a duration such as \"500ms\", \"1s\" or \"6h\"";
            let text = value.as_str().ok_or_else(|| expected(form))?;
            let parsed = parse_duration(text).map_err(|error| match error {
                QuantityError::NoDuration { why, .. } => wrong(why, Some(format!("write {form}"))),
                error => wrong(error.to_string(), None),
            })?;
            let nanos = Nanos(u64::try_from(parsed.as_nanos()).unwrap_or(u64::MAX));
            let range = || wrong(format!("not in {} to {}", duration_text(*least), duration_text(*most)), None);
            (*least..=*most).contains(&nanos).then(|| set(into, nanos)).ok_or_else(range)
        }
        Kind::Whole { least, most, set } => {
            let integer = value.as_integer().ok_or_else(|| expected("a whole number"))?;
            let number = i128::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(i128::MAX);
            let inside = u64::try_from(number).ok().filter(|number| (*least..=*most).contains(number));
            inside.map(|number| set(into, number)).ok_or_else(|| wrong(format!("not in {least} to {most}"), None))
        }
        Kind::Size { least, most, set } => {
            let form = "a size such as \"64KiB\" or \"150MB\"";
            let parsed = match (value.as_str(), value.as_integer()) {
                (Some(text), _) => parse_size(text).ok(),
                (None, Some(number)) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
                (None, None) => None,
            };
            let not_a_size = || match value.as_str() {
                Some(_) => wrong("not a size".to_owned(), Some(format!("write {form}"))),
                None => expected(form),
            };
            let bytes = parsed.ok_or_else(not_a_size)?;
            let range = || wrong(format!("not in {} to {}", size_text(*least), size_text(*most)), None);
            (*least..=*most).contains(&bytes).then(|| set(into, bytes)).ok_or_else(range)
        }
        Kind::Fraction { least, most, set } => {
            let text = value.as_float().map(|f| f.as_str()).or_else(|| value.as_integer().map(|i| i.as_str()));
            let number = text.and_then(|text| text.parse::<f64>().ok()).ok_or_else(|| expected("a number"))?;
            let range = || wrong(format!("not in {least} to {most}"), None);
            (*least..=*most).contains(&number).then(|| set(into, number)).ok_or_else(range)
        }
        Kind::Flag { set } => value.as_bool().map(|v| set(into, v)).ok_or_else(|| expected("`true` or `false`")),
        Kind::Choice { words, set } => {
            let choices = || format!("valid: {}", list(words.iter().copied()));
            let text = value.as_str().ok_or_else(|| expected("a word in quotes"))?;
            let help =
                || did_you_mean(text, words.iter().copied()).map_or_else(choices, |h| format!("{h} {}", choices()));
            let at = words.iter().position(|word| *word == text);
            at.map(|at| set(into, at)).ok_or_else(|| wrong(format!("`{text}` is not known"), Some(help())))
        }
        Kind::Text { form, set } => {
            let text = value.as_str().ok_or_else(|| expected(form))?;
            set(into, text).map_err(|label| wrong(label, Some(format!("write {form}"))))
        }
        Kind::Texts { form, check, set } => {
            let rows = value.as_array().ok_or_else(|| expected("a list in `[` and `]`"))?;
            let mut texts = Vec::new();
            for row in rows {
                let judged = match row.get_ref().as_str() {
                    Some(text) => check(text).map(|()| texts.push(text.to_owned())),
                    None => Err(format!("expected {form}, found {}", found(row.get_ref()))),
                };
                judged.map_err(|label| Wrong { span: row.span(), label, help: Some(format!("write {form}")) })?;
            }
            set(into, texts);
            Ok(())
        }
    }
}

/// What a value is, for "expected A, found B".
pub(crate) fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "`true` or `false`",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
    .to_owned()
}

/// Words in backquotes, with commas between them.
pub(crate) fn list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// The nearest known word, if it is near enough that a slip of the hand explains the difference.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    // A hostile word of megabytes would make the distance costly; no key is half as long as this.
    if word.len() > 100 {
        return None;
    }
    let near = known
        .filter(|candidate| !candidate.is_empty())
        .map(|candidate| (strsim::damerau_levenshtein(&word.to_lowercase(), candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3))
        .min();
    near.map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}
