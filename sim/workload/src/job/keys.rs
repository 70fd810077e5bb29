//! One row a key: its names, and what its value does.

use super::PROCESSES_MAX;
use super::options::{Direction, Options, Promise};
use super::value::{Amount, Extent, Wrong, amount, bytes, extent, switch, time, whole};
use minerva_blocksched::Class;
use minerva_model::{Level, Nanos};

/// A value, absent for a key that stands alone.
type Value<'a> = Option<&'a str>;
type Set = fn(&mut Options, Value<'_>) -> Result<(), Wrong>;

pub(super) enum Effect {
    /// Takes a value.
    Set(Set),
    /// fio's, and without meaning for a simulated disk; why.
    Nothing(&'static str),
}

pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) effect: Effect,
}

const fn set(name: &'static str, set: Set) -> Key {
    Key { name, effect: Effect::Set(set) }
}

const fn nothing(name: &'static str, why: &'static str) -> Key {
    Key { name, effect: Effect::Nothing(why) }
}

/// Microseconds and seconds, the units of bare times.
const MICROSECOND_NS: u64 = 1_000;
const SECOND_NS: u64 = 1_000_000_000;
const NO_FILES: &str = "the simulated disk has no files";
const NO_PROCESSES: &str = "a simulated process has no memory, threads or processors";
const OWN_REPORT: &str = "the simulator's report is its own";

/// fio's other names of keys.
const ALIASES: [(&str, &str); 6] = [
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("io_limit", "io_size"),
    ("prio_class", "prioclass"),
    ("minerva_vm", "minerva_tenant"),
    ("iops", "rate_iops"),
];

#[expect(clippy::unit_arg, reason = "a row is one expression, and its assignment is the whole effect")]
static KEYS: &[Key] = &[
    set("rw", |o, v| direction(o, needed(v)?)),
    set("rwmixread", |o, v| Ok(o.read_percent = whole(needed(v)?, 0, 100)? as u8)),
    set("rwmixwrite", |o, v| Ok(o.read_percent = 100 - whole(needed(v)?, 0, 100)? as u8)),
    set("bs", |o, v| Ok(o.block_bytes = block(needed(v)?)?)),
    set("iodepth", |o, v| Ok(o.depth = whole(needed(v)?, 1, 65_536)? as u32)),
    set("ioengine", |o, v| Ok(o.synchronous = is_synchronous(needed(v)?)?)),
    set("direct", |_, v| {
        if switch(v)? { Ok(()) } else { Err("there is no page cache in front of the simulated disk".to_owned()) }
    }),
    set("buffered", |_, v| {
        if switch(v)? { Err("there is no page cache in front of the simulated disk".to_owned()) } else { Ok(()) }
    }),
    set("rate", |o, v| Ok(o.rate = Some(positive(bytes(byte_rate(needed(v)?))?)?))),
    set("rate_iops", |o, v| Ok(o.rate_requests = Some(whole(needed(v)?, 1, 1_000_000_000)?))),
    set("rate_process", |o, v| Ok(o.poisson = one_of(needed(v)?, &[("linear", false), ("poisson", true)])?)),
    set("thinktime", |o, v| Ok(o.think = time(needed(v)?, MICROSECOND_NS)?)),
    set("thinktime_blocks", |o, v| Ok(o.think_blocks = whole(needed(v)?, 1, u64::from(u32::MAX))? as u32)),
    set("size", |o, v| Ok(o.size = Some(extent(needed(v)?)?))),
    set("io_size", |o, v| Ok(o.io_size = Some(extent(needed(v)?)?).filter(|size| !is_none(*size)))),
    set("offset", |o, v| Ok(o.offset = extent(needed(v)?)?)),
    set("offset_increment", |o, v| Ok(o.offset_increment = extent(needed(v)?)?)),
    set("numjobs", |o, v| Ok(o.processes = whole(needed(v)?, 1, PROCESSES_MAX)? as u32)),
    set("prio", |o, v| Ok(o.level = Some(whole(needed(v)?, 0, 7)? as u8))),
    set("prioclass", |o, v| Ok(o.class = Some(class(needed(v)?)?))),
    set("nice", |o, v| Ok(o.nice = Some(nice(needed(v)?)?))),
    set("runtime", |o, v| Ok(o.runtime = Some(time(needed(v)?, SECOND_NS)?).filter(|time| *time > Nanos::ZERO))),
    set("time_based", |o, v| Ok(o.time_based = switch(v)?)),
    set("startdelay", |o, v| Ok(o.start_delay = time(needed(v)?, SECOND_NS)?)),
    set("random_distribution", |o, v| Ok(o.zipf = distribution(needed(v)?)?)),
    set("fsync", |o, v| Ok(o.fsync = flushes(needed(v)?)?)),
    set("fdatasync", |o, v| Ok(o.fdatasync = flushes(needed(v)?)?)),
    set("sync", |o, v| {
        let words = [("0", false), ("none", false), ("1", true), ("sync", true), ("dsync", true)];
        Ok(o.sync_each = one_of(v.unwrap_or("1"), &words)?)
    }),
    set("minerva_async_writes", |o, v| Ok(o.async_writes = switch(v)?)),
    set("minerva_weight", |o, v| Ok(o.weight = whole(needed(v)?, 1, 10_000)? as u32)),
    set("minerva_contract", |o, v| Ok(o.promise = Some(promise(needed(v)?)?))),
    set("minerva_reservation", |o, v| Ok(o.reservation = Some(amount(needed(v)?)?))),
    set("minerva_limit", |o, v| Ok(o.limit = Some(limit(needed(v)?)?))),
    set("minerva_tag", |o, v| Ok(o.tag = Some(whole(needed(v)?, 1, 254)? as u8))),
    set("minerva_tag_max", |o, v| Ok(o.tag_max = whole(needed(v)?, 1, 254)? as u8)),
    set("minerva_tag_default", |o, v| Ok(o.tag_default = whole(needed(v)?, 1, 254)? as u8)),
    set("minerva_tenant", |o, v| Ok(o.tenant = Some(needed(v)?.to_owned()))),
    set("minerva_tenant_weight", |o, v| Ok(o.tenant_weight = Some(whole(needed(v)?, 1, 10_000)? as u32))),
    set("minerva_tenant_level", |o, v| {
        let levels = Level::ALL.map(|level| (level.as_str(), level));
        Ok(o.tenant_level = Some(one_of(needed(v)?, &levels)?))
    }),
    set("minerva_guest_scheduler", |o, v| Ok(o.guest_scheduler = Some(needed(v)?.to_owned()))),
    nothing("filename", "the disk is named on the command line"),
    nothing("directory", NO_FILES),
    nothing("nrfiles", NO_FILES),
    nothing("create_on_open", NO_FILES),
    nothing("fallocate", NO_FILES),
    nothing("overwrite", NO_FILES),
    nothing("unlink", NO_FILES),
    nothing("allow_file_create", NO_FILES),
    nothing("invalidate", "there is no page cache"),
    nothing("end_fsync", "what is after a job's end is not measured"),
    nothing("norandommap", "a simulated process never keeps a map of blocks it has had"),
    nothing("randrepeat", "the seed is the simulation's"),
    nothing("randseed", "the seed is the simulation's"),
    nothing("refill_buffers", "requests carry no data"),
    nothing("thread", NO_PROCESSES),
    nothing("cpus_allowed", NO_PROCESSES),
    nothing("group_reporting", OWN_REPORT),
    nothing("description", OWN_REPORT),
    nothing("percentile_list", OWN_REPORT),
    nothing("log_avg_msec", OWN_REPORT),
    nothing("gtod_reduce", OWN_REPORT),
];

/// The key called so, or by one of fio's other names for it.
pub(super) fn key(name: &str) -> Option<&'static Key> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    KEYS.iter().find(|key| key.name == name)
}

/// The key that somebody who wrote `name` most likely meant.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    /// No key is longer, and comparing is quadratic in the length.
    const NAME_MAX: usize = 40;
    if name.chars().count() > NAME_MAX {
        return None;
    }
    let (own, length) = (letters(name), name.chars().count());
    // The measure cannot pass the limit unless this many letters are common to both, and takes much longer to find that out.
    let may_be_near = |key: &&str| {
        let common: usize = own.iter().zip(letters(key)).map(|(left, right)| usize::from(*left.min(&right))).sum();
        common * (length + key.len()) > length * key.len()
    };
    let likeness = |key: &str| strsim::jaro_winkler(name, key);
    let names = KEYS.iter().map(|key| key.name);
    names
        .filter(may_be_near)
        .map(|key| (likeness(key), key))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > 0.8)
        .map(|(_, key)| key)
}

/// How often each letter occurs, others thrown together.
fn letters(text: &str) -> [u8; 32] {
    let mut counts = [0_u8; 32];
    for byte in text.bytes() {
        let count = &mut counts[usize::from(byte % 32)];
        *count = count.saturating_add(1);
    }
    counts
}

fn needed(value: Value<'_>) -> Result<&str, Wrong> {
    value.filter(|value| !value.is_empty()).ok_or_else(|| "a value is needed".to_owned())
}

fn one_of<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, Wrong> {
    let found = choices.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        format!("`{text}` is not one of {}", names.join(", "))
    })
}

fn direction(options: &mut Options, text: &str) -> Result<(), Wrong> {
    use Direction::{Mixed, Read, Trim, Write};
    let choices = [
        ("read", (Read, false)),
        ("write", (Write, false)),
        ("rw", (Mixed, false)),
        ("readwrite", (Mixed, false)),
        ("randread", (Read, true)),
        ("randwrite", (Write, true)),
        ("randrw", (Mixed, true)),
        ("trim", (Trim, false)),
        ("randtrim", (Trim, true)),
    ];
    (options.direction, options.random) = one_of(text, &choices)?;
    Ok(())
}

fn block(text: &str) -> Result<u32, Wrong> {
    match bytes(text)? {
        0 => Err("a block of no bytes".to_owned()),
        size if !size.is_multiple_of(512) => Err(format!("{size} bytes are not a multiple of a sector, 512 bytes")),
        size => u32::try_from(size).map_err(|_| "a block of 4 GiB or more".to_owned()),
    }
}

fn is_synchronous(text: &str) -> Result<bool, Wrong> {
    let choices = [
        ("sync", true),
        ("psync", true),
        ("vsync", true),
        ("pvsync", true),
        ("pvsync2", true),
        ("libaio", false),
        ("io_uring", false),
        ("io_uring_cmd", false),
        ("posixaio", false),
    ];
    one_of(text, &choices)
}

/// A rate may end in `/s`.
fn byte_rate(text: &str) -> &str {
    text.strip_suffix("/s").unwrap_or(text)
}

fn positive(value: u64) -> Result<u64, Wrong> {
    if value == 0 { Err("a rate of nothing".to_owned()) } else { Ok(value) }
}

fn class(text: &str) -> Result<Class, Wrong> {
    one_of(text, &[("1", Class::RealTime), ("2", Class::BestEffort), ("3", Class::Idle)])
}

fn nice(text: &str) -> Result<i8, Wrong> {
    match text.parse::<i8>() {
        Ok(nice) if (-20..=19).contains(&nice) => Ok(nice),
        _ => Err(format!("`{text}` is not a whole number from -20 to 19")),
    }
}

fn distribution(text: &str) -> Result<Option<f64>, Wrong> {
    if text == "random" {
        return Ok(None);
    }
    let theta = text
        .strip_prefix("zipf:")
        .ok_or_else(|| format!("`{text}` is not simulated; there are random and zipf:theta"))?;
    match theta.parse::<f64>() {
        Ok(exponent) if exponent > 0.0 && exponent <= 10.0 => Ok(Some(exponent)),
        _ => Err(format!("`{theta}` is not an exponent above 0 and at most 10")),
    }
}

fn flushes(text: &str) -> Result<Option<u32>, Wrong> {
    Ok(Some(whole(text, 0, u64::from(u32::MAX))? as u32).filter(|every| *every > 0))
}

fn promise(text: &str) -> Result<Promise, Wrong> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let [rate, burst, delay] = parts[..] else {
        return Err("a contract is rate,burst,delay, such as 8800KB/s,64k,100ms".to_owned());
    };
    let promise = Promise { rate: amount(rate)?, burst: amount(burst)?, delay: time(delay, MICROSECOND_NS)? };
    if is_nothing(promise.rate) {
        return Err("a contract with a rate of nothing".to_owned());
    }
    if is_nothing(promise.burst) {
        return Err("a contract with a burst of nothing, which no request is within".to_owned());
    }
    if promise.delay == Nanos::ZERO {
        return Err("a contract with a delay of nothing, which no disk can keep".to_owned());
    }
    Ok(promise)
}

fn limit(text: &str) -> Result<Amount, Wrong> {
    let limit = amount(text)?;
    if is_nothing(limit) {
        return Err("a limit of nothing; without the key there is no limit".to_owned());
    }
    Ok(limit)
}

/// fio takes a size of 0, which is its default, for none given.
fn is_none(extent: Extent) -> bool {
    extent == Extent::Bytes(0) || extent == Extent::Percent(0.0)
}

fn is_nothing(amount: Amount) -> bool {
    match amount {
        Amount::Bytes(bytes) => bytes == 0,
        Amount::Requests(requests) => requests <= 0.0,
    }
}
