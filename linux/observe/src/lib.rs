//! Reads cgroups, disks and processes into samples.
