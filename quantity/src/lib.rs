//! Sizes and durations as people write them. The settings and every command line read them here, so that `500M` is the same
//! everywhere. Job files of the simulator are fio's and keep fio's own grammar.
//!
//! Sizes: a number and a unit. `k`, `M`, `G`, `T`, `P` and the same with `B` are powers of 1000, as SI and IEC 80000-13 have it;
//! `Ki`, `Mi`, … and `KiB`, `MiB`, … are powers of 1024. Case does not matter. A bare number is bytes.
//!
//! Durations: numbers with units that are added up, `1h 30m`. `ns`, `us`, `ms`, `s`, `m`, `h`, `d` or `days`, `w` and their long
//! names. A bare number is seconds. Months and years are refused: they have no one length, and `M` is easily taken for minutes.

use bytesize::ByteSize;
use std::time::Duration;

/// No disk is as large, and beyond 2^53 a fraction does not count bytes any more.
const SIZE_BYTES_MAX: u64 = 1 << 60;

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It is no size.
    #[error("`{0}` is no size: write 500M or 500MB (powers of 1000), 500MiB (of 1024), or a number of bytes")]
    NoSize(String),
    /// It is a size, and no disk is as large.
    #[error("`{0}` is more than 1 EiB")]
    TooLarge(String),
    /// It is no duration.
    #[error("`{text}` is no duration, {why}: write 500ms, 90s, 1h 30m or 30days")]
    NoDuration {
        /// What was written.
        text: String,
        /// Why.
        why: String,
    },
}

/// Reads a size, in bytes. Fractions of a byte are cut off.
pub fn parse_size(text: &str) -> Result<u64, QuantityError> {
    let size: ByteSize = text.trim().parse().map_err(|_| QuantityError::NoSize(text.to_owned()))?;
    match size.as_u64() {
        bytes if bytes <= SIZE_BYTES_MAX => Ok(bytes),
        _ => Err(QuantityError::TooLarge(text.to_owned())),
    }
}

/// Reads a duration.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let wrong = |why: String| QuantityError::NoDuration { text: text.to_owned(), why };
    let trimmed = text.trim();
    if let Ok(seconds) = trimmed.parse::<u32>() {
        return Ok(Duration::from_secs(u64::from(seconds)));
    }
    let mut units = trimmed.split(|c: char| !c.is_alphabetic());
    if units.any(|unit| unit == "M" || unit.starts_with("month") || unit.starts_with('y')) {
        return Err(wrong("months and years have no one length".to_owned()));
    }
    humantime::parse_duration(trimmed).map_err(|error| match error {
        humantime::DurationError::UnknownUnit { unit, .. } if !unit.is_empty() => {
            wrong(format!("unknown time unit {unit:?}, there are ns, us, ms, s, m, h, days and weeks"))
        }
        error => wrong(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::{QuantityError, parse_duration, parse_size};
    use std::time::Duration;

    #[test]
    fn sizes_without_an_i_are_decimal_and_with_one_binary() {
        let cases = [
            ("500M", 500_000_000),
            ("500MB", 500_000_000),
            ("500 mb", 500_000_000),
            ("500Mi", 500 << 20),
            ("500MiB", 500 << 20),
            ("64k", 64_000),
            ("64KiB", 65_536),
            ("1.5G", 1_500_000_000),
            ("1.5GiB", 3 << 29),
            ("8T", 8_000_000_000_000),
            ("4096", 4096),
            ("4096B", 4096),
            (" 0 ", 0),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "-1", "5X", "5Mx", "1e30", "nan", "1..2", "12 34"] {
            assert_eq!(parse_size(text), Err(QuantityError::NoSize(text.to_owned())), "{text}");
        }
        for text in ["9999999T", "18446744073709551615", "2EiB"] {
            assert_eq!(parse_size(text), Err(QuantityError::TooLarge(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn durations_have_units_and_bare_numbers_are_seconds() {
        let cases = [
            ("60", 60_000),
            ("60s", 60_000),
            ("2 min", 120_000),
            ("2m", 120_000),
            ("1h 30m", 5_400_000),
            ("1.5s", 1_500),
            ("500ms", 500),
            ("30days", 2_592_000_000),
            ("1d", 86_400_000),
        ];
        for (text, ms) in cases {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "soon", "-5s", "5M", "1month", "2 years", "1y", "99999999999999999999s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        let said = parse_duration("5M").expect_err("months").to_string();
        assert!(said.contains("`5M` is no duration, months and years"), "{said}");
    }
}
