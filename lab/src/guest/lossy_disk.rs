//! A disk with a volatile cache, for guests whose power is cut: what was written and not flushed when the power goes is there
//! or not, sector by sector, as chance will have it. A guest that syncs its files loses nothing; one that only wrote them does.
//!
//! QEMU reaches it by the protocol of network block devices (NetworkBlockDevice/nbd, doc/proto.md: fixed newstyle negotiation,
//! simple replies) over a Unix socket. No server that was found forgets on purpose, so this is one of our own, of one export.

use super::error::GuestError;
use super::program::run;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;
/// The longest request that is served; QEMU's have 32 MiB at most.
const REQUEST_BYTES_MAX: u32 = 64 << 20;

const MAGIC_START: &[u8; 8] = b"NBDMAGIC";
const MAGIC_OPTION: &[u8; 8] = b"IHAVEOPT";
const MAGIC_OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const MAGIC_REQUEST: u32 = 0x2560_9513;
const MAGIC_REPLY: u32 = 0x6744_6698;
/// Fixed newstyle, and no zeroes after an export.
const HANDSHAKE_FLAGS: u16 = 0b11;
/// There are flags; the disk can flush, and can write one request through its cache.
const EXPORT_FLAGS: u16 = 0b1101;
const OPTION_ABORT: u32 = 2;
const OPTION_GO: u32 = 7;
const REPLY_ACKNOWLEDGED: u32 = 1;
const REPLY_INFO: u32 = 3;
const REPLY_UNSUPPORTED: u32 = 0x8000_0001;
const COMMAND_READ: u16 = 0;
const COMMAND_WRITE: u16 = 1;
const COMMAND_DISCONNECT: u16 = 2;
const COMMAND_FLUSH: u16 = 3;
/// Of a write: it is on the disk when it is answered.
const COMMAND_FLAG_THROUGH: u16 = 1;
const ERROR_INVALID: u32 = 22;

/// The disk, which outlives the guests that use it one after the other.
#[derive(Debug)]
pub struct LossyDisk {
    state: Arc<Mutex<State>>,
    socket: PathBuf,
    _directory: tempfile::TempDir,
}

/// What a power cut took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut {
    /// Sectors that had been written and not flushed.
    pub unflushed: usize,
    /// Those of them that are as they were before.
    pub lost: usize,
}

#[derive(Debug)]
struct State {
    /// As reads see it.
    cache: Vec<u8>,
    /// As a power cut leaves it, but for what chance lets through.
    durable: Vec<u8>,
    /// Sectors in which the two may differ.
    dirty: BTreeSet<usize>,
}

impl LossyDisk {
    /// A disk with an empty ext4 file system. It is kept in memory, twice.
    pub fn with_ext4(size_mib: usize) -> Result<Self, GuestError> {
        let image = tempfile::NamedTempFile::new().map_err(GuestError::at("make", std::env::temp_dir()))?;
        let mut format = Command::new("mke2fs");
        format.args(["-q", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0"]);
        run(format.arg(image.path()).arg(format!("{size_mib}M")), "mke2fs")?;
        Self::new(fs::read(image.path()).map_err(GuestError::at("read", image.path()))?)
    }

    fn new(durable: Vec<u8>) -> Result<Self, GuestError> {
        let directory = tempfile::Builder::new().prefix("minerva-test-disk-").tempdir();
        let directory = directory.map_err(GuestError::at("make a directory in", std::env::temp_dir()))?;
        let socket = directory.path().join("socket");
        let listener = UnixListener::bind(&socket).map_err(GuestError::at("listen at", &socket))?;
        let state = State { cache: durable.clone(), durable, dirty: BTreeSet::new() };
        let state = Arc::new(Mutex::new(state));
        let served = Arc::clone(&state);
        // Ends with the process: the thread holds nothing but memory.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // A guest that was killed hangs up in the middle of a request.
                let _ = serve(stream, &served);
            }
        });
        Ok(Self { state, socket, _directory: directory })
    }

    /// Where QEMU finds it.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// The power goes. To be called when the guest has been killed; the seed decides what of the cache was written in time.
    pub fn cut_power(&self, seed: u64) -> PowerCut {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut state = lock(&self.state);
        let dirty = std::mem::take(&mut state.dirty);
        // A disk writes much of its cache on some days and little on others.
        let kept = random.f64();
        let mut lost = 0;
        for sector in &dirty {
            let (begin, end) = (sector * SECTOR, (sector + 1) * SECTOR);
            if random.f64() < kept {
                let State { cache, durable, .. } = &mut *state;
                durable[begin..end].copy_from_slice(&cache[begin..end]);
            } else {
                lost += 1;
            }
        }
        state.cache = state.durable.clone();
        PowerCut { unflushed: dirty.len(), lost }
    }
}

impl State {
    /// Sectors from `dirty` in a range become durable.
    fn flush(&mut self, range: std::ops::Range<usize>) {
        let sectors: Vec<usize> = self.dirty.range(range).copied().collect();
        for sector in sectors {
            let (begin, end) = (sector * SECTOR, (sector + 1) * SECTOR);
            self.durable[begin..end].copy_from_slice(&self.cache[begin..end]);
            self.dirty.remove(&sector);
        }
    }
}

/// A thread that panicked with the lock held has changed a sector or not, which is what this disk is about.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One guest, from its first word to its last.
fn serve(mut stream: UnixStream, state: &Mutex<State>) -> io::Result<()> {
    stream.write_all(MAGIC_START)?;
    stream.write_all(MAGIC_OPTION)?;
    stream.write_all(&HANDSHAKE_FLAGS.to_be_bytes())?;
    let _flags: [u8; 4] = take(&mut stream)?;
    if !negotiate(&mut stream, lock(state).cache.len() as u64)? {
        return Ok(());
    }
    while answer(&mut stream, state)? {}
    Ok(())
}

/// Until the export is chosen; false when the guest wants none.
fn negotiate(stream: &mut UnixStream, size: u64) -> io::Result<bool> {
    loop {
        if take::<8>(stream)? != *MAGIC_OPTION {
            return Err(ErrorKind::InvalidData.into());
        }
        let option = u32::from_be_bytes(take(stream)?);
        let length = u32::from_be_bytes(take(stream)?).min(REQUEST_BYTES_MAX);
        // Which export, and what the guest would know of it: there is one, and all of it is told.
        take_vec(stream, length)?;
        let mut reply = |kind: u32, data: &[u8]| {
            let length = u32::try_from(data.len()).map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
            stream.write_all(&MAGIC_OPTION_REPLY.to_be_bytes())?;
            stream.write_all(&[option.to_be_bytes(), kind.to_be_bytes(), length.to_be_bytes()].concat())?;
            stream.write_all(data)
        };
        match option {
            OPTION_GO => {
                // Information of kind 0: size and flags.
                let info = [&0u16.to_be_bytes()[..], &size.to_be_bytes(), &EXPORT_FLAGS.to_be_bytes()].concat();
                reply(REPLY_INFO, &info)?;
                reply(REPLY_ACKNOWLEDGED, &[])?;
                return Ok(true);
            }
            OPTION_ABORT => return reply(REPLY_ACKNOWLEDGED, &[]).map(|()| false),
            _ => reply(REPLY_UNSUPPORTED, &[])?,
        }
    }
}

/// Serves one request; false after the last.
fn answer(stream: &mut UnixStream, state: &Mutex<State>) -> io::Result<bool> {
    if u32::from_be_bytes(take(stream)?) != MAGIC_REQUEST {
        return Err(ErrorKind::InvalidData.into());
    }
    let flags = u16::from_be_bytes(take(stream)?);
    let command = u16::from_be_bytes(take(stream)?);
    let cookie: [u8; 8] = take(stream)?;
    let offset = u64::from_be_bytes(take(stream)?);
    let length = u32::from_be_bytes(take(stream)?);
    if length > REQUEST_BYTES_MAX {
        return Err(ErrorKind::InvalidData.into());
    }
    let written = if command == COMMAND_WRITE { take_vec(stream, length)? } else { Vec::new() };
    if command == COMMAND_DISCONNECT {
        return Ok(false);
    }
    let mut state = lock(state);
    let begin = usize::try_from(offset).unwrap_or(usize::MAX);
    let end = begin.saturating_add(length as usize);
    let is_whole = begin.is_multiple_of(SECTOR) && end.is_multiple_of(SECTOR) && end <= state.cache.len();
    let (mut error, mut read) = (0, Vec::new());
    match command {
        COMMAND_READ if is_whole => read.extend_from_slice(&state.cache[begin..end]),
        COMMAND_WRITE if is_whole => {
            state.cache[begin..end].copy_from_slice(&written);
            state.dirty.extend(begin / SECTOR..end / SECTOR);
            if flags & COMMAND_FLAG_THROUGH != 0 {
                state.flush(begin / SECTOR..end / SECTOR);
            }
        }
        COMMAND_FLUSH => state.flush(0..usize::MAX),
        _ => error = ERROR_INVALID,
    }
    drop(state);
    stream.write_all(&[MAGIC_REPLY.to_be_bytes(), error.to_be_bytes()].concat())?;
    stream.write_all(&cookie)?;
    stream.write_all(&read)?;
    Ok(true)
}

fn take<const COUNT: usize>(stream: &mut UnixStream) -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn take_vec(stream: &mut UnixStream, length: u32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{LossyDisk, SECTOR, lock};

    #[test]
    fn what_was_flushed_stays_and_of_the_rest_chance_takes_some() {
        let disk = LossyDisk::new(vec![0; 100 * SECTOR]).expect("a socket");
        {
            let mut state = lock(&disk.state);
            state.cache[..100 * SECTOR].fill(1);
            state.dirty.extend(0..100);
            state.flush(0..50);
        }
        let cut = disk.cut_power(7);
        assert_eq!(cut.unflushed, 50);
        assert!(cut.lost > 0 && cut.lost < 50, "{cut:?}");
        let state = lock(&disk.state);
        assert!(state.cache[..50 * SECTOR].iter().all(|byte| *byte == 1));
        let kept = state.cache[50 * SECTOR..].chunks(SECTOR).filter(|sector| sector[0] == 1).count();
        assert_eq!(kept, 50 - cut.lost, "each is there whole or as it was");
        assert!(state.cache == state.durable && state.dirty.is_empty());
    }
}
