//! Pressure files: `some avg10= avg60= avg300= total=` and `full ...`, totals in microseconds (`Documentation/accounting/psi.rst`).

use super::{Malformed, lines};
use minerva_model::Pressure;

/// Reads a pressure file; `None` when it holds no `some` line. `full` is absent for some resources and then zero.
pub fn parse_pressure(text: &[u8]) -> (Option<Pressure>, Malformed) {
    let mut malformed = Malformed::default();
    let (mut some, mut full) = (None, None);
    for line in lines(text) {
        match std::str::from_utf8(line).ok().and_then(parse_line) {
            Some(("some", total_us)) => some = Some(total_us),
            Some(("full", total_us)) => full = Some(total_us),
            _ => malformed.note(line),
        }
    }
    let pressure = some.map(|some_us: u64| Pressure {
        some_ns: some_us.saturating_mul(1_000),
        full_ns: full.unwrap_or(0_u64).saturating_mul(1_000),
    });
    (pressure, malformed)
}

fn parse_line(line: &str) -> Option<(&str, u64)> {
    let mut words = line.split_ascii_whitespace();
    let kind = words.next()?;
    let total = words.find_map(|word| word.strip_prefix("total="))?;
    Some((kind, total.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::parse_pressure;
    use minerva_model::Pressure;

    #[test]
    fn real_text() {
        let text = b"some avg10=2.50 avg60=6.30 avg300=2.12 total=11536529\nfull avg10=2.33 avg60=5.93 avg300=2.00 total=10986663\n";
        let (pressure, malformed) = parse_pressure(text);
        assert_eq!(pressure, Some(Pressure { some_ns: 11_536_529_000, full_ns: 10_986_663_000 }));
        assert_eq!(malformed.count, 0);
    }

    #[test]
    fn cut_text() {
        let (pressure, malformed) = parse_pressure(b"some avg10=2.50 avg60=6.30 avg300=2.12 tot");
        assert_eq!(pressure, None);
        assert_eq!(malformed.count, 1);
    }
}
