//! Compiles the wire contract. `protox` reads the files in Rust, so that no machine needs `protoc`.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(["minerva/v1/operator.proto", "minerva/v1/participation.proto"], ["proto"])?;
    // What a program prints as JSON are these messages with the names of the contract.
    tonic_prost_build::configure().type_attribute(".", "#[derive(serde::Serialize)]").compile_fds(files)?;
    Ok(())
}
