//! The figure `skill`: what forecasts are worth on data they were not tuned on. `cargo bench -p minerva-forecast --bench skill` prints
//! it as JSON lines.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a figure reads files and is printed")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a figure stops at golden data that are damaged")]

#[path = "../tests/reference/mod.rs"]
#[expect(dead_code, reason = "another figure prints the rest")]
mod reference;

fn main() {
    reference::data::print("skill", reference::skill::measured().into_iter());
}
