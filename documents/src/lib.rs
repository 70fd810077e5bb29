//! Manual pages and completions of a program, made of the same texts as `--help`. What that hides they do not show either.

use clap::Command;
use clap_complete::Shell;
use std::io;
use std::path::Path;

/// Writes everything into a directory, which is made if it is not there. For programs that end after this.
///
/// # Errors
/// What the kernel refused.
pub fn write(command: Command, directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let (name, shown) = (lasting(command.get_name()), visible(command.clone()));
    // It leaves out what is hidden by itself, which completions do not.
    clap_mangen::generate_to(command, directory)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut shown.clone(), name, directory)?;
    }
    Ok(())
}

/// The same without hidden subcommands. clap takes none away, so that of a command with some all is put together anew that completions show.
fn visible(command: Command) -> Command {
    if !command.get_subcommands().any(Command::is_hide_set) {
        return command.mut_subcommands(visible);
    }
    let shown = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()).cloned().map(visible);
    let mut anew = Command::new(lasting(command.get_name()))
        .args(command.get_arguments().cloned())
        .groups(command.get_groups().cloned())
        .subcommands(shown)
        .visible_aliases(command.get_visible_aliases().map(lasting))
        .disable_help_subcommand(command.is_disable_help_subcommand_set())
        .args_conflicts_with_subcommands(command.is_args_conflicts_with_subcommands_set())
        .subcommand_required(command.is_subcommand_required_set());
    if let Some(about) = command.get_about() {
        anew = anew.about(about.clone());
    }
    // So that `--help` is said to tell more.
    if let Some(about) = command.get_long_about() {
        anew = anew.long_about(about.clone());
    }
    match command.get_version() {
        Some(version) => anew.version(lasting(version)),
        None => anew,
    }
}

/// clap gives names as borrowed and takes them as lasting ones only.
fn lasting(text: &str) -> &'static str {
    Box::leak(text.into())
}

#[cfg(test)]
mod tests {
    use super::write;
    use clap::{Arg, Command};
    use std::fs;

    #[test]
    fn what_help_hides_is_in_no_document_and_all_else_is() {
        let option = |name: &'static str| Arg::new(name).long(name).help(format!("What {name} means"));
        let both = |above: Command, number: usize| {
            let name = ["shown", "inner"][number];
            let hidden = Command::new("internal").about("For the program itself").hide(true).arg(option("unsaid"));
            above.subcommands([Command::new(name).about("Whatever it is").arg(option("said")), hidden])
        };
        let command = Command::new("program").version("1").about("A program").arg(option("above"));
        let command = both(command, 0).mut_subcommand("shown", |shown| both(shown, 1));
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("documents");
        write(command, &directory).unwrap();
        let said = |name: &str, wanted: &[&str]| {
            let text = fs::read_to_string(directory.join(name)).unwrap();
            assert!(!text.contains("internal") && !text.contains("unsaid"), "{name}: {text}");
            wanted.iter().for_each(|wanted| assert!(text.contains(wanted), "{name} lacks {wanted}: {text}"));
        };
        said("program.1", &["shown", "above", "version"]);
        said("program-shown.1", &["inner", "said"]);
        for name in ["program.bash", "_program", "program.fish"] {
            said(name, &["shown", "inner", "said", "above", "version"]);
        }
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 6, "and program-shown-inner.1");
    }
}
