//! Standard output that takes nothing any more. `println!` panics then, and a panic tells people of a mistake in the program.

use std::panic;
use std::process;

/// A closed pipe ends the program as the signal for it would: quietly, as of `head` that has enough.
const CLOSED: i32 = 128 + 13;
const FAILED: i32 = 2;

/// From now on the program ends with an exit status, and with a sentence where it was not a reader that went.
pub(crate) fn end_without_a_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        match info.payload().downcast_ref::<String>().and_then(|text| text.strip_prefix("failed printing to stdout: "))
        {
            Some(why) if why.starts_with("Broken pipe") => process::exit(CLOSED),
            Some(why) => {
                eprintln!("minerva-sim: failed to write to standard output: {why}");
                process::exit(FAILED)
            }
            None => report(info),
        }
    }));
}
