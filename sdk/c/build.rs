//! Names the shared library as programs will look for it. The number is raised when an old program would not run with the new
//! library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libminerva.so.0");
}
