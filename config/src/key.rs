//! One key of the file: its name, what it means, what it may hold and where the value goes. The parser, the commented
//! default file and the JSON schema are all made from these, so they cannot disagree.

use minerva_model::Nanos;

/// A key of a table that fills a `T`.
pub(crate) struct Key<T: 'static> {
    pub(crate) name: &'static str,
    /// Sentences for the default file and the schema; lines as they are to be broken.
    pub(crate) doc: &'static str,
    pub(crate) kind: Kind<T>,
    /// The present value as TOML; `None` when it is not set.
    pub(crate) show: fn(&T) -> Option<String>,
    /// A value for the default file when there is none by default.
    pub(crate) example: &'static str,
}

/// What a key may hold.
pub(crate) enum Kind<T: 'static> {
    /// Text such as "500ms".
    Duration { least: Nanos, most: Nanos, set: fn(&mut T, Nanos) },
    /// A whole number.
    Whole { least: u64, most: u64, set: fn(&mut T, u64) },
    /// Text such as "64KiB", or a whole number of bytes.
    Size { least: u64, most: u64, set: fn(&mut T, u64) },
    /// A number with a fraction.
    Fraction { least: f64, most: f64, set: fn(&mut T, f64) },
    /// True or false.
    Flag { set: fn(&mut T, bool) },
    /// One of a few words; `set` gets the word's place.
    Choice { words: &'static [&'static str], set: fn(&mut T, usize) },
    /// Text that `set` judges; the error is the label under the value.
    Text { form: &'static str, set: fn(&mut T, &str) -> Result<(), String> },
    /// A list of texts, each judged by `check`.
    Texts { form: &'static str, check: fn(&str) -> Result<(), String>, set: fn(&mut T, Vec<String>) },
}

/// The TOML text of a duration.
pub(crate) fn show_duration(value: Nanos) -> Option<String> {
    Some(format!("\"{}\"", duration_text(value)))
}

/// As a person writes it, in the largest unit that needs no fraction: "6h", "90s".
pub(crate) fn duration_text(value: Nanos) -> String {
    const UNITS: [(u64, &str); 6] = [
        (86_400_000_000_000, "days"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ];
    match UNITS.iter().find(|(unit, _)| value.0 >= *unit && value.0.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", value.0 / unit),
        None => format!("{}ns", value.0),
    }
}

/// The TOML text of a size, in the largest binary unit that needs no fraction.
pub(crate) fn show_size(bytes: u64) -> Option<String> {
    Some(format!("\"{}\"", size_text(bytes)))
}

/// As a person writes it: "64KiB".
pub(crate) fn size_text(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}

/// The TOML text of a string.
pub(crate) fn show_text(text: &str) -> Option<String> {
    Some(toml::Value::from(text).to_string())
}

/// The TOML text of a list of strings.
pub(crate) fn show_texts(texts: &[String]) -> Option<String> {
    Some(toml::Value::from(texts.to_vec()).to_string())
}

#[cfg(test)]
mod tests {
    use super::size_text;

    #[test]
    fn sizes_read_in_the_largest_unit_without_a_fraction() {
        let text: Vec<String> = [0, 1000, 1024, 65_536, 1 << 20, 5 << 30].iter().map(|n| size_text(*n)).collect();
        assert_eq!(text, ["0B", "1000B", "1KiB", "64KiB", "1MiB", "5GiB"]);
    }
}
