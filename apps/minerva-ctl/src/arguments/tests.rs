use super::{Arguments, CacheCommand, Command};
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::path::PathBuf;

#[test]
fn the_command_line_is_sound() {
    Arguments::command().debug_assert();
}

/// What a command and those below it say of themselves.
fn texts(command: &clap::Command, all: &mut Vec<String>) {
    all.extend(command.get_long_about().map(ToString::to_string));
    command.get_subcommands().for_each(|below| texts(below, all));
}

#[test]
fn commands_that_the_help_names_are_understood() {
    let mut all = Vec::new();
    texts(&Arguments::command(), &mut all);
    let named = all.iter().flat_map(|text| text.split('`')).filter(|part| part.starts_with("minerva-ctl "));
    let named: Vec<&str> = named.collect();
    assert!(named.iter().any(|line| line.contains("cache put --pool")), "{named:?}");
    for line in named {
        let read = Arguments::try_parse_from(line.split(' '));
        assert!(read.is_ok(), "{line}: {}", read.expect_err("refused"));
    }
}

#[test]
fn the_caches_socket_may_be_named_before_and_after_what_is_to_be_done() {
    let read = |line: &str| match Arguments::try_parse_from(line.split(' ')).expect("understood").command {
        Command::Cache { server, command } => (server, command),
        other => panic!("{other:?}"),
    };
    let named = Some(PathBuf::from("/run/pool/control.sock"));
    assert_eq!(read("minerva-ctl cache --server /run/pool/control.sock status").0, named);
    assert_eq!(read("minerva-ctl cache status --server /run/pool/control.sock").0, named);
    // What stands behind a command is the command's own.
    let (server, run) = read("minerva-ctl cache run /srv/dump -- mysqldump --server other");
    let CacheCommand::Run { command, .. } = run else { panic!("{run:?}") };
    assert_eq!((server, command), (None, ["mysqldump", "--server", "other"].map(OsString::from).to_vec()));
}

#[test]
fn the_help_names_every_variable_by_which_the_server_is_found() {
    let help = Arguments::command().render_long_help().to_string();
    for variable in ["ADDRESS", "CA", "CERTIFICATE", "KEY", "TOKEN", "TOKEN_FILE"] {
        let variable = format!("MINERVA_{variable}");
        let is_end = |rest: &str| !rest.starts_with(|next: char| next == '_' || next.is_alphanumeric());
        assert!(help.split(&variable).skip(1).any(is_end), "{variable} is not in {help}");
    }
}

#[test]
fn a_wrong_word_is_refused_in_a_sentence_and_shells_are_told_the_right_ones() {
    let said = |line: &str| match Arguments::try_parse_from(line.split(' ')) {
        Ok(read) => panic!("{read:?}"),
        Err(error) => error.to_string(),
    };
    let level = said("minerva-ctl run --priority lazy -- true");
    assert!(level.contains("there is no 'lazy'; there are normal, low, lowest, idle"), "{level}");
    // What kinds there are the daemon knows, which may be another version.
    assert!(
        Arguments::try_parse_from(["minerva-ctl", "background", "add", "--name=a", "--path=/", "--kind=new"]).is_ok()
    );
    let mut tool = Arguments::command();
    tool.build();
    let told = |path: [&str; 2], argument: &str| -> Vec<String> {
        let below = |command: &clap::Command, name: &str| command.find_subcommand(name).cloned().expect("a command");
        let command = path.iter().filter(|name| !name.is_empty()).fold(tool.clone(), |at, name| below(&at, name));
        let found = command.get_arguments().find(|one| one.get_id() == argument).expect("an argument").clone();
        found.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
    };
    assert_eq!(told(["run", ""], "priority"), ["normal", "low", "lowest", "idle"]);
    assert_eq!(told(["priority", ""], "level"), ["normal", "low", "lowest", "idle"]);
    assert!(told(["background", "add"], "kind").contains(&"btrfs-scrub".to_owned()));
}

#[test]
fn what_does_not_go_together_is_refused() {
    let read = |line: &str| Arguments::try_parse_from(line.split(' ')).is_ok();
    assert!(read("minerva-ctl priority idle --for 8h"));
    assert!(read("minerva-ctl priority --no-schedule"));
    assert!(!read("minerva-ctl priority"));
    assert!(!read("minerva-ctl priority idle --for 8h --until-pid 7"));
    assert!(!read("minerva-ctl priority --for 8h --no-schedule"));
    assert!(read("minerva-ctl when --bytes 500M --deadline 20s"));
    assert!(!read("minerva-ctl when --bytes 500M --deadline 20s --begin-by 20s"));
    assert!(read("minerva-ctl run --when 500M --path /data -- true"));
    assert!(!read("minerva-ctl when --bytes 500M --path /data --device 8:0"));
    assert!(!read("minerva-ctl run --path /data -- true"));
    assert!(read("minerva-ctl run --when 500M --deadline 20s --priority low -- true"));
    assert!(!read("minerva-ctl run --deadline 20s -- true"));
    assert!(read("minerva-ctl doctor --device sda --probe --seconds 100ms"));
    assert!(!read("minerva-ctl doctor --device sda --compare --seconds 0"));
    assert!(read("minerva-ctl doctor --device sda --compare --change-elevator --write --rounds 9"));
    for option in ["--write", "--change-elevator"] {
        assert!(!read(&format!("minerva-ctl doctor --device sda --probe {option}")));
        assert!(!read(&format!("minerva-ctl doctor --device sda {option}")));
    }
}
