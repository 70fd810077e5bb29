//! Compiles two versions of the tenants' contract: the first, as it was committed, and today's with what a later one may add.
//! Lists the methods of today's services besides.

use std::error::Error;
use std::path::{Path, PathBuf};

const FILE: &str = "minerva/v1/participation.proto";
const FIRST: &str = "../../api/tests/v1-first";
const TODAY: &str = "../../api/proto";

/// What a later version may add, and after what.
const ADDITIONS: [(&str, &str); 7] = [
    ("service Participation {\n", "  rpc Hurry(HurryRequest) returns (HurryResponse);\n"),
    ("message DescribeRequest {}\n", "message HurryRequest {}\nmessage HurryResponse {}\nmessage Later {}\n"),
    ("  LEVEL_IDLE = 4;\n", "  LEVEL_FROZEN = 5;\n"),
    ("message DescribeResponse {\n", "  string motto = 1000;\n  repeated HurryResponse hurries = 1001;\n"),
    ("message BoostRequest {\n", "  string reason = 1000;\n"),
    ("message BoostResponse {\n", "  string thanks = 1000;\n"),
    ("message CoordinateResponse {\n  oneof answer {\n", "    Later later = 1000;\n"),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FIRST}");
    println!("cargo::rerun-if-changed={TODAY}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    compile(Path::new(FIRST), &out.join("first"))?;
    let mut text = std::fs::read_to_string(Path::new(TODAY).join(FILE))?;
    for (after, addition) in ADDITIONS {
        if text.matches(after).count() != 1 {
            return Err(format!("{TODAY}/{FILE} has no place `{after}` for what a later version may add").into());
        }
        text = text.replace(after, &format!("{after}{addition}"));
    }
    let operator = "minerva/v1/operator.proto";
    std::fs::write(out.join("methods.rs"), methods(&protox::compile([operator, FILE], [TODAY])?))?;
    let newer = out.join("newer");
    let file = newer.join(FILE);
    std::fs::create_dir_all(file.parent().ok_or("a file is in a folder")?)?;
    std::fs::write(&file, text)?;
    compile(&newer, &newer)
}

/// A constant with `(service, [method])` of every service.
fn methods(files: &prost_types::FileDescriptorSet) -> String {
    let services = files.file.iter().flat_map(|file| &file.service);
    let services = services.map(|service| {
        let methods: Vec<&str> = service.method.iter().map(prost_types::MethodDescriptorProto::name).collect();
        format!("    ({:?}, &{methods:?}),\n", service.name())
    });
    format!("const METHODS: &[(&str, &[&str])] = &[\n{}];\n", services.collect::<String>())
}

fn compile(contract: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(out)?;
    let files = protox::compile([FILE], [contract])?;
    tonic_prost_build::configure().out_dir(out).compile_fds(files)?;
    Ok(())
}
