//! Credits, and the high priority that they buy.

use crate::argument::{place, text};
use crate::client::{self, MinervaClient};
use crate::outcome::{Failure, MinervaStatus, guard};
use minerva_client::BoostAmount;
use std::ffi::c_char;
use std::time::Duration;

/// What the account holds; all zeros without a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct MinervaAccount {
    /// What can be spent, in millionths of a credit.
    pub held_micro_credits: u64,
    /// Earned and not entered yet.
    pub accruing_micro_credits: u64,
    /// What a boosted slice costs.
    pub slice_price_micro_credits: u64,
    /// How long a slice is.
    pub slice_ns: u64,
}

/// What was bought; all zeros without a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct MinervaPurchase {
    /// What it cost, in millionths of a credit.
    pub price_micro_credits: u64,
    /// What is left.
    pub held_micro_credits: u64,
    /// For how many slices.
    pub slices: u32,
}

/// Tells what the account holds.
///
/// # Safety
///
/// `client` came from `minerva_connect`. `account` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_credits(client: *const MinervaClient, account: *mut MinervaAccount) -> MinervaStatus {
    guard(|| {
        // SAFETY: as the caller promises.
        let (client, account) = unsafe { (client::of(client)?, place(account, "account")?) };
        let answer = client.credits(0)?;
        *account = MinervaAccount {
            held_micro_credits: answer.held_micro_credits,
            accruing_micro_credits: answer.accruing_micro_credits,
            slice_price_micro_credits: answer.slice_price_micro_credits,
            slice_ns: answer.slice_ns,
        };
        Ok(())
    })
}

/// Buys high priority for `for_ns` nanoseconds, rounded up to whole slices, on one disk (`MAJ:MIN` of the host) or, with a null
/// pointer, on all. Returns when the purchase is durable and the boost is in force. `*purchase`, unless null, tells what was
/// bought. When the connection breaks it is asked for again under the same key, and bought once. After
/// `MINERVA_STATUS_UNREACHABLE` it may have been bought: the sentence names the key, under which `minerva_boost_as` asks again.
///
/// # Safety
///
/// `client` came from `minerva_connect`. `device` is null or a text that ends with a zero. `purchase` is null or may be written
/// to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_boost(
    client: *const MinervaClient,
    for_ns: u64,
    device: *const c_char,
    purchase: *mut MinervaPurchase,
) -> MinervaStatus {
    // SAFETY: as the caller promises.
    guard(|| unsafe { boost(client, None, for_ns, device, purchase) })
}

/// As `minerva_boost`, under a key of the caller's own that nobody else of the tenant uses: asked for twice under it, it is bought
/// once, so that a program that does not know whether it was bought asks again.
///
/// # Safety
///
/// As for `minerva_boost`. `request_id` is a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_boost_as(
    client: *const MinervaClient,
    request_id: *const c_char,
    for_ns: u64,
    device: *const c_char,
    purchase: *mut MinervaPurchase,
) -> MinervaStatus {
    guard(|| {
        // SAFETY: as the caller promises.
        let key = unsafe { text(request_id, "request_id")? };
        let key = key.ok_or_else(|| Failure::Invalid("request_id is null".to_owned()))?;
        // SAFETY: as the caller promises.
        unsafe { boost(client, Some(key), for_ns, device, purchase) }
    })
}

/// # Safety
///
/// As for `minerva_boost`.
unsafe fn boost(
    client: *const MinervaClient,
    key: Option<&str>,
    for_ns: u64,
    device: *const c_char,
    purchase: *mut MinervaPurchase,
) -> Result<(), Failure> {
    if for_ns == 0 {
        return Err(Failure::Invalid("for_ns is 0: a boost of nothing".to_owned()));
    }
    // SAFETY: as the caller promises.
    let (client, device) = unsafe { (client::of(client)?, text(device, "device")?) };
    let amount = BoostAmount::For(Duration::from_nanos(for_ns));
    let answer = match key {
        Some(key) => client.boost_as(key, amount, device)?,
        None => client.boost(amount, device)?,
    };
    // SAFETY: as the caller promises.
    if let Some(purchase) = unsafe { purchase.as_mut() } {
        *purchase = MinervaPurchase {
            price_micro_credits: answer.price_micro_credits,
            held_micro_credits: answer.held_micro_credits,
            slices: answer.slices,
        };
    }
    Ok(())
}
