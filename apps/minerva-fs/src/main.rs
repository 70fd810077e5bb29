//! `minerva-fs`.

fn main() -> std::process::ExitCode {
    minerva_fs::main()
}
