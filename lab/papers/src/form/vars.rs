//! Names and what they stand for.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::paper::Error;

/// Values of variables, by their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Vars(BTreeMap<String, String>);

impl Vars {
    /// These with a value more; of a table its `key`, and its fields as `name.field`.
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

    /// These and `others`, which come first.
    pub(crate) fn and(&self, others: &Self) -> Self {
        let mut vars = self.clone();
        vars.0.extend(others.0.clone());
        vars
    }

    /// The value of a variable.
    ///
    /// # Errors
    /// There is no such variable.
    pub(crate) fn text(&self, name: &str) -> Result<&str, Error> {
        self.opt(name).ok_or_else(|| Error::Form(format!("there is no variable {name}")))
    }

    /// The value of a variable, if there is one of that name.
    pub(crate) fn opt(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// True if there is a variable of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The value of a variable, as a number or anything else that has such a text.
    pub(crate) fn parse<T: FromStr>(&self, name: &str) -> Result<T, Error> {
        let text = self.text(name)?;
        text.parse().map_err(|_| Error::Form(format!("{name} cannot be {text}")))
    }

    /// The text with what its variables stand for.
    pub(crate) fn expand(&self, text: &str) -> Result<String, Error> {
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

/// A value as a text; of what is no text, number or boolean there is none.
pub(super) fn text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(is_so) => is_so.to_string(),
        _ => String::new(),
    }
}
