//! How far long work is, for a person at a terminal.

use crate::output;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// How often it is said.
const PERIOD: Duration = Duration::from_secs(2);

/// Says now and then how far work is; where standard error is no terminal, nothing.
#[derive(Debug)]
pub(crate) struct Progress {
    told: Instant,
    is_shown: bool,
    /// What the work is on.
    of: String,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { told: Instant::now(), is_shown: io::stderr().is_terminal(), of: String::new() }
    }

    /// What is worked on from here.
    pub(crate) fn begin(&mut self, of: String) {
        self.of = of;
    }

    /// Called as often as one likes.
    pub(crate) fn tell(&mut self, how_far: impl FnOnce() -> String) {
        if self.is_shown && self.told.elapsed() >= PERIOD {
            self.told = Instant::now();
            output::note(&format!("{}{}", self.of, how_far()));
        }
    }

    /// So many of so many.
    pub(crate) fn part(&mut self, what: &str, done: usize, all: usize) {
        self.tell(|| format!("{what}, {} %", 100 * done / all.max(1)));
    }
}
