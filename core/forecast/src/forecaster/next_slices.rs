//! The next slice of all tenants at once: what the trees say of each is asked once a slice, block by block.

use super::tenants::Tenant;
use super::{Forecaster, SILENT_SLICES};
use crate::boosting::{BLOCK, Block};
use crate::host::Learner;

impl Forecaster {
    /// Asks the trees anew what they say of each tenant's next slice, as [`Self::observe`] does at its end. Allocates nothing.
    pub fn foresee_next_slices(&mut self) {
        let learner = &self.next_slice;
        let (mut block, mut members): (_, [Option<&mut Tenant>; BLOCK]) = (Block::default(), Default::default());
        for tenant in self.tenants.values_mut() {
            tenant.by_trees = None;
            let Some(row) = tenant.row().filter(|_| tenant.idle_slices() < SILENT_SLICES) else { continue };
            block.push(&row[..]);
            members[block.len() - 1] = Some(tenant);
            if block.len() == BLOCK {
                tell(learner, &mut block, &mut members);
            }
        }
        tell(learner, &mut block, &mut members);
    }

    /// What the trees said is of other trees than there are now.
    pub(super) fn forget_next_slices(&mut self) {
        self.tenants.values_mut().for_each(|tenant| tenant.by_trees = None);
    }
}

/// Tells each of the block's tenants what the trees say, and empties the block.
fn tell(learner: &Learner, block: &mut Block, members: &mut [Option<&mut Tenant>; BLOCK]) {
    let bases = block.bases();
    if let Some(answers) = learner.predict_block(block, &bases) {
        for (tenant, answer) in members.iter_mut().flatten().zip(answers) {
            tenant.by_trees = Some(answer);
        }
    }
    members.fill_with(|| None);
    block.clear();
}
