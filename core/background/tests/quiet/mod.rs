//! A disk that nobody uses.

use minerva_background::Foreground;

pub(crate) const QUIET: Foreground = Foreground {
    busy: 0.0,
    bytes_per_second: 0.0,
    written_bytes_per_second: 0.0,
    requests_per_second: 0.0,
    is_beside_work: false,
};
