//! Real-kernel laboratory: emulated disks, workloads, guests.
