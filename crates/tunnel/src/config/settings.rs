//! Collected settings of a file, of the file that it shares with the other ends, and of arguments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::fleet::Fleet;
use super::keys::{self, CommandOption, Of, OptionValues, SectionKeys};
use super::setting::{ConfigError, ConfiguredValue, SettingPlace, SettingValue};

/// The keys of a section that have values.
#[derive(Clone, Debug, Default)]
pub(super) struct SettingsSection {
    /// Place of its title, for repeated sections.
    pub(super) place: Option<SettingPlace>,
    entries: BTreeMap<&'static str, ConfiguredValue>,
}

impl SettingsSection {
    pub(super) fn setting(&self, key: &str) -> Option<&ConfiguredValue> {
        self.entries.get(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &ConfiguredValue)> {
        self.entries.iter().map(|(key, setting)| (*key, setting))
    }

    pub(super) fn insert(&mut self, key: &'static str, setting: ConfiguredValue) {
        self.entries.insert(key, setting);
    }

    /// Parses the value of a key with a function.
    pub(super) fn read<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        self.setting(key).map(|setting| setting.read(parse)).transpose()
    }

    /// Parses each value of a key with a function; empty if there is none.
    pub(super) fn read_all<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, ConfigError> {
        self.setting(key).map_or_else(|| Ok(Vec::new()), |setting| setting.read_all(parse))
    }

    pub(super) fn is_true(&self, key: &str) -> Result<bool, ConfigError> {
        Ok(self.read(key, super::words::truth)?.unwrap_or(false))
    }

    /// Returns a path; in a file it is relative to the folder of the file.
    pub(super) fn path(&self, key: &str) -> Result<Option<PathBuf>, ConfigError> {
        let Some(setting) = self.setting(key) else { return Ok(None) };
        match setting.text()? {
            "" => Err(setting.error("is empty; give a path")),
            text => Ok(Some(setting.place.path(text))),
        }
    }

    /// Returns the place of a key, or of the section if the key is missing.
    pub(super) fn place_of(&self, key: &str) -> Option<&SettingPlace> {
        self.setting(key).map(|setting| &setting.place).or(self.place.as_ref())
    }
}

/// Settings, of which only the keys have been checked.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    single: BTreeMap<&'static str, SettingsSection>,
    repeated: BTreeMap<&'static str, Vec<SettingsSection>>,
    fleet: Option<Arc<Fleet>>,
}

impl Settings {
    /// Returns empty settings, for which all defaults apply.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the settings of a file. Paths are relative to its folder.
    ///
    /// # Errors
    /// The text is not TOML, or contains an unknown key or section.
    pub fn read(file: &Path, text: &str) -> Result<Self, ConfigError> {
        Reading { file: Arc::from(file), text, shared: false }.settings()
    }

    /// Returns the file given as `include` in `[channel]`, which all ends share.
    pub fn include(&self) -> Result<Option<PathBuf>, ConfigError> {
        self.section("channel").path("include")
    }

    /// Returns the file given as `peers` in `[security]`, with a line for each peer.
    pub fn peers_file(&self) -> Result<Option<PathBuf>, ConfigError> {
        self.section("security").path("peers")
    }

    /// Adds the peers of that file.
    ///
    /// # Errors
    /// A line is not a peer.
    pub fn add_peers(&mut self, file: &Path, text: &str) -> Result<(), ConfigError> {
        self.fleet = Some(Arc::new(Fleet::parse(file, text)?));
        Ok(())
    }

    pub(super) fn fleet(&self) -> Option<&Fleet> {
        self.fleet.as_deref()
    }

    /// Returns the network namespace of the interface; `None`: that of the daemon.
    pub fn namespace(&self) -> Option<String> {
        self.section("inside").setting("namespace")?.text().ok().map(str::to_owned)
    }

    /// Returns the name of the interface, which is the default name of the tunnel.
    ///
    /// # Errors
    /// It is not a valid name of an interface.
    pub fn interface(&self) -> Result<String, ConfigError> {
        super::inside::interface(self)
    }

    /// Adds the settings of the file that all ends share. It cannot contain keys of a single end, or keys
    /// that the first file contains, too.
    ///
    /// # Errors
    /// Those of [`read`](Self::read), or such a key.
    pub fn add_shared(&mut self, file: &Path, text: &str) -> Result<(), ConfigError> {
        let shared = Reading { file: Arc::from(file), text, shared: true }.settings()?;
        for (name, section) in shared.single {
            let own = self.single.entry(name).or_default();
            for (key, setting) in section.entries {
                if let Some(first) = own.setting(key) {
                    return Err(setting.error(format!("is also set by {}; remove one", first.place)));
                }
                own.entries.insert(key, setting);
            }
        }
        for (name, sections) in shared.repeated {
            self.repeated.entry(name).or_default().extend(sections);
        }
        Ok(())
    }

    /// Sets a value given as an argument, which replaces earlier ones; that of a section which can occur several times, in
    /// each of them.
    ///
    /// # Panics
    /// The section or key is unknown.
    pub fn set(&mut self, section: &str, key: &str, argument: &str, value: impl Into<String>) {
        self.put(
            section,
            key,
            ConfiguredValue {
                value: SettingValue::One(value.into()),
                place: SettingPlace::argument(argument),
            },
        );
    }

    /// Sets the key of an option to the values that it was given with; one without values is true.
    pub fn set_option(&mut self, option: &CommandOption, values: &[String]) {
        let value = match option.values {
            OptionValues::None => SettingValue::One("true".to_owned()),
            OptionValues::One(_) => SettingValue::One(values.last().cloned().unwrap_or_default()),
            OptionValues::Many(_) => SettingValue::List(values.to_vec()),
        };
        let place = SettingPlace::argument(format!("--{}", option.name));
        self.put(option.section, option.key, ConfiguredValue { value, place });
    }

    fn put(&mut self, section: &str, key: &str, setting: ConfiguredValue) {
        let known = keys::section(section).expect("a section");
        let (key, _) = known.key(key).expect("a key of the section");
        if !known.repeated {
            self.single.entry(known.name).or_default().insert(key, setting);
            return;
        }
        let sections = self.repeated.entry(known.name).or_default();
        if sections.is_empty() {
            sections
                .push(SettingsSection { place: Some(setting.place.clone()), ..SettingsSection::default() });
        }
        for section in sections {
            section.insert(key, setting.clone());
        }
    }

    pub(super) fn section(&self, name: &str) -> SettingsSection {
        self.single.get(name).cloned().unwrap_or_default()
    }

    pub(super) fn sections(&self, name: &str) -> &[SettingsSection] {
        self.repeated.get(name).map_or(&[], Vec::as_slice)
    }

    /// True if the section exists.
    pub(super) fn has(&self, name: &str) -> bool {
        self.single.contains_key(name) || self.repeated.contains_key(name)
    }
}

/// A file that is being read.
struct Reading<'t> {
    file: Arc<Path>,
    text: &'t str,
    shared: bool,
}

impl Reading<'_> {
    fn place(&self, offset: usize, what: impl Into<String>) -> SettingPlace {
        let before = self.text.as_bytes().get(..offset).unwrap_or_default();
        let line = 1 + before.iter().filter(|octet| **octet == b'\n').count();
        SettingPlace::of_file(&self.file, line, what)
    }

    fn settings(&self) -> Result<Settings, ConfigError> {
        let document = DeTable::parse(self.text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            ConfigError::at(&self.place(offset, "not valid TOML"), error.message().replace('\n', "; "))
        })?;
        let mut settings = Settings::default();
        for (name, value) in document.get_ref() {
            let start = name.span().start;
            let at = self.place(start, format!("[{}]", name.get_ref()));
            let Some(keys) = keys::section(name.get_ref()) else {
                return Err(ConfigError::at(&at, keys::unknown_section(name.get_ref())));
            };
            let at = at.with(keys.title());
            match value.get_ref() {
                DeValue::Table(table) if !keys.repeated => {
                    let section = self.section(keys, table, at)?;
                    settings.single.insert(keys.name, section);
                }
                DeValue::Array(tables) if keys.repeated => {
                    for table in tables.iter() {
                        let at = self.place(table.span().start, keys.title());
                        let DeValue::Table(table) = table.get_ref() else {
                            return Err(ConfigError::at(
                                &at,
                                "is not a section; write it as a title above its keys",
                            ));
                        };
                        let section = self.section(keys, table, at)?;
                        settings.repeated.entry(keys.name).or_default().push(section);
                    }
                }
                _ => {
                    return Err(ConfigError::at(
                        &at,
                        format!("is a section; write {} above its keys", keys.title()),
                    ));
                }
            }
        }
        Ok(settings)
    }

    fn section(
        &self,
        keys: &SectionKeys,
        table: &DeTable<'_>,
        at: SettingPlace,
    ) -> Result<SettingsSection, ConfigError> {
        let mut section = SettingsSection { place: Some(at), ..SettingsSection::default() };
        for (key, value) in table {
            let place = self.place(key.span().start, format!("{} {}", keys.title(), key.get_ref()));
            let Some((key, of)) = keys.key(key.get_ref()) else {
                return Err(ConfigError::at(&place, keys.unknown(key.get_ref())));
            };
            if self.shared && of == Of::OneEnd {
                return Err(ConfigError::at(
                    &place,
                    "belongs to one end, and all ends share this file; move it to the file of that end",
                ));
            }
            let value = match value.get_ref() {
                DeValue::Array(list) => {
                    let texts = list.iter().map(|value| scalar(value.get_ref(), &place));
                    SettingValue::List(texts.collect::<Result<_, _>>()?)
                }
                one => SettingValue::One(scalar(one, &place)?),
            };
            section.insert(key, ConfiguredValue { value, place });
        }
        Ok(section)
    }
}

/// Converts a value to text.
fn scalar(value: &DeValue<'_>, place: &SettingPlace) -> Result<String, ConfigError> {
    match value {
        DeValue::String(text) => Ok(text.clone().into_owned()),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
            .map(|number| number.to_string())
            .map_err(|_| ConfigError::at(place, "is too large")),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        DeValue::Boolean(truth) => Ok(truth.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
            Err(ConfigError::at(place, "expected a string, a number, true, false, or a list of them"))
        }
    }
}
