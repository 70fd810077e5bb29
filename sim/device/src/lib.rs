//! Disk models: service times of hard disks and SSDs.
