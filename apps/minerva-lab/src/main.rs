//! The laboratory's command line.

fn main() {}
