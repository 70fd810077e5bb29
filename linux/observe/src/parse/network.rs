//! `/proc/<pid>/net/dev`: what the interfaces of the process's network namespace carried.

use super::{Malformed, lines};

/// Bytes received and sent by all interfaces but the loopback, and the lines that were passed over. The first two lines are
/// headings.
pub fn parse_network_bytes(text: &[u8]) -> (u64, Malformed) {
    let mut total = 0_u64;
    let mut malformed = Malformed::default();
    for line in lines(text).filter(|line| !line.contains(&b'|')) {
        match std::str::from_utf8(line).ok().and_then(parse_line) {
            Some(bytes) => total = total.saturating_add(bytes),
            None => malformed.note(line),
        }
    }
    (total, malformed)
}

/// The byte columns are the first of eight for receiving and the first of eight for sending.
fn parse_line(line: &str) -> Option<u64> {
    let (name, numbers) = line.rsplit_once(':')?;
    if name.trim() == "lo" {
        return Some(0);
    }
    let mut words = numbers.split_ascii_whitespace();
    let received: u64 = words.next()?.parse().ok()?;
    let sent: u64 = words.nth(7)?.parse().ok()?;
    Some(received.saturating_add(sent))
}

#[cfg(test)]
mod tests {
    use super::parse_network_bytes;

    #[test]
    fn real_text() {
        let text = b"Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    lo: 9999 1 0 0 0 0 0 0 9999 1 0 0 0 0 0 0\n  eth0: 1000 5 0 0 0 0 0 0 234 4 0 0 0 0 0 0\neth1:1 5 0 0 0 0 0 0 2 4 0 0 0 0 0 0\n eth2: 7\n";
        let (total, malformed) = parse_network_bytes(text);
        assert_eq!(total, 1237);
        assert_eq!(malformed.count, 1);
    }
}
