//! The keys of live views.

use anyhow::Context;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use std::time::Duration;

/// What came from the terminal.
pub(crate) enum Pressed {
    Nothing,
    Resized,
    /// Tenants, or guests' disks.
    OtherPage,
    /// Down by so many lines.
    Moved(isize),
    Quit,
}

/// Takes what came so far.
pub(crate) fn pressed() -> anyhow::Result<Pressed> {
    let mut result = Pressed::Nothing;
    while event::poll(Duration::ZERO).context("failed to look for keys")? {
        match event::read().context("failed to read a key")? {
            Event::Key(key) => {
                if is_quit(key) {
                    return Ok(Pressed::Quit);
                }
                if key.code == KeyCode::Char('d') {
                    result = Pressed::OtherPage;
                    continue;
                }
                let lines = match key.code {
                    KeyCode::Down | KeyCode::Char('j') => 1,
                    KeyCode::Up | KeyCode::Char('k') => -1,
                    KeyCode::PageDown => 10,
                    KeyCode::PageUp => -10,
                    _ => continue,
                };
                let before = if let Pressed::Moved(before) = result { before } else { 0 };
                result = Pressed::Moved(before + lines);
            }
            Event::Resize(..) => result = Pressed::Resized,
            _ => {}
        }
    }
    Ok(result)
}

fn is_quit(key: KeyEvent) -> bool {
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}
