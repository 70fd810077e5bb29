//! A disk's own settings: the elevator and BFQ's switches, written only when the operator's file says so.
//!
//! `queue/scheduler` reads `none mq-deadline kyber [bfq]`, the brackets around the one in force; a disk without a choice reads
//! `none`. Changing it loses every per-disk BFQ weight, and BFQ always starts with `low_latency` 1 (tried on Linux 6.18).

use crate::setting::{Reading, Setting};

/// What to write to one of BFQ's switches.
pub(crate) fn render_switch(on: bool) -> String {
    u8::from(on).to_string()
}

/// The elevator in force.
pub(crate) fn parse_elevator(text: &str) -> Option<Reading> {
    let mut words = text.split_ascii_whitespace();
    let bracketed = words.clone().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    let only = words.next().filter(|_| words.next().is_none());
    let name = bracketed.or(only).filter(|name| !name.is_empty())?;
    Some(Reading { setting: Setting::Elevator(name.to_owned()), undo: name.to_owned() })
}

/// Whether one of BFQ's switches is on.
pub(crate) fn parse_switch(text: &str, setting: fn(bool) -> Setting) -> Option<Reading> {
    let on = match text.trim() {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    Some(Reading { setting: setting(on), undo: render_switch(on) })
}

#[cfg(test)]
mod tests {
    use super::{parse_elevator, parse_switch};
    use crate::setting::Setting;

    #[test]
    fn the_elevator_in_force_is_read() {
        let table = [
            ("none mq-deadline kyber [bfq] \n", Some("bfq")),
            ("[none] mq-deadline kyber bfq \n", Some("none")),
            ("none\n", Some("none")),
            ("none mq-deadline\n", None),
            ("[]\n", None),
            ("", None),
        ];
        for (text, name) in table {
            assert_eq!(parse_elevator(text).map(|reading| reading.undo).as_deref(), name, "{text:?}");
        }
    }

    #[test]
    fn a_switch_is_read() {
        let table = [("1\n", Some("1")), ("0\n", Some("0")), ("", None), ("yes", None)];
        for (text, undo) in table {
            assert_eq!(
                parse_switch(text, Setting::LowLatency).map(|reading| reading.undo).as_deref(),
                undo,
                "{text:?}"
            );
        }
    }
}
