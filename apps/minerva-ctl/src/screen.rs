//! The terminal that live views take over.

use anyhow::{Context, ensure};
use ratatui::DefaultTerminal;
use std::io::{IsTerminal, stdout};

/// Takes the terminal over. If that fails it is as before.
pub(crate) fn take() -> anyhow::Result<DefaultTerminal> {
    ensure!(stdout().is_terminal(), "standard output is no terminal: use --once or --json");
    let taken = ratatui::try_init().inspect_err(|_| {
        // Keys come raw from the first step on; a terminal that is gone needs nothing.
        let _ = ratatui::try_restore();
    });
    taken.context("failed to take over the terminal; try --once")
}

/// Gives the terminal back, and hands on what came of the view.
pub(crate) fn give_back<T>(result: anyhow::Result<T>) -> anyhow::Result<T> {
    let given = ratatui::try_restore().context("failed to give the terminal back");
    let result = result?;
    given.map(|()| result)
}
