//! Values of a plan: times, rates; and a fingerprint of all values.

use core::time::Duration;

use serde::Deserialize;
use thinair_wire::time;
use toml::Value;

/// Time: a text of a number and its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct PlanTime(pub(super) Duration);

/// Maximum of a time: a thousand hours.
const LONGEST: Duration = Duration::from_secs(3_600_000);

impl TryFrom<Value> for PlanTime {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let span = match &value {
            Value::Integer(0) => Some(Duration::ZERO),
            Value::String(text) => time::span(text),
            _ => None,
        };
        span.filter(|span| *span <= LONGEST).map(Self).ok_or_else(|| {
            "this is no time; give a text of a number and us, ms, s, min or h, as \"500ms\"; at most 1000h".to_owned()
        })
    }
}

/// Rate in bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct BitRate(pub(super) u64);

impl TryFrom<Value> for BitRate {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let rate = match &value {
            Value::Integer(rate) => Some(*rate as f64),
            Value::Float(rate) => Some(*rate),
            Value::String(text) => {
                let units = [("k", 1e3), ("M", 1e6), ("G", 1e9), ("", 1.0)];
                let found = units.into_iter().find_map(|(unit, of)| Some((text.strip_suffix(unit)?, of)));
                found.and_then(|(number, of)| Some(number.trim().parse::<f64>().ok()? * of))
            }
            _ => None,
        };
        rate.filter(|rate| (1.0..=1e12).contains(rate)).map(|rate| Self(rate.round() as u64)).ok_or_else(
            || "this is no rate; give bits a second, as 20000, \"20k\" or \"3.5M\"; 1 to 10^12".to_owned(),
        )
    }
}

/// Converts a value to JSON.
pub(super) fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::String(text) => text.clone().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Boolean(truth) => (*truth).into(),
        Value::Array(values) => values.iter().map(to_json).collect(),
        Value::Table(_) | Value::Datetime(_) => serde_json::Value::Null,
    }
}

/// FNV-1a of the value with all keys in sorted order.
pub(super) fn fingerprint(value: &Value) -> u64 {
    let mut text = String::new();
    canonical(value, &mut text);
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Table(table) => {
            let mut keys: Vec<_> = table.iter().collect();
            keys.sort_by_key(|(key, _)| *key);
            for (key, value) in keys {
                *text += &format!("{key:?}{{");
                canonical(value, text);
                text.push('}');
            }
        }
        // 5 and 5.0 are equal.
        Value::Integer(number) => *text += &format!("{:?};", *number as f64),
        Value::Float(number) => *text += &format!("{number:?};"),
        Value::Array(values) => {
            for value in values {
                canonical(value, text);
                text.push(',');
            }
        }
        Value::String(_) | Value::Boolean(_) | Value::Datetime(_) => *text += &format!("{value:?};"),
    }
}
