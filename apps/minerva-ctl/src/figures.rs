//! Numbers as people read them, in columns that do not jump.

use crate::output::one_line;

/// Bytes a second, in decimal units as disks are sold.
pub(crate) fn rate(bytes_per_second: u64) -> String {
    let value = bytes_per_second as f64;
    match bytes_per_second {
        0 => "-".to_owned(),
        1..1_000 => format!("{bytes_per_second} B/s"),
        1_000..1_000_000 => format!("{:.1} kB/s", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB/s", value / 1e6),
        _ => format!("{:.2} GB/s", value / 1e9),
    }
}

/// Bytes, in decimal units as disks are sold.
pub(crate) fn size(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e3 => format!("{bytes:.0} B"),
        bytes if bytes < 1e6 => format!("{:.1} kB", bytes / 1e3),
        bytes if bytes < 1e9 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.2} GB", bytes / 1e9),
    }
}

/// A duration in nanoseconds.
pub(crate) fn span(nanoseconds: Option<u64>) -> String {
    match nanoseconds {
        None => "-".to_owned(),
        Some(n) if n < 1_000_000 => format!("{:.0} us", n as f64 / 1e3),
        Some(n) if n < 10_000_000_000 => format!("{:.1} ms", n as f64 / 1e6),
        Some(n) => long_span(n),
    }
}

/// A long duration: days down to seconds, the two greatest units.
pub(crate) fn long_span(nanoseconds: u64) -> String {
    let seconds = nanoseconds / 1_000_000_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// Rows in columns as wide as their widest cell; the columns listed in `right` stand to the right. No cell makes a row of its own.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>], right: &[usize]) -> String {
    let head: Vec<String> = header.iter().map(|&cell| cell.to_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| one_line(cell)).collect()).collect();
    let mut widths = vec![0; header.len()];
    for row in std::iter::once(&head).chain(&rows) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in std::iter::once(&head).chain(&rows) {
        let mut line = String::new();
        for (index, (width, cell)) in widths.iter().zip(row).enumerate() {
            if right.contains(&index) {
                line.push_str(&format!("{cell:>width$}  "));
            } else {
                line.push_str(&format!("{cell:<width$}  "));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{long_span, rate, size, span, table};

    #[test]
    fn numbers_read_in_the_unit_a_person_would_choose() {
        assert_eq!([rate(0), rate(999), rate(1_500), rate(22_400_000)], ["-", "999 B/s", "1.5 kB/s", "22.4 MB/s"]);
        assert_eq!([size(0.0), size(2.25e3), size(50e6), size(3e12)], ["0 B", "2.2 kB", "50.0 MB", "3000.00 GB"]);
        assert_eq!([span(None), span(Some(85_000)), span(Some(13_100_000))], ["-", "85 us", "13.1 ms"]);
        assert_eq!([long_span(59_000_000_000), long_span(93_600_000_000_000)], ["59 s", "1 d 2 h"]);
    }

    #[test]
    fn a_table_is_as_wide_as_its_cells() {
        let rows = vec![vec!["a".to_owned(), "1".to_owned()], vec!["long".to_owned(), "22".to_owned()]];
        assert_eq!(table(&["NAME", "N"], &rows, &[1]), "NAME   N\na      1\nlong  22\n");
    }

    #[test]
    fn a_name_that_others_chose_makes_no_row_and_no_column_of_its_own() {
        let rows = vec![vec!["a\nbackup\tdone".to_owned(), "1".to_owned()]];
        assert_eq!(table(&["NAME", "N"], &rows, &[1]), "NAME           N\na\u{FFFD}backup\u{FFFD}done  1\n");
    }
}
