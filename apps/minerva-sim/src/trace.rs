//! `minerva-sim trace`: what a trace holds, and its conversion to the native form.

use crate::trace_cli::TraceCommand;
use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use minerva_sim_workload::trace::{
    Faults, NativeWriter, ReadOptions, Record, Slice, Summary, SummaryBuilder, TraceError, TraceReader,
};
use std::path::Path;

/// Runs one of the commands.
pub(crate) fn run(command: &TraceCommand) -> anyhow::Result<()> {
    match command {
        TraceCommand::Info { file, reading, json } => {
            let mut trace = open(file, reading.options()?)?;
            let mut summary = SummaryBuilder::default();
            each(&mut trace, file, |record| {
                summary.note(record);
                Ok(())
            })?;
            let summary = summary.finish();
            if *json {
                print_json(&trace, &summary)
            } else {
                print_text(&trace, &summary)
            }
            Ok(())
        }
        TraceCommand::Convert { input, output, reading } => {
            let mut trace = open(input, reading.options()?)?;
            let mut writer = writer(input, output)?;
            each(&mut trace, input, |record| writer.write(record))?;
            finish(writer, &trace, output)
        }
        TraceCommand::Slice { input, output, part, reading } => {
            let mut trace = open(input, reading.options()?)?;
            let mut writer = writer(input, output)?;
            slice(&mut trace, input, part.slice()?, &mut writer)?;
            anyhow::ensure!(writer.records() > 0, "no request of {} is in that part", input.display());
            finish(writer, &trace, output)
        }
    }
}

/// The trace at `path`; `-` is standard input.
pub(crate) fn open(path: &Path, options: ReadOptions) -> Result<TraceReader, TraceError> {
    if path == Path::new("-") {
        return TraceReader::from_stream(std::io::stdin(), "standard input", options);
    }
    TraceReader::open(path, options)
}

fn writer(input: &Path, output: &Path) -> anyhow::Result<NativeWriter> {
    let same = input.canonicalize().ok().is_some_and(|input| output.canonicalize().is_ok_and(|output| input == output));
    anyhow::ensure!(!same, "{} is the input trace; choose another file for the output", output.display());
    Ok(NativeWriter::create(output)?)
}

/// So many requests between two looks at the progress.
pub(crate) const STEP: u64 = 1 << 16;

/// Every request of a trace, with progress on standard error where that is a terminal.
fn each(
    trace: &mut TraceReader,
    path: &Path,
    mut take: impl FnMut(&Record) -> Result<(), TraceError>,
) -> anyhow::Result<()> {
    let bar = bar(path);
    let mut records = 0_u64;
    while let Some(record) = trace.next() {
        take(&record?)?;
        records += 1;
        if records.is_multiple_of(STEP) {
            bar.set_position(trace.taken_bytes());
        }
    }
    bar.finish_and_clear();
    Ok(())
}

fn slice(trace: &mut TraceReader, path: &Path, part: Slice, writer: &mut NativeWriter) -> anyhow::Result<()> {
    let bar = bar(path);
    let mut read = 0_u64;
    // What is skipped is progress too.
    let records = std::iter::from_fn(|| {
        let record = trace.next()?;
        read += 1;
        if read.is_multiple_of(STEP) {
            bar.set_position(trace.taken_bytes());
        }
        Some(record)
    });
    for record in part.of(records) {
        writer.write(&record?)?;
        if writer.records().is_multiple_of(STEP) {
            bar.set_message(format!("{} requests", writer.records()));
        }
    }
    bar.finish_and_clear();
    Ok(())
}

pub(crate) fn bar(path: &Path) -> ProgressBar {
    let bytes = path.metadata().map_or(0, |metadata| metadata.len());
    let style = ProgressStyle::with_template("{bar:30} {bytes} of {total_bytes}, {elapsed}, {eta} to go {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(bytes).with_style(style)
}

fn finish(writer: NativeWriter, trace: &TraceReader, output: &Path) -> anyhow::Result<()> {
    let records = writer.records();
    writer.finish(trace.volume_names())?;
    let bytes = output.metadata().with_context(|| format!("cannot read the size of {}", output.display()))?.len();
    println!(
        "{records} requests of {} in {bytes} bytes, {:.2} a request",
        trace.format(),
        bytes as f64 / records as f64
    );
    print_faults(trace.faults());
    Ok(())
}

/// What was wrong with a trace, for people.
pub(crate) fn print_faults(faults: &Faults) {
    if faults.malformed > 0 {
        let left_out =
            counted(faults.malformed, "entry was not understood and was", "entries were not understood and were");
        eprintln!("{left_out} left out; the first:");
        faults.examples.iter().for_each(|malformed| eprintln!("  {malformed}"));
    }
    if faults.sorted > 0 {
        let sorted = counted(faults.sorted, "request was out of order and was", "requests were out of order and were");
        eprintln!("{sorted} sorted by time, by up to {}", faults.sorted_back_max);
    }
    if faults.out_of_order > 0 {
        let moved = counted(faults.out_of_order, "request was", "requests were");
        eprintln!(
            "{moved} out of order by more than --sort-window, by up to {}, and moved to the time of the request before",
            faults.back_max
        );
    }
    if faults.far_ahead > 0 {
        let moved = counted(faults.far_ahead, "request was", "requests were");
        eprintln!("{moved} more than a minute later than those around it, and moved to the time of the one before");
    }
    if !faults.misplaced.is_empty() {
        eprintln!("the first out of order:");
        faults.misplaced.iter().for_each(|misplaced| eprintln!("  {misplaced}"));
    }
    if faults.dropped > 0 {
        let dropped = counted(
            faults.dropped,
            "entry moved no data or had no answer, and was",
            "entries moved no data or had no answer, and were",
        );
        eprintln!("{dropped} left out");
    }
}

fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

fn print_text(trace: &TraceReader, summary: &Summary) {
    println!("format       {}", trace.format());
    println!("compression  {}", trace.compression().as_str());
    println!("requests     {}", summary.records);
    println!("span         {}", summary.span);
    println!("reads        {} of {} bytes in all", summary.reads, summary.read_bytes);
    println!("writes       {} of {} bytes in all", summary.writes, summary.written_bytes);
    println!("flushes      {}", summary.flushes);
    println!("discards     {}", summary.discards);
    let mean = summary.mean_per_second().map_or("-".to_owned(), |mean| format!("{mean:.1}"));
    println!("a second     {mean} on average, {} in the busiest", summary.peak_per_second);
    println!("needs a disk of {} bytes", summary.end_bytes);
    if let Some(latency) = summary.mean_latency {
        println!("latency      {latency} on average, of {} requests", summary.latencies);
    }
    println!("malformed    {}", trace.faults().malformed);
    println!("sizes");
    for (bytes, count) in &summary.sizes {
        println!("  up to {bytes:>10}  {count:>12}  {:>5.1} %", *count as f64 * 100.0 / summary.records as f64);
    }
    /// More would hide the rest; `--json` has them all.
    const VOLUMES_SHOWN: usize = 20;
    println!("volumes      {}", summary.volumes.len());
    for (number, volume) in summary.volumes.iter().take(VOLUMES_SHOWN) {
        let name = trace.volume_names().get(*number as usize).map_or("", String::as_str);
        let (reads, writes) = (volume.reads, volume.writes);
        let line =
            format!("  {number:>10}  {reads:>12} reads  {writes:>12} writes  {:>16} bytes  {name}", volume.end_bytes);
        println!("{}", line.trim_end());
    }
    if summary.volumes.len() > VOLUMES_SHOWN {
        println!("  and {} more, which --json lists", summary.volumes.len() - VOLUMES_SHOWN);
    }
    print_faults(trace.faults());
}

fn print_json(trace: &TraceReader, summary: &Summary) {
    let sizes: Vec<_> =
        summary.sizes.iter().map(|(bytes, count)| serde_json::json!({"bytes_max": bytes, "requests": count})).collect();
    let volumes: Vec<_> = summary
        .volumes
        .iter()
        .map(|(number, volume)| {
            serde_json::json!({
                "volume": number, "name": trace.volume_names().get(*number as usize), "reads": volume.reads,
                "writes": volume.writes, "read_bytes": volume.read_bytes, "written_bytes": volume.written_bytes,
                "end_bytes": volume.end_bytes,
            })
        })
        .collect();
    let mut line = serde_json::json!({
        "format": trace.format().as_str(), "compression": trace.compression().as_str(), "requests": summary.records,
        "span_ns": summary.span.0, "first_ns": trace.first_ns(), "reads": summary.reads, "writes": summary.writes,
        "flushes": summary.flushes, "discards": summary.discards, "read_bytes": summary.read_bytes,
        "written_bytes": summary.written_bytes, "mean_per_second": summary.mean_per_second(),
        "peak_per_second": summary.peak_per_second, "end_bytes": summary.end_bytes,
        "mean_latency_ns": summary.mean_latency.map(|latency| latency.0), "sizes": sizes, "volumes": volumes,
    });
    if let (Some(line), serde_json::Value::Object(faults)) = (line.as_object_mut(), faults_json(trace.faults())) {
        line.extend(faults);
    }
    println!("{line}");
}

/// What was wrong with a trace, for scripts.
pub(crate) fn faults_json(faults: &Faults) -> serde_json::Value {
    serde_json::json!({
        "malformed": faults.malformed,
        "examples": faults.examples.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "dropped": faults.dropped,
        "sorted": faults.sorted,
        "sorted_back_ns_max": faults.sorted_back_max.0,
        "out_of_order": faults.out_of_order,
        "back_ns_max": faults.back_max.0,
        "far_ahead": faults.far_ahead,
        "misplaced": faults.misplaced.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
