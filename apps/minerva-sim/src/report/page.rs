//! A page of plots under headings.

use super::{escaped, plots};
use anyhow::Context as _;
use minerva_sim_world::{Report, ReportedProcess};
use std::path::Path;

pub(super) const END: &str = "</body></html>\n";

/// The page's beginning; `title` is escaped already.
pub(super) fn head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>\
         body{{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:2em auto;padding:0 1em;color:#222}}\
         table{{border-collapse:collapse;margin:1em 0}}td,th{{padding:.25em .8em;text-align:right;border-bottom:1px solid #ddd}}\
         td:first-child,th:first-child{{text-align:left}}svg{{max-width:100%;height:auto;display:block}}\
         .bar{{display:flex;height:1.4em}}.legend span{{white-space:nowrap;margin-right:1.2em}}</style></head><body>\n<h1>{title}</h1>\n"
    )
}

/// A page under way.
pub(crate) struct Page(String);

impl Page {
    pub(crate) fn new(title: &str) -> Self {
        Self(head(&escaped(title)))
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.0 += &format!("<h2>{}</h2>\n", escaped(text));
    }

    /// Throughput over time, a line a process, in so many bins from `from` on.
    pub(crate) fn over_time(&mut self, name: &str, report: &Report, from: usize, bins: usize) -> anyhow::Result<()> {
        let part = |process: &ReportedProcess| ReportedProcess {
            bins_bytes: process.bins_bytes.iter().skip(from).take(bins).copied().collect(),
            ..process.clone()
        };
        let processes: Vec<ReportedProcess> = report.processes.iter().map(part).collect();
        let seconds = bins as f64 * report.bin_s;
        let cut = Report { scheduler: name.to_owned(), seconds, processes, ..report.clone() };
        if let Some(plot) = plots::throughput_over_time(&cut).context("failed to draw the report")? {
            self.0 += &plot;
        }
        let legend = cut.processes.iter().enumerate().map(|(index, process)| {
            format!(
                "<span><span style=\"color:{}\">&#9632;</span> {}</span>\n",
                plots::css(index),
                escaped(&process.name)
            )
        });
        self.0 += &format!("<p class=\"legend\">{}</p>\n", legend.collect::<String>());
        Ok(())
    }

    /// Bars side by side: for each name one of each series.
    pub(crate) fn bars(&mut self, names: &[&str], series: &[(&str, Vec<f64>)]) -> anyhow::Result<()> {
        self.0 += &plots::bars(names, series).context("failed to draw the report")?;
        let legend = series.iter().enumerate().map(|(index, (name, _))| {
            let color = plots::css(index);
            format!("<span><span style=\"color:{color}\">&#9632;</span> {}</span>\n", escaped(name))
        });
        self.0 += &format!("<p class=\"legend\">{}</p>\n", legend.collect::<String>());
        Ok(())
    }

    pub(crate) fn write(mut self, path: &Path) -> anyhow::Result<()> {
        self.0 += END;
        std::fs::write(path, self.0).with_context(|| format!("failed to write {}", path.display()))
    }
}
