//! Numbers and columns of text traces.

use super::lines::Reason;

/// Exactly `N` columns.
pub(super) fn columns<const N: usize>(line: &[u8]) -> Result<[&[u8]; N], Reason> {
    let (columns, more) = leading_columns(line)?;
    if more { Err(format!("more than the {N} columns of this format").into()) } else { Ok(columns) }
}

/// The first `N` columns, and whether there are more.
pub(super) fn leading_columns<const N: usize>(line: &[u8]) -> Result<([&[u8]; N], bool), Reason> {
    let mut columns: [&[u8]; N] = [&[]; N];
    let mut rest = line;
    for (index, column) in columns.iter_mut().enumerate() {
        match memchr::memchr(b',', rest) {
            Some(end) => {
                *column = &rest[..end];
                rest = &rest[end + 1..];
            }
            None if index + 1 == N => {
                *column = rest;
                return Ok((columns, false));
            }
            None => return Err(format!("{} columns, where this format has {N}", index + 1).into()),
        }
    }
    Ok((columns, true))
}

/// A whole number that is not negative. `what` says of which column, for people.
pub(super) fn whole(text: &[u8], what: &'static str) -> Result<u64, Reason> {
    let digits = text.trim_ascii();
    if digits.is_empty() {
        return Err(format!("no {what}").into());
    }
    let mut value: u64 = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            let why = if digits[0] == b'-' { "negative" } else { "not a whole number" };
            return Err(format!("the {what} is {why}").into());
        }
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(digit)))
            .ok_or_else(|| Reason::from(format!("the {what} is too great")))?;
    }
    Ok(value)
}

/// A number that fits a volume's.
pub(super) fn volume(text: &[u8], what: &'static str) -> Result<u32, Reason> {
    u32::try_from(whole(text, what)?).map_err(|_| format!("the {what} is too great").into())
}

/// Seconds with decimals, in nanoseconds; further decimals are cut off.
pub(super) fn seconds(text: &[u8], what: &'static str) -> Result<u64, Reason> {
    let text = text.trim_ascii();
    let (seconds, decimals) = match memchr::memchr(b'.', text) {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &text[..0]),
    };
    let whole_seconds = if seconds.is_empty() && !decimals.is_empty() { 0 } else { whole(seconds, what)? };
    let mut nanoseconds = 0;
    let mut unit = 100_000_000;
    for byte in decimals {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(format!("the {what} is not a number of seconds").into());
        }
        nanoseconds += u64::from(digit) * unit;
        unit /= 10;
    }
    scaled(whole_seconds, 1_000_000_000, what)?.checked_add(nanoseconds).ok_or_else(|| too_great(what))
}

/// `value` in a unit of `factor`.
pub(super) fn scaled(value: u64, factor: u64, what: &'static str) -> Result<u64, Reason> {
    value.checked_mul(factor).ok_or_else(|| too_great(what))
}

fn too_great(what: &'static str) -> Reason {
    format!("the {what} is too great").into()
}

#[cfg(test)]
mod tests {
    use super::{columns, seconds, whole};

    #[test]
    fn seconds_keep_nine_decimals() {
        assert_eq!(seconds(b"1456095145.133076000", "time"), Ok(1_456_095_145_133_076_000));
        assert_eq!(seconds(b"0.0268001239", "time"), Ok(26_800_123));
        assert_eq!(seconds(b".5", "time"), Ok(500_000_000));
        assert_eq!(seconds(b"7", "time"), Ok(7_000_000_000));
    }

    #[test]
    fn bad_numbers_are_named() {
        assert_eq!(seconds(b"-1.5", "time"), Err("the time is negative".into()));
        assert_eq!(seconds(b"1.x", "time"), Err("the time is not a number of seconds".into()));
        assert_eq!(seconds(b"18446744074", "time"), Err("the time is too great".into()));
        assert_eq!(whole(b"18446744073709551616", "offset"), Err("the offset is too great".into()));
        assert_eq!(whole(b"", "offset"), Err("no offset".into()));
        assert_eq!(whole(b"0x1", "offset"), Err("the offset is not a whole number".into()));
        assert_eq!(columns::<2>(b"1"), Err("1 columns, where this format has 2".into()));
        assert_eq!(columns::<2>(b"1,2,3"), Err("more than the 2 columns of this format".into()));
    }
}
