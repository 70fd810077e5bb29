//! What a command prints: the end of it, in a file that never grows beyond a bound, however much it prints.

use crate::error::WorkError;
use std::fs::{self, File};
use std::io::{self, PipeReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// So much of the end is kept at least, and twice that at most.
const KEPT_BYTES: u64 = 1 << 20;
const PIECE_BYTES: usize = 64 << 10;
/// After the command's end so long is waited for what it leaves running, which may hold the pipe for ever.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is being kept.
#[derive(Debug)]
pub(crate) struct Kept {
    ended: Receiver<()>,
}

impl Kept {
    /// Keeps in the file at `path` what comes out of the pipe; what an earlier run left there stays before it.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn begin(path: &Path, from: PipeReader) -> Result<Self, WorkError> {
        let mut tail = Tail::open(path).map_err(WorkError::io("open", path))?;
        let (ending, ended) = channel();
        let keep = move || {
            tail.keep(from);
            // Nobody may be waiting any more.
            let _ = ending.send(());
        };
        let thread = std::thread::Builder::new().name("output".to_owned()).spawn(keep);
        thread.map(|_| Self { ended }).map_err(WorkError::io("start a thread for", path))
    }

    /// Waits until everything that the command printed is kept.
    pub(crate) fn wait(&self) {
        match self.ended.recv_timeout(PATIENCE) {
            // What it left running prints for nobody.
            Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }
}

/// The file with the end.
struct Tail {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Tail {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).read(true).open(path)?;
        Ok(Self { path: path.to_owned(), bytes: file.metadata()?.len(), file })
    }

    /// Reads to the end, also where nothing can be written: the command is not to fail or wait for that.
    fn keep(&mut self, mut from: PipeReader) {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match from.read(&mut piece) {
                Ok(0) => return,
                Ok(read) => {
                    let _ = self.add(&piece[..read]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn add(&mut self, piece: &[u8]) -> io::Result<()> {
        if self.bytes + piece.len() as u64 > 2 * KEPT_BYTES {
            self.shorten()?;
        }
        self.file.write_all(piece)?;
        self.bytes += piece.len() as u64;
        Ok(())
    }

    /// Leaves the last part, in a file that takes the place of the other at once.
    fn shorten(&mut self) -> io::Result<()> {
        let mut last = Vec::new();
        self.file.seek(SeekFrom::Start(self.bytes.saturating_sub(KEPT_BYTES)))?;
        self.file.read_to_end(&mut last)?;
        let new = self.path.with_extension("new");
        fs::write(&new, &last)?;
        fs::rename(&new, &self.path)?;
        *self = Self::open(&self.path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT_BYTES, Kept};
    use std::fs;
    use std::io::{PipeWriter, Write, pipe};
    use std::path::Path;

    /// Output is kept after that of an earlier run.
    fn begun_anew(path: &Path) -> (Kept, PipeWriter) {
        fs::write(path, "an earlier run\n").expect("a file");
        let (reader, writer) = pipe().expect("a pipe");
        (Kept::begin(path, reader).expect("begun"), writer)
    }

    #[test]
    fn the_end_of_what_a_command_prints_without_end_is_kept() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("output");
        let (kept, mut writer) = begun_anew(&path);
        writer.write_all(b"the beginning\n").expect("read");
        let line = "x".repeat(1023) + "\n";
        for _ in 0..8 * KEPT_BYTES / 1024 {
            writer.write_all(line.as_bytes()).expect("read");
        }
        writer.write_all(b"the end\n").expect("read");
        drop(writer);
        kept.wait();
        let text = fs::read_to_string(&path).expect("text");
        assert!((KEPT_BYTES..=2 * KEPT_BYTES).contains(&(text.len() as u64)), "{}", text.len());
        assert!(text.ends_with("x\nthe end\n") && !text.contains("the beginning"));
        assert_eq!(fs::read_dir(folder.path()).expect("a directory").count(), 1, "nothing else is left");
    }

    #[test]
    fn a_short_output_follows_that_of_an_earlier_run() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("output");
        let (kept, mut writer) = begun_anew(&path);
        writer.write_all(b"this one\n").expect("read");
        drop(writer);
        kept.wait();
        assert_eq!(fs::read_to_string(&path).expect("text"), "an earlier run\nthis one\n");
    }
}
