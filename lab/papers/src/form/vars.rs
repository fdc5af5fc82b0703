//! Variables of a plan.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::paper::PaperError;

/// Values of variables, by their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Vars(BTreeMap<String, String>);

impl Vars {
    /// Adds a variable: a value, or a table's `key`, and its fields as `name.field`.
    pub(crate) fn with(&self, name: &str, value: &toml::Value) -> Self {
        let mut vars = self.clone();
        match value {
            toml::Value::Table(fields) => {
                for (field, value) in fields {
                    let name = if field == "key" { name.to_owned() } else { format!("{name}.{field}") };
                    vars.0.insert(name, text(value));
                }
            }
            value => {
                vars.0.insert(name.to_owned(), text(value));
            }
        }
        vars
    }

    /// Adds `others`, which take precedence.
    pub(crate) fn and(&self, others: &Self) -> Self {
        let mut vars = self.clone();
        vars.0.extend(others.0.clone());
        vars
    }

    /// Value of a variable.
    ///
    /// # Errors
    /// The variable does not exist.
    pub(crate) fn text(&self, name: &str) -> Result<&str, PaperError> {
        self.opt(name).ok_or_else(|| PaperError::Form(format!("unknown variable {name}")))
    }

    /// Value of a variable, if it exists.
    pub(crate) fn opt(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// True if the variable exists.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Value of a variable, parsed.
    pub(crate) fn parse<T: FromStr>(&self, name: &str) -> Result<T, PaperError> {
        let text = self.text(name)?;
        text.parse().map_err(|_| PaperError::Form(format!("invalid value of {name}: {text}")))
    }

    /// Replaces the variables of a text.
    pub(crate) fn expand(&self, text: &str) -> Result<String, PaperError> {
        let (mut expanded, mut rest) = (String::new(), text);
        while let Some((before, behind)) = rest.split_once('{') {
            let (name, behind) = behind.split_once('}').unwrap_or((behind, ""));
            expanded.push_str(before);
            expanded.push_str(self.text(name)?);
            rest = behind;
        }
        Ok(expanded + rest)
    }
}

/// Text of a string, number or boolean; `None` for other values.
pub(super) fn text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(is_so) => is_so.to_string(),
        _ => String::new(),
    }
}
