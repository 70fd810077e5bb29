//! What `minerva-blk --log-requests` wrote: a line for each request that was done.

use crate::error::{At, LabError, Result};
use minerva_model::Nanos;
use std::path::Path;

/// Columns of a line.
const COLUMNS: usize = 10;

/// One request, in instants of `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Of which disk.
    pub disk: String,
    /// The application's priority.
    pub tag: u8,
    /// What it read or wrote.
    pub bytes: u64,
    /// When the server took it from the guest.
    pub arrived: Nanos,
    /// When it was given to the host's disk.
    pub sent: Nanos,
    /// When it was answered.
    pub done: Nanos,
}

/// Reads a whole log. Requests that failed make a measurement worthless, so that they are an error.
pub(super) fn read(path: &Path) -> Result<Vec<Record>> {
    let text = std::fs::read_to_string(path).at("read", path)?;
    parse(&text).map_err(|line| LabError::BadPlan(format!("{}: a request failed, or no log: {line}", path.display())))
}

/// The requests, or the line that is none.
fn parse(text: &str) -> std::result::Result<Vec<Record>, String> {
    text.lines().skip(1).map(|line| record(line).ok_or_else(|| line.to_owned())).collect()
}

fn record(line: &str) -> Option<Record> {
    let fields: Vec<&str> = line.split(',').collect();
    let number = |at: usize| fields[at].parse::<u64>().ok();
    if fields.len() != COLUMNS || number(9)? != 1 {
        return None;
    }
    Some(Record {
        disk: fields[0].to_owned(),
        tag: u8::try_from(number(2)?).ok()?,
        bytes: number(5)?,
        arrived: Nanos(number(6)?),
        sent: Nanos(number(7)?),
        done: Nanos(number(8)?),
    })
}

#[cfg(test)]
mod tests {
    use super::{Record, parse};
    use minerva_model::Nanos;

    #[test]
    fn a_line_is_a_request_and_one_that_failed_is_told() {
        let head = "disk,kind,tag,stream,offset_bytes,length_bytes,arrived_ns,sent_ns,done_ns,is_good\n";
        let good = "vm0,read,12,1,4096,65536,10,20,30,1";
        let expected = Record {
            disk: "vm0".to_owned(),
            tag: 12,
            bytes: 65_536,
            arrived: Nanos(10),
            sent: Nanos(20),
            done: Nanos(30),
        };
        assert_eq!(parse(&format!("{head}{good}\n")), Ok(vec![expected]));
        let bad = "vm0,read,12,1,4096,65536,10,20,30,0";
        assert_eq!(parse(&format!("{head}{bad}\n")), Err(bad.to_owned()));
    }
}
