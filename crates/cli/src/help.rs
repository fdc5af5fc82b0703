//! Style of the help texts: `-h` fits on a screen and refers to `--help`.

/// Exit status of commands without further values.
pub const PLAIN_EXIT_STATUS: &str = "Exit status: 0 for success; 1 for a failure; 2 for wrong arguments.";

/// Appends to the short help of a command and of its subcommands a line that refers to `--help`.
pub fn named_in_short_help(command: clap::Command, path: &str) -> clap::Command {
    let command = command.mut_args(with_default_in_text).mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        named_in_short_help(sub, &path)
    });
    if command.has_subcommands() {
        let line = format!("Help on a command: {path} COMMAND -h, with all options {path} COMMAND --help");
        command.after_help(line)
    } else {
        command.after_help(format!("All options, details and exit status: {path} --help"))
    }
}

/// Moves the default value of an option to the end of the first paragraph of its help. In a long help clap
/// would print it in a paragraph of its own.
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
