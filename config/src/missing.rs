//! What is said where a server's file is not there. Its unit then starts nothing and is content, so that to start it is no remedy.

use crate::problem::ConfigError;
use std::path::Path;

/// Where the package of a server has a file with every key, as an example. It has the server's name, whatever an operator calls their own.
fn example(program: &str) -> String {
    let name = program.strip_prefix("minerva-").unwrap_or(program);
    format!("/usr/share/doc/{program}/examples/{name}.toml")
}

/// What to do where nobody answers for a server of this name, such as `minerva-blk`, whose unit goes by `file`.
pub fn how_to_start(program: &str, file: &Path) -> String {
    if file.exists() {
        return format!("start it: systemctl start {program}");
    }
    format!(
        "write {0}, without which its unit starts nothing (every key is in {1}), and start it: systemctl start {program}",
        file.display(),
        example(program)
    )
}

/// An error of reading, with what to do where it is that the file is not there.
pub(crate) fn told(error: ConfigError, program: &str, file: &Path) -> ConfigError {
    match error {
        ConfigError::Read { path, source } if path == file && source.kind() == std::io::ErrorKind::NotFound => {
            ConfigError::Missing { example: example(program), path }
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::how_to_start;
    use crate::{load_blk, load_fs};
    use std::fs;

    #[test]
    fn a_servers_file_that_is_not_there_is_told_with_where_an_example_is() {
        let folder = tempfile::tempdir().expect("a directory");
        let folder = folder.path();
        let (fs_file, blk_file) = (folder.join("fs.toml"), folder.join("blk.toml"));
        let said =
            [load_fs(&fs_file).err(), load_blk(&blk_file).err()].map(|error| error.map(|error| error.to_string()));
        for (said, program, name) in [(&said[0], "minerva-fs", "fs.toml"), (&said[1], "minerva-blk", "blk.toml")] {
            let said = said.as_deref().unwrap_or_default();
            assert!(said.contains(&format!("there is no {}", folder.join(name).display())), "{said}");
            assert!(said.contains(&format!("/usr/share/doc/{program}/examples/{name}")), "{said}");
        }
        // Of a file by another name too it is the one that the package has.
        let said = load_blk(&folder.join("my.toml")).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains("my.toml") && said.contains("/usr/share/doc/minerva-blk/examples/blk.toml "), "{said}");
        let remedy = how_to_start("minerva-blk", &blk_file);
        assert!(remedy.starts_with(&format!("write {}", blk_file.display())), "{remedy}");
        // One that is there is judged as it is, also where a drop-in is none.
        assert!(fs::create_dir_all(folder.join("blk.toml.d/a.toml")).is_ok() && fs::write(&blk_file, "").is_ok());
        assert!(load_blk(&blk_file).is_err_and(|error| !error.to_string().contains("examples")));
        assert_eq!(how_to_start("minerva-blk", &blk_file), "start it: systemctl start minerva-blk");
    }
}
