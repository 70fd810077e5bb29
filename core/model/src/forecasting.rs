//! How far forecasts are made and used, and fitted models as they outlive a restart.

use crate::Nanos;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// What becomes of forecasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForecastMode {
    /// None are made.
    Off,
    /// They are made, measured and shown, and no decision sees them.
    #[default]
    Shadow,
    /// Decisions see them too.
    On,
}

impl ForecastMode {
    /// Every mode, from the narrowest.
    pub const ALL: [Self; 3] = [Self::Off, Self::Shadow, Self::On];

    /// The word of the operator's file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Shadow => "shadow",
            Self::On => "on",
        }
    }
}

/// The operator's settings for forecasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForecastSettings {
    /// For every tenant of which no rule says something else.
    pub mode: ForecastMode,
    /// Fitted models are kept for the next start once in this time, and at the end.
    pub keep_every: Nanos,
    /// The day and the week ahead of disks and groups are forecast too. Recordings of earlier versions have none.
    #[serde(default)]
    pub days_ahead: bool,
    /// Sessions are believed as far as forecasts have their order right, and not only as far as they beat every naive forecast of sizes.
    /// In recordings of earlier versions they are not.
    #[serde(default)]
    pub sessions_by_order: bool,
    /// What is foreseen of sessions.
    #[serde(default)]
    pub sessions: SessionSource,
    /// A session is foreseen in its first slice, also where slices are shorter than the second that forecasts are made from. In
    /// recordings of earlier versions it is not.
    #[serde(default)]
    pub sessions_at_once: bool,
    /// A tenant takes part in what is dealt anew for as long as its share may make it wait for its turn, and not only in slices in which it
    /// was served. In recordings of earlier versions it does not.
    #[serde(default)]
    pub waiting_take_part: bool,
    /// Among tenants whose sessions are foreseen, what these have transferred does not count as past use, as far as the forecasts' skill
    /// goes. In recordings of earlier versions it does.
    #[serde(default)]
    pub sessions_are_no_past: bool,
    /// The trees of the next slice grow leaf by leaf and know the day before. In recordings of earlier versions they do not.
    #[serde(default)]
    pub trees_by_leaves: bool,
    /// The next slice is told between the median and the mean of what trees say, and not by the median alone. In recordings of earlier versions
    /// it is not.
    #[serde(default)]
    pub next_slice_between: bool,
    /// What an agent says is left when a session begins is measured against what that session transfers. In recordings of earlier versions
    /// its last word was, which is next to nothing where it tells the truth.
    #[serde(default)]
    pub declared_at_beginning: bool,
    /// The skill of reads and writes together is the mean of both, weighted by the bytes that may come of each. In recordings of earlier
    /// versions it is the smaller one, and a skill of exactly 0, which also who has proved nothing has, was passed over.
    #[serde(default)]
    pub skill_by_bytes: bool,
    /// What is over leaves nothing behind (a session without bytes, a rate that has shifted, a disk that is gone), what nobody saw teaches
    /// nothing, and what sessions are worth is told of each account by its own. In recordings of earlier versions it is not so.
    #[serde(default)]
    pub only_its_own: bool,
    /// What is told keeps within what was seen, and what each account teaches within its part: sessions are told no larger than twice the
    /// largest, no account displaces what others taught, a tenant is of the family that it is of now, and forecasts that are turned off
    /// teach nothing by it. In recordings of earlier versions it is not so.
    #[serde(default)]
    pub within_bounds: bool,
    /// Before a host's trees no rate of the next slice is told that is more than twice the greatest that was seen. In recordings of earlier
    /// versions a base and a difference that were each seen may lead to any.
    #[serde(default)]
    pub next_slice_within_seen: bool,
}

/// Where it comes from what a session will transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionSource {
    /// The host's model.
    #[default]
    Model,
    /// The last session of the same group or name: what the model is measured against.
    Last,
}

impl SessionSource {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Model, Self::Last];

    /// The word of the operator's file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Last => "last",
        }
    }
}

impl Default for ForecastSettings {
    fn default() -> Self {
        Self {
            mode: ForecastMode::default(),
            keep_every: Nanos::from_secs(600),
            days_ahead: true,
            sessions_by_order: true,
            sessions: SessionSource::Model,
            sessions_at_once: true,
            waiting_take_part: true,
            sessions_are_no_past: true,
            trees_by_leaves: true,
            next_slice_between: true,
            declared_at_beginning: true,
            skill_by_bytes: true,
            only_its_own: true,
            within_bounds: true,
            next_slice_within_seen: true,
        }
    }
}

impl ForecastSettings {
    /// As they were before there were forecasts: what was recorded then replays as it ran.
    pub fn absent() -> Self {
        Self {
            mode: ForecastMode::Off,
            days_ahead: false,
            sessions_by_order: false,
            sessions_at_once: false,
            waiting_take_part: false,
            sessions_are_no_past: false,
            trees_by_leaves: false,
            next_slice_between: false,
            declared_at_beginning: false,
            skill_by_bytes: false,
            only_its_own: false,
            within_bounds: false,
            next_slice_within_seen: false,
            ..Self::default()
        }
    }
}

/// What a fitted model is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// The host's trees for the next slice.
    NextSlice,
    /// The host's trees for what is left of a session.
    Sessions,
    /// What sessions of the same name, unit or image transferred.
    Families,
    /// Histories of disks and groups in bins of ten minutes, for the day and the week ahead.
    DaysAhead,
}

impl ModelKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::NextSlice, Self::Sessions, Self::Families, Self::DaysAhead];

    /// The word people see, and the name of its file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NextSlice => "next-slice",
            Self::Sessions => "sessions",
            Self::Families => "families",
            Self::DaysAhead => "days-ahead",
        }
    }
}

/// A fitted model as bytes: versioned and checksummed by `core/forecast`, and opaque to everyone else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FittedModel {
    /// Of what.
    pub kind: ModelKind,
    /// The content of its file. In a recording they are hexadecimal digits.
    #[serde(serialize_with = "to_hexadecimal", deserialize_with = "from_hexadecimal")]
    pub bytes: Vec<u8>,
}

fn to_hexadecimal<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let digit = |nibble: u8| char::from(if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 });
    let text: String = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect();
    serializer.serialize_str(&text)
}

fn from_hexadecimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let nibble = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let byte = |pair: &[u8]| match *pair {
        [high, low] => Some(nibble(high)? << 4 | nibble(low)?),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
    bytes.ok_or_else(|| de::Error::custom("not an even number of hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::{FittedModel, ForecastMode, ModelKind};

    #[test]
    fn the_bytes_of_a_model_are_digits_in_a_recording() {
        let model = FittedModel { kind: ModelKind::NextSlice, bytes: vec![0, 0x4d, 0xff] };
        let text = serde_json::to_string(&model).unwrap();
        assert_eq!(text, r#"{"kind":"next-slice","bytes":"004dff"}"#);
        assert_eq!(serde_json::from_str::<FittedModel>(&text).unwrap(), model);
        for damaged in ["4d4", "xy", "ää"] {
            let text = format!(r#"{{"kind":"next-slice","bytes":"{damaged}"}}"#);
            assert!(serde_json::from_str::<FittedModel>(&text).is_err(), "{damaged}");
        }
    }

    #[test]
    fn modes_stand_from_the_narrowest_to_the_widest() {
        assert!(ForecastMode::ALL.is_sorted());
    }
}
