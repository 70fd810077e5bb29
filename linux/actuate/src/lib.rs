//! Writes knobs, keeps the undo journal and the lease.
