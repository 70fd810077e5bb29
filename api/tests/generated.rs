//! The Rust code of the contract is what the `.proto` files say. It is committed, as the generators take longer to build than the daemon
//! they would be built for. After a change of a `.proto` file, `UPDATE_EXPECT=1 cargo test -p minerva-api --test generated` writes it.

use std::path::Path;

#[test]
fn the_rust_code_is_what_the_contract_says() {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let files = protox::compile(["minerva/v1/operator.proto", "minerva/v1/participation.proto"], [proto]);
    let folder = tempfile::tempdir().expect("a directory");
    // What a program prints as JSON are these messages with the names of the contract.
    let generator = tonic_prost_build::configure().type_attribute(".", "#[derive(serde::Serialize)]");
    generator.out_dir(&folder).emit_rerun_if_changed(false).compile_fds(files.expect("a contract")).expect("code");
    let code = std::fs::read_to_string(folder.path().join("minerva.v1.rs")).expect("a file of the package's name");
    expect_test::expect_file!["../src/generated/minerva.v1.rs"].assert_eq(&code);
}
