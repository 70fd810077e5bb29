//! How far a tenant steps back.

use minerva_api::v1;
use std::fmt;
use std::str::FromStr;

/// How far a tenant steps back of its own will.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// As everyone.
    #[default]
    Normal,
    /// A part of what it would have.
    Low,
    /// A small part of it.
    Lowest,
    /// Only when nobody else uses the disk.
    Idle,
}

impl Level {
    /// Every level, from the least to the greatest step back.
    pub const ALL: [Self; 4] = [Self::Normal, Self::Low, Self::Lowest, Self::Idle];

    /// The word people use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Low => "low",
            Self::Lowest => "lowest",
            Self::Idle => "idle",
        }
    }

    /// As the contract numbers it.
    pub const fn to_wire(self) -> i32 {
        match self {
            Self::Normal => v1::Level::Normal as i32,
            Self::Low => v1::Level::Low as i32,
            Self::Lowest => v1::Level::Lowest as i32,
            Self::Idle => v1::Level::Idle as i32,
        }
    }

    /// From the contract's number. A level that a newer server may know counts as normal.
    pub fn from_wire(number: i32) -> Self {
        Self::ALL.into_iter().find(|level| level.to_wire() == number).unwrap_or_default()
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Level {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let words = Self::ALL.map(Self::as_str);
        Self::ALL.into_iter().find(|level| level.as_str() == text).ok_or_else(|| UnknownWord::new(text, &words))
    }
}

/// A word that stands for nothing here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no '{word}'; there are {known}")]
pub struct UnknownWord {
    word: String,
    known: String,
}

impl UnknownWord {
    pub(crate) fn new(word: &str, known: &[&str]) -> Self {
        Self { word: word.to_owned(), known: known.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::Level;

    #[test]
    fn words_and_numbers_come_back_as_the_level() {
        for level in Level::ALL {
            assert_eq!(level.as_str().parse(), Ok(level));
            assert_eq!(Level::from_wire(level.to_wire()), level);
        }
        assert_eq!(Level::from_wire(99), Level::Normal);
        let error = "nice".parse::<Level>().expect_err("no level").to_string();
        assert_eq!(error, "there is no 'nice'; there are normal, low, lowest, idle");
    }
}
