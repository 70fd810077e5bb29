//! The reader above all formats: time from the first request, order within a window, and how much may be malformed.

use super::decode::Decode;
use super::error::TraceError;
use super::fixed::Fixed;
use super::format::Format;
use super::formats::{alibaba, blktrace, cloudphysics, fio_iolog, msr, oracle_general, spc, systor, tencent, vscsi};
use super::input::{self, Compression, Opened};
use super::lines::Lines;
use super::native::reader::{self as native, NativeRecords};
use super::record::{Faults, Found, Misplaced, Position, Raw, Record};
use super::sort::Sorter;
use minerva_model::Nanos;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What to do with a request that is earlier than one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfOrder {
    /// Put it where it belongs if it is at most this much earlier; otherwise count it, and move it to the instant of the latest
    /// one before it. Zero sorts nothing.
    Sort(Nanos),
    /// Stop.
    Refuse,
}

impl Default for OutOfOrder {
    /// Rows by completion are milliseconds out of order. A second is more than any disk in order takes.
    fn default() -> Self {
        Self::Sort(Nanos::SECOND)
    }
}

/// How to read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The format; absent: found by content and name.
    pub format: Option<Format>,
    /// Stop when more than this many in a thousand entries could not be understood, or are out of order.
    pub malformed_permille_max: u32,
    /// Judge that only after so many entries, so that one bad line at the start stops nothing.
    pub judge_after: u64,
    /// What to do when time goes back.
    pub out_of_order: OutOfOrder,
    /// oracleGeneral: bytes from one object number to the next.
    pub object_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            malformed_permille_max: 10,
            judge_after: 100,
            out_of_order: OutOfOrder::default(),
            object_bytes: 512,
        }
    }
}

/// A trace being read, request by request, in constant memory. After an error there is nothing more.
pub struct TraceReader {
    origin: String,
    format: Format,
    compression: Compression,
    options: ReadOptions,
    decoder: Box<dyn Decode>,
    taken: Arc<AtomicU64>,
    faults: Faults,
    sorter: Sorter,
    /// Requests read; some are still held by the sorter.
    requests: u64,
    first_ns: Option<u64>,
    /// Where the last request given out was.
    position: Position,
    /// A request that was read to judge the one before it by.
    ahead: Option<(Raw, Position)>,
    /// Nothing more can be read: the trace is at its end, or this is why. What is held is given out first.
    ended: Option<Result<(), TraceError>>,
    finished: bool,
}

/// A request so much later than the one before is judged by the one after.
const FAR: Nanos = Nanos::from_secs(60);

impl TraceReader {
    /// Opens the file at `path`, which may be a pipe unless the trace is in the native form.
    pub fn open(path: &Path, options: ReadOptions) -> Result<Self, TraceError> {
        let failed = |source| TraceError::Open { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(std::io::Error::from(std::io::ErrorKind::IsADirectory)));
        }
        let origin = path.display().to_string();
        // A pipe cannot be wound back after a look at its first bytes, nor read from its end.
        let could_be_native = metadata.is_file() && options.format.is_none_or(|format| format == Format::Native);
        if could_be_native && native::has_mark(&file).map_err(failed)? {
            let rows = NativeRecords::open(file, &origin)?;
            return Self::native(rows, &origin, options);
        }
        Self::from_stream(file, &origin, options)
    }

    /// Reads from a stream; `origin` is the name that errors show and that helps to find the format. The native form is
    /// read from its end, so it needs a file: [`TraceReader::open`].
    pub fn from_stream(
        stream: impl Read + Send + 'static,
        origin: &str,
        options: ReadOptions,
    ) -> Result<Self, TraceError> {
        let failed = |source| TraceError::Read { origin: origin.to_owned(), position: Position::Byte(0), source };
        let Opened { compression, head, input, taken } = input::open(stream).map_err(failed)?;
        if head.is_empty() {
            return Err(TraceError::Empty { origin: origin.to_owned() });
        }
        let unknown = |detail: String| TraceError::UnknownFormat { origin: origin.to_owned(), detail };
        let format = options.format.map_or_else(|| Format::detect(&head, origin), Ok).map_err(unknown)?;
        let decoder: Box<dyn Decode> = match format {
            Format::Systor => Box::new(Lines::new(input, systor::Systor)),
            Format::Msr => Box::new(Lines::new(input, msr::Msr::default())),
            Format::Alibaba => Box::new(Lines::new(input, alibaba::Alibaba)),
            Format::Tencent => Box::new(Lines::new(input, tencent::Tencent)),
            Format::Spc => Box::new(Lines::new(input, spc::Spc)),
            Format::CloudPhysics => Box::new(Lines::new(input, cloudphysics::CloudPhysics)),
            Format::FioIolog => Box::new(Lines::new(input, fio_iolog::FioIolog::default())),
            Format::OracleGeneral => {
                Box::new(Fixed::new(input, oracle_general::OracleGeneral::new(options.object_bytes)))
            }
            Format::Vscsi => {
                let no_version = || unknown("neither version 1 nor version 2 of vscsi by its first records".to_owned());
                Box::new(Fixed::new(input, vscsi::Vscsi::of(&head).ok_or_else(no_version)?))
            }
            Format::Blktrace => {
                let no_magic = || unknown("it does not begin with blktrace's magic, version 7".to_owned());
                Box::new(blktrace::Blktrace::new(input, blktrace::Order::of(&head).ok_or_else(no_magic)?))
            }
            Format::Native => {
                return Err(unknown("the native form must be a plain file, neither packed nor a stream".to_owned()));
            }
        };
        Ok(Self::new(origin, format, compression, options, decoder, taken))
    }

    /// Reads the native form from memory.
    pub fn from_native_bytes(bytes: Vec<u8>, origin: &str, options: ReadOptions) -> Result<Self, TraceError> {
        Self::native(NativeRecords::from_bytes(bytes, origin)?, origin, options)
    }

    fn native(rows: NativeRecords, origin: &str, options: ReadOptions) -> Result<Self, TraceError> {
        let taken = rows.taken();
        Ok(Self::new(origin, Format::Native, Compression::Zstd, options, Box::new(rows), taken))
    }

    fn new(
        origin: &str,
        format: Format,
        compression: Compression,
        options: ReadOptions,
        decoder: Box<dyn Decode>,
        taken: Arc<AtomicU64>,
    ) -> Self {
        let sorter = Sorter::new(match options.out_of_order {
            OutOfOrder::Sort(window) => window,
            OutOfOrder::Refuse => Nanos::ZERO,
        });
        Self {
            origin: origin.to_owned(),
            format,
            compression,
            options,
            position: decoder.position(),
            decoder,
            taken,
            faults: Faults::default(),
            sorter,
            requests: 0,
            first_ns: None,
            ahead: None,
            ended: None,
            finished: false,
        }
    }

    /// The name that errors show.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// As what it is read.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How the file is packed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// What was wrong so far.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// What the trace calls its volumes so far, by number; empty where it has only numbers.
    pub fn volume_names(&self) -> &[String] {
        self.decoder.volume_names()
    }

    /// Where the last request was.
    pub fn position(&self) -> Position {
        self.position
    }

    /// From which instant on the trace's own clock, in nanoseconds, times count, once there was a request: the first one's, in the native
    /// form 0.
    pub fn first_ns(&self) -> Option<u64> {
        self.first_ns
    }

    /// Bytes taken from the file so far, of its size on the disk: how far a long run is.
    pub fn taken_bytes(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// The request as it is given out.
    fn record(&mut self, raw: Raw, position: Position) -> Record {
        self.position = position;
        // The native form counts from where its trace or slice begins, which the first request need not be.
        let begins = if self.format == Format::Native { 0 } else { raw.at_ns };
        let first = *self.first_ns.get_or_insert(begins);
        Record {
            at: Nanos(raw.at_ns.saturating_sub(first)),
            kind: raw.kind,
            offset_bytes: raw.offset_bytes,
            // A format's own check has ruled out more.
            length_bytes: u32::try_from(raw.length_bytes).unwrap_or(u32::MAX),
            volume: raw.volume,
            latency: raw.latency,
        }
    }

    /// Gives a request to the sorter, at an instant at which it can be put where it belongs.
    fn hold(&mut self, raw: Raw, position: Position) -> Result<(), TraceError> {
        let mut at_ns = self.believed(&raw, position)?;
        if let Some(newest) = self.sorter.newest_ns().filter(|_| self.sorter.is_too_early(at_ns)) {
            let by = Nanos(newest - at_ns);
            if self.options.out_of_order == OutOfOrder::Refuse {
                return Err(TraceError::OutOfOrder { origin: self.origin.clone(), position, back: by });
            }
            self.note_misplaced(Misplaced { position, by, ahead: false })?;
            at_ns = newest;
        }
        self.requests += 1;
        self.sorter.put(Raw { at_ns, ..raw }, position);
        (self.faults.sorted, self.faults.sorted_back_max) = (self.sorter.moved, self.sorter.reach_max);
        Ok(())
    }

    /// The request's instant, or where it is far ahead of the ones before and after, that of the latest before; at the very
    /// beginning that of the one after.
    fn believed(&mut self, raw: &Raw, position: Position) -> Result<u64, TraceError> {
        let last = self.sorter.newest_ns();
        let is_far = last.is_none_or(|last| raw.at_ns.saturating_sub(last) > FAR.0);
        if !is_far || self.options.out_of_order == OutOfOrder::Refuse {
            return Ok(raw.at_ns);
        }
        self.ahead = self.read()?;
        match self.ahead {
            Some((next, _)) if next.at_ns.saturating_add(FAR.0) < raw.at_ns => {
                let by = Nanos(raw.at_ns - next.at_ns);
                self.note_misplaced(Misplaced { position, by, ahead: true })?;
                Ok(last.unwrap_or(next.at_ns))
            }
            _ => Ok(raw.at_ns),
        }
    }

    fn note_misplaced(&mut self, misplaced: Misplaced) -> Result<(), TraceError> {
        self.faults.note_misplaced(misplaced);
        let (count, seen) = (self.faults.out_of_order + self.faults.far_ahead, self.seen() + 1);
        if !self.is_too_many(count, seen) {
            return Ok(());
        }
        let first = self.faults.misplaced.first().copied().unwrap_or(misplaced);
        Err(TraceError::TooManyMisplaced { origin: self.origin.clone(), misplaced: count, seen, first })
    }

    fn seen(&self) -> u64 {
        self.requests + self.faults.dropped + self.faults.malformed
    }

    /// Whether so many of those seen are more than the set share.
    fn is_too_many(&self, count: u64, seen: u64) -> bool {
        let allowed = u128::from(self.options.malformed_permille_max) * u128::from(seen);
        seen >= self.options.judge_after && u128::from(count) * 1000 > allowed
    }

    /// The error if too much was malformed.
    fn judge(&self) -> Result<(), TraceError> {
        let seen = self.seen();
        if !self.is_too_many(self.faults.malformed, seen) {
            return Ok(());
        }
        let Some(first) = self.faults.examples.first().cloned() else { return Ok(()) };
        let (origin, format) = (self.origin.clone(), self.format);
        Err(TraceError::TooManyMalformed { origin, format, malformed: self.faults.malformed, seen, first })
    }

    fn advance(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            if let Some((raw, position)) = self.sorter.take(self.ended.is_some()) {
                return Ok(Some(self.record(raw, position)));
            }
            if let Some(ended) = self.ended.take() {
                return ended.map(|()| None);
            }
            self.ended = match self.read_on() {
                Ok(true) => None,
                Ok(false) => Some(self.end()),
                Err(error) => Some(Err(error)),
            };
        }
    }

    /// Reads one more request; false at the end of the trace.
    fn read_on(&mut self) -> Result<bool, TraceError> {
        let next = match self.ahead.take() {
            Some(next) => Some(next),
            None => self.read()?,
        };
        next.map_or(Ok(false), |(raw, position)| self.hold(raw, position).map(|()| true))
    }

    /// Whether all that was read was enough of a trace.
    fn end(&self) -> Result<(), TraceError> {
        // Malformed entries at the beginning were too few to be judged by; now all is known.
        if self.requests > 0 {
            return self.judge();
        }
        let first = self.faults.examples.first().cloned();
        let (origin, format, malformed) = (self.origin.clone(), self.format, self.faults.malformed);
        Err(TraceError::NoRecords { origin, format, malformed, first })
    }

    /// The next request as the format gives it, and where it is.
    fn read(&mut self) -> Result<Option<(Raw, Position)>, TraceError> {
        loop {
            let found = self.decoder.next().map_err(|source| {
                let position = self.decoder.position();
                TraceError::Read { origin: self.origin.clone(), position, source }
            })?;
            match found {
                Some(Found::Request(raw)) => return Ok(Some((raw, self.decoder.position()))),
                Some(Found::Dropped) => self.faults.dropped += 1,
                Some(Found::Malformed(malformed)) => {
                    self.faults.note_malformed(malformed);
                    self.judge()?;
                }
                None => return Ok(None),
            }
        }
    }
}

impl Iterator for TraceReader {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let next = self.advance().transpose();
        self.finished = !matches!(next, Some(Ok(_)));
        next
    }
}
