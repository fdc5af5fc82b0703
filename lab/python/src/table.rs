//! Values of JSON as columns.

use serde_json::Value;
use thinair_python_common::Series;

/// Returns a column of values that may be missing: of counts, numbers, or true and false if all values are that, else
/// of texts.
pub(crate) fn series<'v>(name: &str, values: impl Iterator<Item = &'v Value> + Clone) -> Series {
    let present = || values.clone().filter(|value| !value.is_null());
    let is_any = present().next().is_some();
    let column = if is_any && present().all(Value::is_u64) {
        Series::counts(name, values.map(Value::as_u64))
    } else if present().all(Value::is_number) {
        Series::numbers(name, values.map(Value::as_f64))
    } else if present().all(Value::is_boolean) {
        Series::flags(name, values.map(Value::as_bool))
    } else {
        Series::texts(name, values.map(text))
    };
    column.optional()
}

/// Text of a value; `None` for null.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
