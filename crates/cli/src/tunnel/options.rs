//! Options of a tunnel. Each corresponds to a key of the configuration file, and overrides it; `thinair_tunnel::config`
//! defines them, and parses values of files, URLs and arguments alike.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use thinair_tunnel::config::{CommandOption, OptionValues, Settings};

/// Configuration of a tunnel on the command line.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TunnelOptions {
    /// Carrier and address: udp://HOST:PORT, ule+udp://, gse+udp://, ule+file://, serial://
    ///
    /// A serial line is serial:///dev/DEVICE; serial+raw:// is for tests. udp://:PORT waits there for the other end. A file is
    /// ule+file://?from=FILE&to=FILE. Options follow a `?`, separated by `&`: listen, iface, ttl, mtu and
    /// keepalive for UDP; ts, rtp, pid, peer-pid, psi, bitrate, flush and npa for transport streams; flush
    /// and npa for GSE; speed, framing (cobs, slip) and mtu for serial lines.
    #[arg(value_name = "CARRIER")]
    pub(crate) carrier: Option<String>,
    /// Read the configuration from a TOML file; options override its values
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub(crate) config: Option<PathBuf>,
    /// Read the configuration from /etc/thinair/NAME.toml
    ///
    /// Status socket and state are kept in folders of that name.
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,
    /// Options for keys of the configuration.
    #[command(flatten)]
    pub(super) keys: KeyOptions,
}

impl TunnelOptions {
    /// Copies all options given to `settings`.
    pub(super) fn apply(&self, settings: &mut Settings) {
        if let Some(carrier) = &self.carrier {
            settings.set("carrier", "url", "CARRIER", carrier.as_str());
        }
        for option in CommandOption::all() {
            if let Some(values) = self.keys.0.get(option.name) {
                settings.set_option(&option, values);
            }
        }
    }
}

/// Options given, by name, with their values.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyOptions(BTreeMap<&'static str, Vec<String>>);

impl KeyOptions {
    /// Returns the value of an option.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.last().map(String::as_str)
    }

    /// Gives an option a value.
    pub(super) fn set(&mut self, name: &'static str, value: String) {
        self.0.insert(name, vec![value]);
    }
}

impl FromArgMatches for KeyOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut options = Self::default();
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for option in CommandOption::all() {
            let values = match option.values {
                OptionValues::None => matches.get_flag(option.name).then(Vec::new),
                OptionValues::One(_) | OptionValues::Many(_) => {
                    matches.get_many::<String>(option.name).map(|values| values.cloned().collect())
                }
            };
            self.0.extend(values.map(|values| (option.name, values)));
        }
        Ok(())
    }
}

impl Args for KeyOptions {
    fn augment_args(command: Command) -> Command {
        command.args(CommandOption::all().map(|option| argument(&option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Describes an option to the parser of arguments.
fn argument(option: &CommandOption) -> Arg {
    let argument = Arg::new(option.name)
        .long(option.name)
        .help(option.help)
        .help_heading(option.heading)
        .hide_short_help(option.is_rare);
    let argument = match option.values {
        OptionValues::None => argument.action(ArgAction::SetTrue),
        OptionValues::One(value) => argument.value_name(value).action(ArgAction::Set),
        OptionValues::Many(value) => argument.value_name(value).action(ArgAction::Append),
    };
    if option.details.is_empty() {
        argument
    } else {
        argument.long_help(format!("{}\n\n{}", option.help, option.details))
    }
}

/// Parses a name that is valid for a file and a folder.
pub(super) fn name(text: &str) -> Result<String, String> {
    let plain = text.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet));
    if text.is_empty() || text.len() > 64 || !plain || text.starts_with('.') {
        return Err("expected letters, digits, `-`, `_` and `.`, without `.` at the beginning".to_owned());
    }
    Ok(text.to_owned())
}
