//! Which format a trace has: named by the caller, or found by its first bytes and, between those that look alike, its name.

use super::formats::blktrace::Order;
use super::formats::oracle_general::OracleGeneral;
use super::formats::vscsi::Vscsi;
use super::lines::excerpt;
use std::fmt;
use std::str::FromStr;

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// SYSTOR '17 VDI, which Kachmar and Kaeli (2020) use.
    Systor,
    /// MSR Cambridge.
    Msr,
    /// Alibaba block 2020.
    Alibaba,
    /// Tencent cloud block storage.
    Tencent,
    /// Storage Performance Council, as of the UMass repository.
    Spc,
    /// `blktrace`'s own.
    Blktrace,
    /// fio's log of requests, version 2 or 3.
    FioIolog,
    /// CloudPhysics, binary, version 1 or 2.
    Vscsi,
    /// CloudPhysics, decoded to text.
    CloudPhysics,
    /// libCacheSim's oracleGeneral.
    OracleGeneral,
    /// Minerva's own, in Parquet.
    Native,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Systor,
        Self::Msr,
        Self::Alibaba,
        Self::Tencent,
        Self::Spc,
        Self::Blktrace,
        Self::FioIolog,
        Self::Vscsi,
        Self::CloudPhysics,
        Self::OracleGeneral,
        Self::Native,
    ];

    /// The word people use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Systor => "systor",
            Self::Msr => "msr",
            Self::Alibaba => "alibaba",
            Self::Tencent => "tencent",
            Self::Spc => "spc",
            Self::Blktrace => "blktrace",
            Self::FioIolog => "fio-iolog",
            Self::Vscsi => "vscsi",
            Self::CloudPhysics => "cloudphysics",
            Self::OracleGeneral => "oracle-general",
            Self::Native => "native",
        }
    }

    /// The words, for people.
    pub fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }

    /// Finds the format by the first bytes of a trace, unpacked, and its name; else says what was seen.
    pub(super) fn detect(head: &[u8], name: &str) -> Result<Self, String> {
        let name = name.to_ascii_lowercase();
        if head.starts_with(b"PAR1") {
            return Ok(Self::Native);
        }
        if head.starts_with(b"fio version ") {
            return Ok(Self::FioIolog);
        }
        if Order::of(head).is_some() {
            return Ok(Self::Blktrace);
        }
        if looks_like_text(head) {
            return by_line(head, &name);
        }
        if name.contains("oraclegeneral") {
            return Ok(Self::OracleGeneral);
        }
        if Vscsi::of(head).is_some() {
            return Ok(Self::Vscsi);
        }
        if OracleGeneral::could_be(head) {
            return Ok(Self::OracleGeneral);
        }
        Err("binary, without a mark that is known".to_owned())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|format| format.as_str() == text)
            .ok_or_else(|| format!("`{text}` is not a format of traces; there are {}", Self::names()))
    }
}

fn looks_like_text(head: &[u8]) -> bool {
    !head.contains(&0)
        && head.iter().filter(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()).count() * 10
            >= head.len() * 9
}

/// Judges the first lines, of which the first may be a heading.
fn by_line(head: &[u8], name: &str) -> Result<Format, String> {
    let lines = || head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()).take(20);
    lines().find_map(|line| of_line(line, name)).ok_or_else(|| {
        let first = excerpt(lines().next().unwrap_or_default());
        format!("text, and none of its first lines has the columns of a known format; the first is `{first}`")
    })
}

fn of_line(line: &[u8], name: &str) -> Option<Format> {
    let columns: Vec<&[u8]> = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
    let column = |index: usize| columns.get(index).copied().unwrap_or_default();
    let letter = |index: usize| matches!(column(index), b"R" | b"W" | b"r" | b"w");
    let number = |index: usize| {
        !column(index).is_empty() && column(index).iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
    };
    match columns.len() {
        7 if matches!(column(3), b"Read" | b"Write" | b"read" | b"write") && number(0) => Some(Format::Msr),
        6 if number(0) && number(4) && (letter(2) || column(2).is_empty()) => Some(Format::Systor),
        5 if letter(1) && number(0) && number(4) => Some(Format::Alibaba),
        // SPC lines may have further columns.
        5.. if letter(3) && (0..5).all(|index| index == 3 || number(index)) => Some(Format::Spc),
        5 if matches!(column(3), b"0" | b"1") && (0..5).all(number) => Some(Format::Tencent),
        4 if letter(1) && number(0) && number(3) => Some(Format::CloudPhysics),
        // A damaged first line: the name may still tell.
        _ if name.contains("lun") && name.contains(".csv") && line.starts_with(b"Timestamp,Response") => {
            Some(Format::Systor)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn each_text_format_is_known_by_its_first_line() {
        let cases = [
            (
                "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.133076000,0.000806000,R,0,899056122368,131072\n",
                Format::Systor,
            ),
            ("128166372003061629,usr,0,Read,7014609920,24576,41286\n", Format::Msr),
            ("419,W,8792731648,16384,1577808000000046\n", Format::Alibaba),
            ("1538323199,12910952,128,0,1063\n", Format::Tencent),
            ("0,20941264,8192,W,0.551706\n", Format::Spc),
            ("0,20941264,8192,W,0.551706,x,y\n", Format::Spc),
            ("fio version 3 iolog\n", Format::FioIolog),
            ("t_us,op,bytes,lbn\n0,W,512,42932745\n", Format::CloudPhysics),
        ];
        for (text, format) in cases {
            assert_eq!(Format::detect(text.as_bytes(), "x"), Ok(format), "{text}");
        }
        assert!(Format::detect(b"hello world\n", "x").is_err());
        assert!(Format::detect(&[0xEE; 64], "x").is_err());
        assert!("SYSTOR".parse::<Format>().is_err());
    }
}
