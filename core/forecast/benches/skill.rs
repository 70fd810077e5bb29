//! The figure `skill`: what forecasts are worth on data they were not tuned on. `cargo bench -p minerva-forecast --bench skill` prints
//! it as JSON lines. With `-- --tune` it prints what the settings of the trees were chosen from, which is on other data.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a figure reads files and is printed")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a figure stops at golden data that are damaged")]

#[path = "../tests/reference/mod.rs"]
#[expect(dead_code, reason = "another figure prints the rest")]
mod reference;

fn main() {
    if std::env::args().any(|argument| argument == "--tune") {
        reference::skill::sums_tuned();
        return reference::skill::tuned();
    }
    reference::data::print("skill", reference::skill::measured().into_iter());
}
