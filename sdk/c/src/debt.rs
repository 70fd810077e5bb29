//! Work of the program's own that can wait.

use crate::argument::{given, place, text};
use crate::client::{self, MinervaClient};
use crate::outcome::{Failure, MinervaStatus, guard};
use minerva_client::{Debt, Error, Owing, blocking};
use std::ffi::c_char;
use std::time::Duration;

/// How much work there is, in time of a disk that nobody else uses. Begin with all zeros.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MinervaOwing {
    /// All of it, what is done included; above 0. A first guess will do: how long it really takes is measured.
    pub service_ns: u64,
    /// What is done of it.
    pub done_ns: u64,
    /// Space that the rest ties until it is done.
    pub tied_bytes: u64,
}

impl MinervaOwing {
    const fn owing(&self) -> Owing {
        Owing {
            service: Duration::from_nanos(self.service_ns),
            done: Duration::from_nanos(self.done_ns),
            tied_bytes: self.tied_bytes,
        }
    }
}

/// Work that is registered until it is ended, or the process ends in whatever way.
pub struct MinervaDebt {
    inner: blocking::HeldDebt,
}

/// Registers work that can wait until `minerva_debt_end`. `name` is of 1 to 64 letters, digits, `.`, `_` or `-`, and one of a name is
/// registered at a time. It should be done within `done_within_ns`; 0: 30 days. `path` is what it will work on, or something beside
/// it; null: the working directory.
///
/// # Safety
///
/// `client` came from `minerva_connect`. `name` is a text that ends with a zero, `path` too or null. `owing` can be read. `debt` may be
/// written to; it is null if this fails. The caller ends what it gets with `minerva_debt_end`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_debt_begin(
    client: *const MinervaClient,
    name: *const c_char,
    owing: *const MinervaOwing,
    done_within_ns: u64,
    path: *const c_char,
    debt: *mut *mut MinervaDebt,
) -> MinervaStatus {
    guard(|| {
        // SAFETY: as the caller promises.
        let debt = unsafe { place(debt, "debt")? };
        *debt = std::ptr::null_mut();
        // SAFETY: as the caller promises.
        let (client, owing) = unsafe { (client::of(client)?, given(owing, "owing")?) };
        // SAFETY: as the caller promises.
        let name = unsafe { text(name, "name")? }.ok_or_else(|| Failure::Invalid("name is null".to_owned()))?;
        // SAFETY: as the caller promises.
        let path = unsafe { text(path, "path")? }.map(Into::into);
        let done_within = (done_within_ns > 0).then(|| Duration::from_nanos(done_within_ns));
        let name = name.to_owned();
        let inner = client.debt(Debt { name, owing: owing.owing(), done_within, device: None, path })?;
        *debt = Box::into_raw(Box::new(MinervaDebt { inner }));
        Ok(())
    })
}

/// Whether work may be done now; where it may not, it waits for `wait_ns` at most until it may. True where nobody is there to say so, and
/// for a null pointer. A program that works asks again every few requests, with 0, and pauses when it may not.
///
/// # Safety
///
/// `debt` is null or came from `minerva_debt_begin`, and no other thread uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_debt_may_work(debt: *mut MinervaDebt, wait_ns: u64) -> bool {
    // SAFETY: as the caller promises.
    let Some(debt) = (unsafe { debt.as_mut() }) else { return true };
    debt.inner.may_work() || (wait_ns > 0 && debt.inner.wait(Duration::from_nanos(wait_ns)))
}

/// Whether it is registered still: `Refused` where the server has it no more, such as when a later debt of the same name took its place
/// (`key-reused`). Then nobody says any more when work may be done, and whose place was taken leaves it to the other. `Ok` also without a
/// server, while it is away, and for a null pointer.
///
/// # Safety
///
/// `debt` is null or came from `minerva_debt_begin`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_debt_status(debt: *const MinervaDebt) -> MinervaStatus {
    guard(|| {
        // SAFETY: as the caller promises.
        match unsafe { debt.as_ref() }.and_then(|debt| debt.inner.ended()) {
            Some(Error::Refused { word, message, code }) => {
                Err(Error::Refused { word: word.clone(), message: message.clone(), code: *code }.into())
            }
            _ => Ok(()),
        }
    })
}

/// Says how far it is, and how much there is by now; told at most once a second, and in the background.
///
/// # Safety
///
/// `debt` is null or came from `minerva_debt_begin`. `owing` is null or can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_debt_report(debt: *const MinervaDebt, owing: *const MinervaOwing) {
    // SAFETY: as the caller promises.
    if let (Some(debt), Some(owing)) = unsafe { (debt.as_ref(), owing.as_ref()) } {
        debt.inner.report(owing.owing());
    }
}

/// It is done, or will not be. A null pointer is nothing to do.
///
/// # Safety
///
/// `debt` is null or came from `minerva_debt_begin`, and nobody uses it any more. Any thread may end it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_debt_end(debt: *mut MinervaDebt) {
    guard(|| {
        if !debt.is_null() {
            // SAFETY: not null, made by `Box::into_raw`, and the caller's promise.
            drop(unsafe { Box::from_raw(debt) });
        }
        Ok(())
    });
}
