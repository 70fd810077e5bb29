//! The messages of the contract judged: sizes, keys, spans and levels that can be meant, and a sentence for those that cannot.
//! What a good request then means is the engine's business. Pure; fuzzed.

mod debts;

pub(crate) use debts::{PutOff, debt, debt_report};

use crate::request::{BoostAmount, Refusal, WantedDisk, Within};
use minerva_api::v1;
use minerva_api::v1::boost_request::Amount;
use minerva_api::v1::coordinate_request::Deadline;
use minerva_api::v1::set_level_request::Lifetime;
use minerva_linux_observe::GuestDisk;
use minerva_model::{AccessKind, DeviceId, JobSettings, Level, Nanos, PoolOffer, RefusalKind, RequestId};

/// Entries of a ledger that one answer holds.
const ENTRIES_MAX: u32 = 1_000;
/// Parts of a day that one schedule can have.
const SCHEDULE_ENTRIES_MAX: usize = 64;
/// The longest name of a time zone has 32 letters.
const TIME_ZONE_LENGTH_MAX: usize = 64;
const MINUTES_OF_A_DAY: u32 = 24 * 60;
const EVERY_DAY: u32 = 0b111_1111;
/// No disk is larger.
const SIZE_BYTES_MAX: u64 = 1 << 60;
/// Ten years: who asks for more has made a mistake, such as a negative number.
const SPAN_MAX: Nanos = Nanos::from_secs(10 * 365 * 86_400);
/// What a report may hold, as the contract says.
const PROCESSES_MAX: usize = 256;
const FILES_MAX: usize = 32;
/// The kernel's longest path, and more than any name has.
const PATH_LENGTH_MAX: usize = 4096;
const NAME_LENGTH_MAX: usize = 256;

/// How long a level lasts, as it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedLifetime {
    UntilReleased,
    For(Nanos),
    /// 0: the caller.
    Process(u32),
}

/// A purchase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Purchase {
    pub(crate) id: RequestId,
    pub(crate) amount: BoostAmount,
    pub(crate) device: Option<DeviceId>,
}

/// An operation to be fitted in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub(crate) id: RequestId,
    pub(crate) size_bytes: u64,
    pub(crate) access: AccessKind,
    pub(crate) within: Option<Within>,
    pub(crate) disk: WantedDisk,
    /// What the disk below the client's is like, where the client is in a guest.
    pub(crate) guest_disk: GuestDisk,
    pub(crate) pool: Option<PoolOffer>,
}

type Judged<T> = Result<T, Refusal>;

fn out_of_range<T>(message: String) -> Judged<T> {
    Err(Refusal::new(RefusalKind::OutOfRange, message))
}

/// How far to step back.
pub fn level(number: i32) -> Judged<Level> {
    match v1::Level::try_from(number) {
        Ok(v1::Level::Normal) => Ok(Level::Normal),
        Ok(v1::Level::Low) => Ok(Level::Low),
        Ok(v1::Level::Lowest) => Ok(Level::Lowest),
        Ok(v1::Level::Idle) => Ok(Level::Idle),
        Ok(v1::Level::Unspecified) => {
            out_of_range("No level was given: choose normal, low, lowest or idle.".to_owned())
        }
        Err(_) => {
            out_of_range(format!("There is no level {number}: choose normal (1), low (2), lowest (3) or idle (4)."))
        }
    }
}

/// The level as the contract numbers it.
pub const fn level_number(level: Level) -> i32 {
    (match level {
        Level::Normal => v1::Level::Normal,
        Level::Low => v1::Level::Low,
        Level::Lowest => v1::Level::Lowest,
        Level::Idle => v1::Level::Idle,
    }) as i32
}

/// A key that the client chose.
pub(crate) fn request_id(text: String) -> Judged<RequestId> {
    let most = RequestId::LENGTH_MAX;
    if text.is_empty() {
        return out_of_range("No request_id was given: choose a key for this request, such as a UUID.".to_owned());
    }
    if text.len() > most || !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return out_of_range(format!("A request_id is 1 to {most} printable ASCII characters, such as a UUID."));
    }
    let id = RequestId(text);
    if id.is_own() {
        let prefix = RequestId::OWN_PREFIX;
        return out_of_range(format!("Keys that begin with `{prefix}` are the server's own; choose another."));
    }
    Ok(id)
}

fn span(nanos: u64, what: &str) -> Judged<Nanos> {
    match Nanos(nanos) {
        Nanos::ZERO => Err(Refusal::new(
            RefusalKind::TooLate,
            format!("{what} is 0: that moment has passed already. Give a span from now, above 0."),
        )),
        span if span > SPAN_MAX => out_of_range(format!(
            "{what} is {nanos} ns, more than ten years; a negative number looks like this too. Spans are nanoseconds."
        )),
        span => Ok(span),
    }
}

fn device(text: &str) -> Judged<Option<DeviceId>> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse() {
        Ok(device) => Ok(Some(device)),
        Err(()) => {
            let shown: String = text.chars().take(32).collect();
            out_of_range(format!("`{shown}` is no disk's number: write MAJ:MIN, such as 8:0, or leave it out."))
        }
    }
}

/// The level, and for how long.
pub(crate) fn set_level(request: &v1::SetLevelRequest) -> Judged<(Level, AskedLifetime)> {
    let lifetime = match request.lifetime {
        None => AskedLifetime::UntilReleased,
        Some(Lifetime::ForNs(nanos)) => AskedLifetime::For(span(nanos, "for_ns")?),
        Some(Lifetime::Process(pid)) if i32::try_from(pid).is_err() => {
            return out_of_range(format!("{pid} is no process's number."));
        }
        Some(Lifetime::Process(pid)) => AskedLifetime::Process(pid),
    };
    Ok((level(request.level)?, lifetime))
}

/// A batch job.
pub(crate) fn job(request: v1::HoldJobRequest) -> Judged<JobSettings> {
    let v1::HoldJobRequest { name, size_bytes } = request;
    if let Some(why) = JobSettings::refusal_of_name(&name) {
        return out_of_range(format!("{why}."));
    }
    if let Some(size_bytes) = size_bytes.filter(|size| !(1..=SIZE_BYTES_MAX).contains(size)) {
        return out_of_range(format!(
            "A job moves 1 to {SIZE_BYTES_MAX} bytes, not {size_bytes}; leave it out if it is not known."
        ));
    }
    Ok(JobSettings { name, bytes: size_bytes })
}

/// The disk as a client in a guest sees it. A hint that is too long is none.
fn guest_disk(size_bytes: u64, serial: String) -> GuestDisk {
    GuestDisk { size_bytes, serial: Some(serial).filter(|serial| serial.len() <= NAME_LENGTH_MAX).unwrap_or_default() }
}

/// The disk as the client names it.
fn wanted_disk(named: &str, working: &str, guest_disk: &GuestDisk) -> Judged<WantedDisk> {
    let usual = || WantedDisk::Usual(guest_disk.clone());
    let working = || working.parse().map_or_else(|_| usual(), WantedDisk::Below);
    Ok(device(named)?.map_or_else(working, WantedDisk::Named))
}

/// When to step back.
pub(crate) fn schedule(request: v1::SetScheduleRequest) -> Judged<(Vec<v1::ScheduleEntry>, String)> {
    let v1::SetScheduleRequest { entries, time_zone } = request;
    if entries.len() > SCHEDULE_ENTRIES_MAX {
        return out_of_range(format!("A schedule has {SCHEDULE_ENTRIES_MAX} entries at most, not {}.", entries.len()));
    }
    for entry in &entries {
        level(entry.level)?;
        if entry.begin_minute >= MINUTES_OF_A_DAY || entry.end_minute >= MINUTES_OF_A_DAY {
            let (begin, end) = (entry.begin_minute, entry.end_minute);
            return out_of_range(format!("Minutes of a day are 0 to 1439, not {begin} to {end}."));
        }
        if entry.days > EVERY_DAY {
            return out_of_range(format!("`days` is a set of seven bits, Monday the first, not {}.", entry.days));
        }
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte);
    if time_zone.len() > TIME_ZONE_LENGTH_MAX || !time_zone.bytes().all(plain) || time_zone.starts_with('/') {
        return out_of_range("That is no name of a time zone; write one such as Europe/Berlin.".to_owned());
    }
    Ok((entries, time_zone))
}

/// How many entries of the ledger.
pub(crate) fn entries_max(request: &v1::CreditsRequest) -> u32 {
    request.entries_max.min(ENTRIES_MAX)
}

/// What is bought.
pub(crate) fn boost(request: v1::BoostRequest) -> Judged<Purchase> {
    let amount = match request.amount {
        None => return out_of_range("It does not say how much to buy: give `slices` or `for_ns`.".to_owned()),
        Some(Amount::Slices(0)) => return out_of_range("A boost is of one slice at least, not 0.".to_owned()),
        Some(Amount::Slices(slices)) => BoostAmount::Slices(slices),
        Some(Amount::ForNs(nanos)) => BoostAmount::For(span(nanos, "for_ns")?),
    };
    Ok(Purchase { id: request_id(request.request_id)?, amount, device: device(&request.device)? })
}

fn pool(offer: &v1::PoolOffer) -> Judged<PoolOffer> {
    Ok(PoolOffer { left_bytes: offer.left_bytes, device: device(&offer.device)? })
}

/// What is to be fitted in.
pub(crate) fn coordinate(request: v1::CoordinateRequest) -> Judged<Announcement> {
    let size_bytes = request.size_bytes;
    if !(1..=SIZE_BYTES_MAX).contains(&size_bytes) {
        return out_of_range(format!("An operation moves 1 to {SIZE_BYTES_MAX} bytes, not {size_bytes}."));
    }
    let access = match v1::Access::try_from(request.access) {
        Ok(v1::Access::Unspecified | v1::Access::SequentialRead) => AccessKind::SequentialRead,
        Ok(v1::Access::SequentialWrite) => AccessKind::SequentialWrite,
        Ok(v1::Access::RandomRead) => AccessKind::RandomRead,
        Ok(v1::Access::RandomWrite) => AccessKind::RandomWrite,
        Err(_) => {
            return out_of_range(format!("There is no kind of access {}: the contract has 1 to 4.", request.access));
        }
    };
    let within = match request.deadline {
        None => None,
        Some(Deadline::BeginWithinNs(nanos)) => Some(Within::Begin(span(nanos, "begin_within_ns")?)),
        Some(Deadline::DoneWithinNs(nanos)) => Some(Within::Done(span(nanos, "done_within_ns")?)),
    };
    let guest_disk = guest_disk(request.working_disk_size_bytes, request.working_disk_serial);
    let disk = wanted_disk(&request.device, &request.working_device, &guest_disk)?;
    let pool = request.pool.map(|offer| pool(&offer)).transpose()?;
    Ok(Announcement { id: request_id(request.request_id)?, size_bytes, access, within, disk, guest_disk, pool })
}

/// A report that keeps to the contract.
pub(crate) fn report(request: &v1::ReportRequest) -> Judged<()> {
    if request.processes.len() > PROCESSES_MAX {
        let count = request.processes.len();
        return out_of_range(format!("A report has the busiest {PROCESSES_MAX} processes, not {count}."));
    }
    if request.agent.len() > NAME_LENGTH_MAX {
        return out_of_range(format!(
            "The agent's version has {} bytes; it has {NAME_LENGTH_MAX} at most.",
            request.agent.len()
        ));
    }
    for process in &request.processes {
        if process.files.len() > FILES_MAX {
            let (pid, count) = (process.pid, process.files.len());
            return out_of_range(format!("A report has the largest {FILES_MAX} files of process {pid}, not {count}."));
        }
        if process.name.len() > NAME_LENGTH_MAX || process.files.iter().any(|file| file.path.len() > PATH_LENGTH_MAX) {
            return out_of_range(format!("A name in the report of process {} is longer than any can be.", process.pid));
        }
    }
    Ok(())
}
