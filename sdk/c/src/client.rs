//! A connection.

use crate::argument::{given, place, text};
use crate::outcome::{Failure, MinervaStatus, c_text, guard};
use minerva_client::{Options, blocking};
use std::ffi::{CString, c_char};
use std::sync::OnceLock;

/// A tenant's connection. Threads may share it. A child that the process forks may not: it connects for itself.
pub struct MinervaClient {
    pub(crate) inner: blocking::Client,
    /// Why there was no server when that was asked first: C keeps the pointer.
    absence: OnceLock<CString>,
}

/// Connects to the server at `address`, such as `unix:/run/minerva/tenant.sock`. With a null pointer: where `MINERVA_ADDRESS`
/// says, else where a server listens on this machine, else through an agent that is started.
///
/// Without a server this succeeds too, and gives a client that does nothing (`minerva_absence`); standard error is told once.
/// It fails when somebody has to mend something, such as an address that cannot be read. `*client` is null then.
///
/// # Safety
///
/// `address` is null or a text that ends with a zero. `client` may be written to. The caller ends what it gets with
/// `minerva_disconnect`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_connect(address: *const c_char, client: *mut *mut MinervaClient) -> MinervaStatus {
    guard(|| {
        // SAFETY: as the caller promises.
        let client = unsafe { place(client, "client")? };
        *client = std::ptr::null_mut();
        // SAFETY: as the caller promises.
        let address = unsafe { text(address, "address")? };
        let mut options = Options::from_environment()?;
        if let Some(address) = address {
            options.address = Some(address.parse::<minerva_client::Address>()?);
        }
        let inner = blocking::Client::with_options(options)?;
        *client = Box::into_raw(Box::new(MinervaClient { inner, absence: OnceLock::new() }));
        Ok(())
    })
}

/// Ends a connection. Levels that are held and operations that are under way keep what they need of it until they end too.
/// A null pointer is nothing to do.
///
/// # Safety
///
/// `client` is null or came from `minerva_connect`, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_disconnect(client: *mut MinervaClient) {
    guard(|| {
        if !client.is_null() {
            // SAFETY: not null, made by `Box::into_raw`, and the caller's promise.
            drop(unsafe { Box::from_raw(client) });
        }
        Ok(())
    });
}

/// Why nothing that is asked has an effect; null when there is a server. It belongs to the client. A server that comes later is
/// found by a later call, and one behind `minerva-agent` may turn out to be absent only when something is asked.
///
/// # Safety
///
/// `client` is null or came from `minerva_connect`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_absence(client: *const MinervaClient) -> *const c_char {
    // SAFETY: as the caller promises.
    let client = unsafe { client.as_ref() };
    let reason = client.and_then(|client| {
        let reason = client.inner.absence()?;
        Some(client.absence.get_or_init(|| c_text(reason)).as_ptr())
    });
    reason.unwrap_or(std::ptr::null())
}

/// The client that C names.
///
/// # Safety
///
/// `client` is null or came from `minerva_connect`.
pub(crate) unsafe fn of<'a>(client: *const MinervaClient) -> Result<&'a blocking::Client, Failure> {
    // SAFETY: as the caller promises.
    Ok(&unsafe { given(client, "client")? }.inner)
}
