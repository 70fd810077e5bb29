//! Stepping back.

use crate::argument::place;
use crate::client::{self, MinervaClient};
use crate::outcome::{Failure, MinervaStatus, guard};
use minerva_client::{Level, Lifetime, blocking};
use std::time::Duration;

/// How far a tenant steps back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum MinervaLevel {
    /// As everyone.
    Normal = 1,
    /// A part of what it would have.
    Low = 2,
    /// A small part of it.
    Lowest = 3,
    /// Only when nobody else uses the disk.
    Idle = 4,
}

impl MinervaLevel {
    const ALL: [(Self, Level); 4] = [
        (Self::Normal, Level::Normal),
        (Self::Low, Level::Low),
        (Self::Lowest, Level::Lowest),
        (Self::Idle, Level::Idle),
    ];

    /// C may hand over any number for an enumeration.
    fn of_number(number: u32) -> Result<Level, Failure> {
        let found = Self::ALL.into_iter().find(|(known, _)| *known as u32 == number);
        found.map(|(_, level)| level).ok_or_else(|| Failure::Invalid(format!("there is no level {number}")))
    }

    fn of_level(level: Level) -> Self {
        Self::ALL.into_iter().find(|(_, known)| *known == level).map_or(Self::Normal, |(level, _)| level)
    }
}

/// A level that is held until it is released, or the process ends in whatever way.
pub struct MinervaHeld {
    _inner: blocking::Held,
}

/// Steps back until `minerva_release`. Returns when the level is in force; a server that is away meanwhile does not fail it, and
/// the level is taken when it is back. `level` is a `minerva_level`.
///
/// # Safety
///
/// `client` came from `minerva_connect`. `held` may be written to; it is null if this fails. The caller ends what it gets with
/// `minerva_release`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_deprioritize(
    client: *const MinervaClient,
    level: u32,
    held: *mut *mut MinervaHeld,
) -> MinervaStatus {
    guard(|| {
        // SAFETY: as the caller promises.
        let held = unsafe { place(held, "held")? };
        *held = std::ptr::null_mut();
        // SAFETY: as the caller promises.
        let client = unsafe { client::of(client)? };
        let inner = client.hold_level(MinervaLevel::of_number(level)?)?;
        *held = Box::into_raw(Box::new(MinervaHeld { _inner: inner }));
        Ok(())
    })
}

/// Comes back. A null pointer is nothing to do.
///
/// # Safety
///
/// `held` is null or came from `minerva_deprioritize`, and nobody uses it any more. Any thread may release it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_release(held: *mut MinervaHeld) {
    guard(|| {
        if !held.is_null() {
            // SAFETY: not null, made by `Box::into_raw`, and the caller's promise.
            drop(unsafe { Box::from_raw(held) });
        }
        Ok(())
    });
}

/// Steps back for `for_ns` nanoseconds, or with 0 until another level is set; comes back with `MINERVA_LEVEL_NORMAL`. It outlasts
/// the program. `*in_force`, unless null, is the level in force after it, which one that is held or scheduled may set
/// further back.
///
/// # Safety
///
/// `client` came from `minerva_connect`. `in_force` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_set_level(
    client: *const MinervaClient,
    level: u32,
    for_ns: u64,
    in_force: *mut MinervaLevel,
) -> MinervaStatus {
    guard(|| {
        // SAFETY: as the caller promises.
        let client = unsafe { client::of(client)? };
        let lifetime = match for_ns {
            0 => Lifetime::UntilReleased,
            span => Lifetime::For(Duration::from_nanos(span)),
        };
        let level = client.set_level(MinervaLevel::of_number(level)?, lifetime)?;
        // SAFETY: as the caller promises.
        if let Some(in_force) = unsafe { in_force.as_mut() } {
            *in_force = MinervaLevel::of_level(level);
        }
        Ok(())
    })
}
