//! Signals and history to shares, one file a policy.
