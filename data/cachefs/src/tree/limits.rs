//! What is set while a tree is served, and what is done once it no longer is.

use super::Tree;
use crate::disk_queue::QueueFigures;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

impl Tree {
    /// From now on the tenant may use so much. What is there stays, also where it is more.
    pub fn set_limits(&self, bytes_max: u64, files_max: u64) {
        self.account.set_limits(bytes_max, files_max);
    }

    /// From now on files go to the spill area at the limit, or writes are refused. A file that the kernel reads by itself stays in memory
    /// until it is closed.
    pub fn set_spills_when_full(&self, spills: bool) {
        self.spills_when_full.store(spills, Ordering::Relaxed);
    }

    /// From now on the service reads files that may still go to the spill area, or the kernel does. One that is open stays with whom it
    /// was opened.
    pub fn set_service_reads(&self, service: bool) {
        self.service_reads.store(service, Ordering::Relaxed);
    }

    /// From now on so many bytes stay free on the pool's disk.
    pub fn set_reserve(&self, bytes: u64) {
        if let Some(spill) = &self.spill {
            spill.set_reserve(bytes);
        }
        self.reserve_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Whether the kernel may write files by itself.
    pub fn kernel_writes(&self) -> bool {
        self.options.kernel_writes
    }

    pub(crate) fn spills_when_full(&self) -> bool {
        self.spills_when_full.load(Ordering::Relaxed)
    }

    pub(crate) fn reserve_bytes(&self) -> u64 {
        self.reserve_bytes.load(Ordering::Relaxed)
    }

    /// It was unmounted and is about to be served again: the kernel knows nothing of it any more, and says so of no single file.
    pub fn forget_all(&self) {
        // A file on its way to the disk would be a second node's as soon as somebody opens it, who would write to what is being copied.
        let _no_pass = self.passes.end();
        self.handles.write().unwrap_or_else(PoisonError::into_inner).clear();
        self.mapped.clear();
        for node in self.nodes.take_all() {
            let mut state = node.lock();
            // Its last user's end may not have been told before the mount was gone.
            if state.is_gone {
                self.refund(&node, &mut state);
            } else if state.may_be_stored_to || state.has_advance {
                self.settle(&node, &mut state, 0);
            }
        }
        self.passes.allow();
    }

    /// What its tenant met before the disk.
    pub fn disk_figures(&self) -> QueueFigures {
        self.options.disk.as_ref().map(|disk| disk.figures()).unwrap_or_default()
    }
}
