//! Sizes, times and rates, as fio(1) writes them (section PARAMETER TYPES).

use minerva_model::Nanos;

/// A size: bytes, or a part of the disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Extent {
    /// Bytes.
    Bytes(u64),
    /// Hundredths of the disk.
    Percent(f64),
}

/// How much of something that may be counted in bytes or in requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Requests.
    Requests(f64),
}

/// What a value can be wrong by.
pub(super) type Wrong = String;

/// The factor of a unit of bytes with `kb_base=1024`: `k`, `kb` are 1,024, and `ki`, `kib` 1,000, the opposite of SI and IEC.
fn unit_bytes(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let unit = unit.strip_suffix('b').unwrap_or(&unit);
    let (prefix, base) = unit.strip_suffix('i').map_or((unit, 1024_u64), |prefix| (prefix, 1000));
    let power = match prefix {
        "" if base == 1024 => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    base.checked_pow(power)
}

/// The digits and the rest.
fn number_and_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// A value that must not be negative, and its sign's message.
fn not_negative(text: &str, what: &str) -> Result<(), Wrong> {
    if text.starts_with('-') { Err(format!("{what} cannot be negative")) } else { Ok(()) }
}

/// Bytes: `4096`, `4k`, `1.5g`.
pub(super) fn bytes(text: &str) -> Result<u64, Wrong> {
    not_negative(text, "a size")?;
    if text.contains([',', ':']) || (text.contains('-') && !text.starts_with('-')) {
        return Err("one size only; ranges and sizes by direction are not simulated".to_owned());
    }
    let (number, unit) = number_and_unit(text);
    let factor = unit_bytes(unit).ok_or_else(|| format!("`{unit}` is not a unit of bytes (k, m, g, t, p)"))?;
    scaled(number, factor).ok_or_else(|| format!("`{text}` is not a size, or too great"))
}

/// Bytes, or a part of the disk: `20%`.
pub(super) fn extent(text: &str) -> Result<Extent, Wrong> {
    let Some(percent) = text.strip_suffix('%') else { return bytes(text).map(Extent::Bytes) };
    not_negative(percent, "a size")?;
    match percent.trim().parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Extent::Percent(percent)),
        _ => Err(format!("`{text}` is not a part from 0% to 100%")),
    }
}

/// A time, such as `200ms`; `default_unit_ns` is the unit of a bare number, which differs from key to key.
///
/// # Errors
///
/// What is wrong with it, for people.
pub fn time(text: &str, default_unit_ns: u64) -> Result<Nanos, String> {
    not_negative(text, "a time")?;
    let (number, unit) = number_and_unit(text);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" => default_unit_ns,
        "ns" | "nsec" => 1,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" | "hr" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return Err(format!("`{unit}` is not a unit of time (ns, us, ms, s, m, h, d)")),
    };
    scaled(number, factor).map(Nanos).ok_or_else(|| format!("`{text}` is not a time, or too great"))
}

/// A rate or an amount: in bytes with a unit of bytes, else in requests. `/s` may follow.
pub(super) fn amount(text: &str) -> Result<Amount, Wrong> {
    not_negative(text, "an amount")?;
    let text = text.strip_suffix("/s").unwrap_or(text).trim();
    let (number, unit) = number_and_unit(text);
    match unit.to_ascii_lowercase().as_str() {
        "" | "iops" | "requests" => match number.parse::<f64>() {
            Ok(requests) if requests.is_finite() => Ok(Amount::Requests(requests)),
            _ => Err(format!("`{text}` is not an amount")),
        },
        _ => bytes(text).map(Amount::Bytes),
    }
}

/// A whole number in a range.
pub(super) fn whole(text: &str, from: u64, to: u64) -> Result<u64, Wrong> {
    match text.parse::<u64>() {
        Ok(number) if (from..=to).contains(&number) => Ok(number),
        _ => Err(format!("`{text}` is not a whole number from {from} to {to}")),
    }
}

/// A switch: `1` or nothing is on, `0` is off.
pub(super) fn switch(text: Option<&str>) -> Result<bool, Wrong> {
    match text {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(other) => Err(format!("`{other}` is neither 0 nor 1")),
    }
}

fn scaled(number: &str, factor: u64) -> Option<u64> {
    match number.split_once('.') {
        None => number.parse::<u64>().ok()?.checked_mul(factor),
        Some(_) => {
            let value = number.parse::<f64>().ok()? * factor as f64;
            (value.is_finite() && value < u64::MAX as f64).then_some(value.round() as u64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Amount, Extent, amount, bytes, extent, time};
    use minerva_model::Nanos;

    #[test]
    fn sizes_are_fios() {
        let cases = [("4096", 4096), ("4k", 4096), ("4KB", 4096), ("4kib", 4000), ("1m", 1 << 20), ("1mi", 1_000_000)];
        for (text, value) in cases.into_iter().chain([("1.5g", 3 << 29), ("2T", 2 << 40), ("512b", 512)]) {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
        for text in ["", "k", "4q", "-1", "4k-8k", "4k,8k", "99999999999g", "1..2", "4i"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert_eq!(extent("25%"), Ok(Extent::Percent(25.0)));
        assert!(extent("101%").is_err() && extent("NaN%").is_err() && extent("-1%").is_err());
    }

    #[test]
    fn times_have_the_keys_unit() {
        assert_eq!(time("10", 1_000), Ok(Nanos(10_000)));
        assert_eq!(time("10ms", 1_000), Ok(Nanos(10_000_000)));
        assert_eq!(time("1.5s", 1), Ok(Nanos(1_500_000_000)));
        assert_eq!(time("2m", 1), Ok(Nanos(120_000_000_000)));
        assert_eq!(time("-5", 1), Err("a time cannot be negative".to_owned()));
        assert!(time("5 years", 1).is_err());
    }

    #[test]
    fn amounts_are_bytes_or_requests() {
        assert_eq!(amount("8800KB/s"), Ok(Amount::Bytes(8800 * 1024)));
        assert_eq!(amount("120"), Ok(Amount::Requests(120.0)));
        assert_eq!(amount("120iops"), Ok(Amount::Requests(120.0)));
        assert!(amount("-1").is_err() && amount("..").is_err());
    }
}
