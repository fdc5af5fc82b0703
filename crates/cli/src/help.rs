//! Help in the style of the commands: the short one fits on a screen and names the long one.

/// Exit status of commands that have nothing to add to it.
pub const PLAIN_EXIT_STATUS: &str = "Exit status: 0 ok; 1 for a failure; 2 for wrong arguments.";

/// Adds to the short help of a command and its subcommands a last line that names the long one.
pub fn named_in_short_help(command: clap::Command, path: &str) -> clap::Command {
    let command = command.mut_args(with_default_in_text).mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        named_in_short_help(sub, &path)
    });
    if command.has_subcommands() {
        let line = format!("A command in short: {path} COMMAND -h; in full: {path} COMMAND --help");
        command.after_help(line)
    } else {
        command.after_help(format!("More options, details, exit status: {path} --help"))
    }
}

/// Puts the default value of an option behind the first paragraph of its help: in a long help it would take two lines of its own.
fn with_default_in_text(option: clap::Arg) -> clap::Arg {
    let values: Vec<_> = option.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if values.is_empty() || option.is_hide_default_value_set() {
        return option;
    }
    let default = format!(" [default: {}]", values.join(","));
    let in_text = |help: &clap::builder::StyledStr| {
        let help = help.to_string();
        let end = help.find("\n\n").unwrap_or(help.len());
        [&help[..end], &default, &help[end..]].concat()
    };
    let (short, long) = (option.get_help().map(in_text), option.get_long_help().map(in_text));
    let option = option.help(short.unwrap_or_default()).hide_default_value(true);
    match long {
        Some(long) => option.long_help(long),
        None => option,
    }
}
