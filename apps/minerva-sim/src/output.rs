//! What people and scripts read: one form for figures, one for tables.

/// One measured condition of a figure, in the form of docs/figures.md.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) id: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) goal: String,
    pub(crate) met: bool,
    pub(crate) detail: String,
}

impl Line {
    pub(crate) fn print(&self, json: bool) {
        let Self { id, value, unit, goal, met, detail } = self;
        let value = (value * 1000.0).round() / 1000.0;
        if json {
            let line = serde_json::json!({
                "id": id, "value": value, "unit": unit, "goal": goal, "met": met, "detail": detail,
            });
            println!("{line}");
        } else {
            println!("{id}: {value} {unit}, goal {goal}, {}: {detail}", if *met { "met" } else { "not met" });
        }
    }
}

/// Prints rows under their heads, every column as wide as it must be: the first to the left, the others to the right.
pub(crate) fn print_table(heads: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([heads[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let cells = cells.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    println!("{}", line(heads.to_vec()).trim_end());
    for row in rows {
        println!("{}", line(row.iter().map(String::as_str).collect()).trim_end());
    }
}

/// Bytes a second as people say them.
pub(crate) fn megabytes(bytes_per_second: f64) -> String {
    format!("{:.1}", bytes_per_second / 1e6)
}
