//! How many descriptors this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as this process may. The usual 1,024 are enough for some 37 disks: each takes up to 27, for its image, its
/// socket, its front end's connection and memory, and three for each of its rings.
pub(crate) fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        eprintln!("minerva-blk: fewer disks can be served, as the number of open files was not raised: {error}");
    }
}
