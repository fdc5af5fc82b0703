//! Configured values, their places, and errors in them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Place of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingPlace {
    /// Name: `--mtu`, `[carrier] mtu`, ``option `mtu` of the carrier``.
    pub(super) what: String,
    /// File and line number; `None`: an argument.
    pub(super) file: Option<(Arc<Path>, usize)>,
}

impl SettingPlace {
    /// Returns the place of an argument.
    pub fn argument(name: impl Into<String>) -> Self {
        Self { what: name.into(), file: None }
    }

    pub(super) fn of_file(file: &Arc<Path>, line: usize, what: impl Into<String>) -> Self {
        Self { what: what.into(), file: Some((Arc::clone(file), line)) }
    }

    /// Returns the place of another item in the same line.
    pub(super) fn with(&self, what: impl Into<String>) -> Self {
        Self { what: what.into(), file: self.file.clone() }
    }

    /// Returns a path given at this place; in a file it is relative to the folder of the file.
    pub(super) fn path(&self, text: &str) -> PathBuf {
        let folder = self.file.as_ref().and_then(|(file, _)| file.parent());
        match folder {
            Some(folder) if text != "-" => folder.join(text),
            _ => PathBuf::from(text),
        }
    }
}

impl fmt::Display for SettingPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some((file, line)) => write!(f, "{}:{line}: {}", file.display(), self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// An error in the configuration: description, place, and advice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    place: Option<SettingPlace>,
    what: String,
    may_pass: bool,
}

impl ConfigError {
    /// True if the configuration may become valid later: a host name cannot be resolved now.
    pub fn may_pass(&self) -> bool {
        self.may_pass
    }

    pub(super) fn passing(self) -> Self {
        Self { may_pass: true, ..self }
    }

    pub(super) fn at(place: &SettingPlace, what: impl Into<String>) -> Self {
        Self { place: Some(place.clone()), what: what.into(), may_pass: false }
    }

    /// Returns an error at a place, if it is known.
    pub(super) fn maybe_at(place: Option<&SettingPlace>, what: impl Into<String>) -> Self {
        Self { place: place.cloned(), what: what.into(), may_pass: false }
    }

    /// Returns an error of the configuration as a whole.
    pub(super) fn of_all(what: impl Into<String>) -> Self {
        Self { place: None, what: what.into(), may_pass: false }
    }

    /// Adds an independent second error, so that both can be corrected at once.
    pub(super) fn and(self, other: &Self) -> Self {
        Self { what: format!("{}. {other}", self.what), may_pass: self.may_pass && other.may_pass, ..self }
    }

    /// Place of the error; `None` if the setting is missing.
    pub fn place(&self) -> Option<&SettingPlace> {
        self.place.as_ref()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Value of a setting. Numbers and booleans are text, as in arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConfiguredValue {
    pub(super) value: SettingValue,
    pub(super) place: SettingPlace,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SettingValue {
    One(String),
    List(Vec<String>),
}

impl ConfiguredValue {
    pub(super) fn error(&self, what: impl Into<String>) -> ConfigError {
        ConfigError::at(&self.place, what)
    }

    /// Returns the only text.
    pub(super) fn text(&self) -> Result<&str, ConfigError> {
        match &self.value {
            SettingValue::One(text) => Ok(text),
            SettingValue::List(_) => Err(self.error("is a list; expected a single value")),
        }
    }

    /// Returns all texts; a single one is split at commas.
    pub(super) fn texts(&self) -> Vec<&str> {
        match &self.value {
            SettingValue::One(text) => {
                text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
            }
            SettingValue::List(list) => list.iter().map(String::as_str).collect(),
        }
    }

    /// Parses the text with a function, whose error is located at this place.
    pub(super) fn read<T>(&self, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, ConfigError> {
        let text = self.text()?;
        parse(text).map_err(|wrong| self.error(format!("is \"{text}\": {wrong}")))
    }

    /// Parses each text with a function.
    pub(super) fn read_all<T>(
        &self,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, ConfigError> {
        let read = |text: &&str| parse(text).map_err(|wrong| self.error(format!("has \"{text}\": {wrong}")));
        self.texts().iter().map(read).collect()
    }
}
