//! The figure `golden`: every model against reference implementations. `cargo bench -p minerva-forecast --bench golden` prints it as
//! JSON lines.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a figure reads files and is printed")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a figure stops at golden data that are damaged")]

#[path = "../tests/reference/mod.rs"]
#[expect(dead_code, reason = "another figure prints the rest")]
mod reference;

fn main() {
    let measured = [reference::arima::measured(), reference::boosting::measured(), reference::seasonal::measured()];
    reference::data::print("golden", measured.into_iter().flatten());
}
