//! Sharing time among queues of one priority: in proportion to the blocks that each frees in a core-second.

/// Work that frees nothing, such as a scrub, still has this part of what the densest beside it has.
const WEIGHT_LEAST_SHARE: f64 = 0.05;
/// Rounds in which what one does not need goes to the others; after them the order of the list decides.
const ROUNDS: usize = 4;

/// What a queue wants and gets, in core-seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Claim {
    pub(crate) work: f64,
    pub(crate) weight: f64,
    pub(crate) granted: f64,
}

/// Grants `core_seconds`, none to spare while anybody wants more.
pub(crate) fn share_out(core_seconds: f64, claims: &mut [Claim]) {
    let wanted: f64 = claims.iter().map(|claim| claim.work).sum();
    if wanted <= core_seconds {
        claims.iter_mut().for_each(|claim| claim.granted = claim.work);
        return;
    }
    let densest = claims.iter().map(|claim| claim.weight).fold(0.0, f64::max);
    let weight = |claim: &Claim| if densest > 0.0 { claim.weight.max(WEIGHT_LEAST_SHARE * densest) } else { 1.0 };
    let mut left = core_seconds;
    for _ in 0..ROUNDS {
        let hungry: f64 = claims.iter().filter(|claim| claim.granted < claim.work).map(weight).sum();
        if hungry <= 0.0 || left <= 0.0 {
            return;
        }
        let part = left / hungry;
        for claim in claims.iter_mut().filter(|claim| claim.granted < claim.work) {
            let more = (part * weight(claim)).min(claim.work - claim.granted);
            claim.granted += more;
            left -= more;
        }
    }
    for claim in claims {
        let more = (claim.work - claim.granted).clamp(0.0, left.max(0.0));
        claim.granted += more;
        left -= more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(core_seconds: f64, claims: &[(f64, f64)]) -> Vec<f64> {
        let mut claims: Vec<Claim> =
            claims.iter().map(|(work, weight)| Claim { work: *work, weight: *weight, granted: 0.0 }).collect();
        share_out(core_seconds, &mut claims);
        claims.iter().map(|claim| (claim.granted * 1000.0).round() / 1000.0).collect()
    }

    #[test]
    fn time_goes_by_density_and_what_one_needs_not_goes_to_the_others() {
        assert_eq!(granted(30.0, &[(100.0, 20.0), (100.0, 10.0)]), [20.0, 10.0]);
        assert_eq!(granted(30.0, &[(5.0, 20.0), (100.0, 10.0)]), [5.0, 25.0]);
        assert_eq!(granted(200.0, &[(5.0, 20.0), (100.0, 10.0)]), [5.0, 100.0]);
        assert_eq!(granted(21.0, &[(100.0, 20.0), (100.0, 0.0)]), [20.0, 1.0], "who frees nothing is not starved");
        assert_eq!(granted(8.0, &[(100.0, 0.0), (100.0, 0.0)]), [4.0, 4.0]);
        assert_eq!(granted(0.0, &[(1.0, 1.0)]), [0.0]);
    }
}
