//! Price lists: which packets count, in which steps, and what an octet costs.
//!
//! A file of TOML describes a price list; `docs/tariffs.md` has its keys. Nothing is assumed: a key that is missing is an error.
//! Not described are sessions, prices that depend on the amount, and fees.
//!
//! ```
//! use thinair_link::tariff::Tariff;
//!
//! let tariff = Tariff::read(r#"
//!     name = "at least 50 octets a packet"
//!     source = "docs.example.com, Billing"
//!     read = 2026-11-28
//!     currency = "octet"
//!     price = { amount = 1, octets = 1 }
//!     packet = { floor = 50, step = 1 }
//!     directions = "both"
//!     allowance = 0
//! "#)?;
//! assert_eq!([37, 50, 51].map(|octets| tariff.steps(octets)), [50, 50, 51]);
//! # Ok::<(), thinair_link::tariff::TariffError>(())
//! ```

use alloc::format;
use alloc::string::{String, ToString as _};
use core::ops::{Range, RangeInclusive};

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::value::Datetime;

/// Codes of ISO 4217, and `credit` and `octet` for price lists whose source names credits, or no price.
const CURRENCIES: &str = "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD \
CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR \
ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR \
MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE \
SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW \
ZWG credit octet";

/// Largest price, in the currency.
const MOST: f64 = 1e9;

/// Octets of the smallest and of the largest packet, step and floor.
const SIZES: RangeInclusive<i64> = 1..=65_535;

/// A price list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tariff {
    /// Name of the network and its seller.
    pub name: String,
    /// Where the price list was read.
    pub source: String,
    /// Date on which it was read, as `2026-11-28`.
    pub read: String,
    /// Code of ISO 4217; `credit` or `octet`.
    pub currency: String,
    /// Price of an octet in the currency.
    pub octet: f64,
    /// Octets that a packet counts at least. 0 for none.
    pub floor: u32,
    /// Step in octets to which a packet is rounded up, at least 1.
    pub step: u32,
    /// Counted directions.
    pub directions: CountedDirections,
    /// Octets a month that cost nothing. 0 for none.
    pub allowance: u64,
}

/// Directions whose packets count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedDirections {
    /// Both.
    #[default]
    Both,
    /// From the device.
    Up,
    /// To the device.
    Down,
}

/// Reason why a price list cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TariffError {
    /// Line in the file, from 1.
    pub line: usize,
    /// The value and the limit.
    pub reason: String,
}

impl core::fmt::Display for TariffError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl core::error::Error for TariffError {}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Spanned<String>,
    source: Spanned<String>,
    read: Spanned<Datetime>,
    currency: Spanned<String>,
    price: PriceEntry,
    packet: PacketEntry,
    directions: CountedDirections,
    allowance: Spanned<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceEntry {
    amount: Spanned<f64>,
    octets: Spanned<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PacketEntry {
    floor: Spanned<i64>,
    step: Spanned<i64>,
}

impl Tariff {
    /// Reads a file of TOML.
    ///
    /// # Errors
    /// A key is missing or unknown, or a value is not possible.
    pub fn read(text: &str) -> Result<Self, TariffError> {
        let line = |span: Range<usize>| text.get(..span.start).unwrap_or_default().matches('\n').count() + 1;
        let file: File = toml::from_str(text).map_err(|error| TariffError {
            line: line(error.span().unwrap_or_default()),
            reason: error.message().to_string(),
        })?;
        let wrong = |span, reason| Err(TariffError { line: line(span), reason });
        for (key, value) in [("name", &file.name), ("source", &file.source)] {
            if value.get_ref().trim().is_empty() {
                return wrong(value.span(), format!("`{key}` is empty"));
            }
        }
        if file.read.get_ref().date.is_none() || file.read.get_ref().time.is_some() {
            return wrong(file.read.span(), "`read` is no date, such as 2026-11-28".to_string());
        }
        let currency = file.currency.get_ref();
        if !CURRENCIES.split(' ').any(|known| known == currency) {
            let reason =
                format!("unknown currency `{currency}`: give a code of ISO 4217, `credit` or `octet`");
            return wrong(file.currency.span(), reason);
        }
        let amount = *file.price.amount.get_ref();
        if !(0.0..=MOST).contains(&amount) {
            let reason = format!("invalid price {amount:?}: not within 0 and {MOST}");
            return wrong(file.price.amount.span(), reason);
        }
        let within = |key, value: &Spanned<i64>, range: RangeInclusive<i64>| match *value.get_ref() {
            number if range.contains(&number) => Ok(number as u64),
            number => {
                let reason =
                    format!("invalid {key} {number}: not within {} and {}", range.start(), range.end());
                Err(TariffError { line: line(value.span()), reason })
            }
        };
        let octets = within("octets of a price", &file.price.octets, 1..=i64::MAX)?;
        Ok(Self {
            octet: amount / octets as f64,
            floor: within("floor", &file.packet.floor, 0..=*SIZES.end())? as u32,
            step: within("step", &file.packet.step, SIZES)? as u32,
            directions: file.directions,
            allowance: within("allowance", &file.allowance, 0..=i64::MAX)?,
            name: file.name.into_inner(),
            source: file.source.into_inner(),
            read: file.read.get_ref().to_string(),
            currency: file.currency.into_inner(),
        })
    }

    /// Number of steps that a packet of so many octets counts.
    pub fn steps(&self, octets: u32) -> u64 {
        octets.max(self.floor).div_ceil(self.step.max(1)).into()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SATELLITE: &str = r#"name = "satellite"
source = "a page"
read = 2026-11-28
currency = "USD"
directions = "both"
allowance = 1000

[price]
amount = 0.50
octets = 1_000_000

[packet]
floor = 50
step = 10
"#;

    #[test]
    fn a_packet_counts_its_floor_and_whole_steps() {
        let tariff = Tariff::read(SATELLITE).unwrap();
        assert_eq!([0, 50, 51, 60, 1_280].map(|octets| tariff.steps(octets)), [5, 5, 6, 6, 128]);
        assert_eq!((tariff.octet, tariff.allowance, tariff.read.as_str()), (0.5e-6, 1_000, "2026-11-28"));
    }

    #[test]
    fn errors_name_line_and_reason() {
        let cases = [
            ("step = 10", "step = 0", "line 14: invalid step 0: not within 1 and 65535"),
            ("floor = 50", "floor = -1", "line 13: invalid floor -1: not within 0 and 65535"),
            ("step = 10\n", "", "line 12: missing field `step`"),
            ("currency = \"USD\"\n", "", "line 1: missing field `currency`"),
            ("USD", "USX", "line 4: unknown currency `USX`: give a code of ISO 4217, `credit` or `octet`"),
            ("0.50", "1e300", "line 9: invalid price 1e300: not within 0 and 1000000000"),
            ("0.50", "nan", "line 9: invalid price NaN: not within 0 and 1000000000"),
            ("0.50", "-0.1", "line 9: invalid price -0.1: not within 0 and 1000000000"),
            ("1_000_000", "0", "line 10: invalid octets of a price 0: not within 1 and 9223372036854775807"),
            (
                "allowance = 1000",
                "allowance = -1",
                "line 6: invalid allowance -1: not within 0 and 9223372036854775807",
            ),
            ("a page", " ", "line 2: `source` is empty"),
            ("2026-11-28", "12:00:00", "line 3: `read` is no date, such as 2026-11-28"),
            ("both", "sideways", "line 5: unknown variant `sideways`, expected one of `both`, `up`, `down`"),
            (
                "step = 10",
                "step = 10\nsteps = 1",
                "line 15: unknown field `steps`, expected `floor` or `step`",
            ),
        ];
        for (right, wrong, expected) in cases {
            let error = Tariff::read(&SATELLITE.replacen(right, wrong, 1)).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
