//! Whether anybody needs others to be capped.
//!
//! A cap leaves unused what its tenant does not use, and a reader with one request at a time that waits for its cap leaves the disk to others
//! that cannot use more of it either. So caps are dealt where somebody gets less of what the disk delivers than its share says, and taken away when
//! nobody does: at once where those who were short are gone. Where they are there still, caps may be what gives them their part. So then it is tried
//! without for a moment after a pause; if somebody is short again the pause doubles (binary exponential backoff).

use crate::room::Claim;
use minerva_model::TenantId;
use serde::{Deserialize, Serialize};

/// Who gets less than this part of what its share says is short. Less would be the difference of one group among ten, or of a request or
/// two in a slice.
const SHORT: f64 = 0.85;
/// Slices without caps after which nobody needed them.
const TRIAL_SLICES: u32 = 3;
/// Slices in which nobody is short before a trial, at first and at most.
const PAUSE: (u32, u32) = (8, 256);
/// So many that were short are remembered.
const REMEMBERED_MAX: usize = 64;

/// One disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Shortage {
    /// Caps are dealt.
    is_capped: bool,
    /// Who was short since they are.
    short: Vec<TenantId>,
    /// Slices in a row in which nobody was short.
    content: u32,
    /// So many of them lead to a trial.
    pause: u32,
}

impl Default for Shortage {
    fn default() -> Self {
        Self { is_capped: false, short: Vec::new(), content: TRIAL_SLICES, pause: PAUSE.0 }
    }
}

impl Shortage {
    /// A slice in which the tenants of a disk did as `claims` says; whether caps are to be dealt.
    pub(crate) fn slice(&mut self, claims: &[Claim]) -> bool {
        let shares: f64 = claims.iter().map(|one| one.share).sum();
        let total: f64 = claims.iter().map(|one| one.bytes_per_second).sum();
        let is_short = |one: &&Claim| one.bytes_per_second < SHORT * total * one.share / shares;
        let short: Vec<TenantId> = claims.iter().filter(is_short).map(|one| one.tenant).collect();
        if short.is_empty() {
            self.content = self.content.saturating_add(1);
            match self.is_capped {
                true => self.try_without(claims),
                false if self.content >= TRIAL_SLICES => self.pause = PAUSE.0,
                false => {}
            }
            return self.is_capped;
        }
        if !self.is_capped {
            // They were missed within the trial.
            if self.content < TRIAL_SLICES {
                self.pause = (self.pause * 2).min(PAUSE.1);
            }
            self.short.clear();
        }
        (self.is_capped, self.content) = (true, 0);
        self.short.retain(|tenant| !short.contains(tenant));
        self.short.extend(short);
        self.short.drain(..self.short.len().saturating_sub(REMEMBERED_MAX));
        true
    }

    fn try_without(&mut self, claims: &[Claim]) {
        let are_there = claims.iter().any(|one| self.short.contains(&one.tenant));
        if !are_there || self.content >= self.pause {
            (self.is_capped, self.content) = (false, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Claim, Shortage};
    use minerva_model::TenantId;

    fn claim(tenant: u64, share: f64, bytes_per_second: f64) -> Claim {
        Claim { tenant: TenantId(tenant), share, bytes_per_second, requests: bytes_per_second / 8e3 }
    }

    /// Slices of two readers of these shares, whose parts without caps are `free`, and with caps as their shares say: in which of
    /// them caps stand.
    fn capped_in(slices: usize, shares: [f64; 2], free: [f64; 2]) -> Vec<usize> {
        let (mut shortage, mut is_capped) = (Shortage::default(), false);
        let mut capped = Vec::new();
        for slice in 0..slices {
            let rates = if is_capped { shares } else { free };
            is_capped = shortage.slice(&[claim(1, shares[0], rates[0] * 1e6), claim(2, shares[1], rates[1] * 1e6)]);
            capped.extend(is_capped.then_some(slice));
        }
        capped
    }

    #[test]
    fn nobody_is_capped_where_all_have_their_parts() {
        assert_eq!(capped_in(100, [5.0, 5.0], [8.0, 7.4]), [0_usize; 0]);
        // Whose share is larger has more without.
        assert_eq!(capped_in(100, [100.0, 50.0], [12.0, 3.0]).first(), Some(&0));
        assert_eq!(capped_in(100, [100.0, 50.0], [10.0, 5.0]), [0_usize; 0]);
    }

    #[test]
    fn who_needs_caps_has_them_nearly_always() {
        let capped = capped_in(600, [5.0, 100.0], [8.0, 8.0]);
        let free: Vec<usize> = (0..600).filter(|slice| !capped.contains(slice)).collect();
        // One slice each, after pauses that double.
        assert_eq!(free, [8, 25, 58, 123, 252, 509]);
    }

    #[test]
    fn caps_end_with_those_who_were_short() {
        let mut shortage = Shortage::default();
        let scanners = [claim(1, 5.0, 8e6), claim(2, 5.0, 8e6)];
        let with_short = [scanners[0], scanners[1], claim(3, 100.0, 1e6)];
        assert!(
            [&scanners[..], &with_short, &with_short].map(|claims| shortage.slice(claims)).ends_with(&[true, true])
        );
        // Who gets no more than it wants stays short, and so do its caps.
        assert!((0..100).all(|_| shortage.slice(&with_short)));
        assert!((0..100).all(|_| !shortage.slice(&scanners)));
    }
}
