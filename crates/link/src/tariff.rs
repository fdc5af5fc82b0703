//! Price lists: which packets count, in which steps, and what an octet costs.
//!
//! A file of TOML describes a price list; `docs/tariffs.md` has its keys. Nothing is assumed: a key that is missing is an error,
//! and without a table `month` or `session` there is no such price.
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
use alloc::vec::Vec;
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

/// Octets of the smallest and of the largest step of a session.
const SESSION_SIZES: RangeInclusive<i64> = 1..=1_000_000_000;

/// Shortest and longest time of a session, in seconds.
const SECONDS: RangeInclusive<i64> = 1..=31_536_000;

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
    /// Price of a month without traffic. 0 for none.
    pub fee: f64,
    /// Other prices of an octet for large amounts, in ascending order.
    pub tiers: Vec<Tier>,
    /// Steps and prices of a session, if sessions count.
    pub session: Option<Session>,
}

/// Price of an octet from an amount on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tier {
    /// Octets a month above which the price applies.
    pub above: u64,
    /// Price of an octet in the currency.
    pub octet: f64,
}

/// Packets that are billed together. A session begins with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Seconds without a packet that end a session.
    pub idle: u32,
    /// Time of day at which a session ends, in seconds of UTC. `None`: at none.
    pub daily: Option<u32>,
    /// Octets that a session counts at least. 0 for none.
    pub floor: u32,
    /// Step in octets to which a session is rounded up, a multiple of [`Tariff::step`].
    pub step: u32,
    /// Price of a session.
    pub price: f64,
    /// Price of connection time, from the first packet of a session to its last. `None`: it costs nothing.
    pub time: Option<TimeStep>,
}

/// Price of started steps of connection time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeStep {
    /// Seconds of a step, at least 1.
    pub seconds: u32,
    /// Price of a step.
    pub price: f64,
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
    month: Option<MonthEntry>,
    session: Option<SessionEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MonthEntry {
    fee: Spanned<f64>,
    tiers: Vec<TierEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TierEntry {
    above: Spanned<i64>,
    amount: Spanned<f64>,
    octets: Spanned<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionEntry {
    idle: Spanned<i64>,
    daily: Option<Spanned<Datetime>>,
    floor: Spanned<i64>,
    step: Spanned<i64>,
    amount: Spanned<f64>,
    time: Option<TimeEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimeEntry {
    seconds: Spanned<i64>,
    amount: Spanned<f64>,
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
        let place = Place(text);
        let file: File = toml::from_str(text).map_err(|error| TariffError {
            line: place.line(error.span().unwrap_or_default()),
            reason: error.message().to_string(),
        })?;
        for (key, value) in [("name", &file.name), ("source", &file.source)] {
            if value.get_ref().trim().is_empty() {
                return place.wrong(value, format!("`{key}` is empty"));
            }
        }
        if file.read.get_ref().date.is_none() || file.read.get_ref().time.is_some() {
            return place.wrong(&file.read, "`read` is no date, such as 2026-11-28".to_string());
        }
        let currency = file.currency.get_ref();
        if !CURRENCIES.split(' ').any(|known| known == currency) {
            let reason =
                format!("unknown currency `{currency}`: give a code of ISO 4217, `credit` or `octet`");
            return place.wrong(&file.currency, reason);
        }
        let step = place.within("step", &file.packet.step, SIZES)? as u32;
        let month = file.month.as_ref();
        Ok(Self {
            octet: place.octet(&file.price.amount, &file.price.octets)?,
            floor: place.within("floor", &file.packet.floor, 0..=*SIZES.end())? as u32,
            step,
            directions: file.directions,
            allowance: place.within("allowance", &file.allowance, 0..=i64::MAX)?,
            fee: month.map_or(Ok(0.0), |month| place.price("fee", &month.fee))?,
            tiers: month.map_or(Ok(Vec::new()), |month| place.tiers(&month.tiers))?,
            session: file.session.as_ref().map(|session| place.session(session, step)).transpose()?,
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

    /// Decimals with which an amount is printed, of `usual` ones: none for octets and credits, which have no parts.
    pub fn decimals(&self, usual: u8) -> u8 {
        if matches!(self.currency.as_str(), "octet" | "credit") { 0 } else { usual }
    }

    /// Price of a month with so many counted octets, its fee included, and that of sessions not.
    pub fn month(&self, octets: f64) -> f64 {
        let starts = core::iter::once((0.0, self.octet));
        let starts = starts.chain(self.tiers.iter().map(|tier| (tier.above as f64, tier.octet)));
        let ends = self.tiers.iter().map(|tier| tier.above as f64).chain([f64::INFINITY]);
        let free = self.allowance as f64;
        let parts = starts
            .zip(ends)
            .map(|((start, price), end)| (octets.min(end) - start.max(free)).max(0.0) * price);
        self.fee + parts.sum::<f64>()
    }
}

impl Session {
    /// Octets that a session with packets of so many octets counts.
    pub fn octets(&self, packets: u64) -> u64 {
        packets.max(self.floor.into()).div_ceil(self.step.max(1).into()).saturating_mul(self.step.into())
    }

    /// True if a packet begins a session. `before`: time of the packet before it. Times in nanoseconds since 1970.
    pub fn begins(&self, before: Option<u64>, now: u64) -> bool {
        const SECOND: u64 = 1_000_000_000;

        let Some(before) = before else { return true };
        let day = |time: u64, begin: u32| (time / SECOND + 86_400 - u64::from(begin)) / 86_400;
        now.saturating_sub(before) >= u64::from(self.idle) * SECOND
            || self.daily.is_some_and(|begin| day(before, begin) != day(now, begin))
    }

    /// Price of a session of so many nanoseconds, apart from its octets.
    pub fn price(&self, nanos: u64) -> f64 {
        let steps = |time: TimeStep| (nanos / 1_000_000_000 / u64::from(time.seconds.max(1)) + 1) as f64;
        self.price + self.time.map_or(0.0, |time| steps(time) * time.price)
    }
}

/// Text of a price list, for errors.
struct Place<'t>(&'t str);

impl Place<'_> {
    fn line(&self, span: Range<usize>) -> usize {
        self.0.get(..span.start).unwrap_or_default().matches('\n').count() + 1
    }

    fn wrong<T, O>(&self, value: &Spanned<T>, reason: String) -> Result<O, TariffError> {
        Err(TariffError { line: self.line(value.span()), reason })
    }

    fn within(
        &self,
        key: &str,
        value: &Spanned<i64>,
        range: RangeInclusive<i64>,
    ) -> Result<u64, TariffError> {
        match *value.get_ref() {
            number if range.contains(&number) => Ok(number as u64),
            number => {
                let (start, end) = (range.start(), range.end());
                self.wrong(value, format!("invalid {key} {number}: not within {start} and {end}"))
            }
        }
    }

    fn price(&self, key: &str, amount: &Spanned<f64>) -> Result<f64, TariffError> {
        let value = *amount.get_ref();
        if !(0.0..=MOST).contains(&value) {
            return self.wrong(amount, format!("invalid {key} {value:?}: not within 0 and {MOST}"));
        }
        Ok(value)
    }

    /// Price of an octet.
    fn octet(&self, amount: &Spanned<f64>, octets: &Spanned<i64>) -> Result<f64, TariffError> {
        let amount = self.price("price", amount)?;
        Ok(amount / self.within("octets of a price", octets, 1..=i64::MAX)? as f64)
    }

    fn tiers(&self, entries: &[TierEntry]) -> Result<Vec<Tier>, TariffError> {
        let mut tiers: Vec<Tier> = Vec::new();
        for entry in entries {
            let above = self.within("above", &entry.above, 1..=i64::MAX)?;
            if let Some(before) = tiers.last().filter(|before| before.above >= above) {
                let reason =
                    format!("invalid above {above}: not larger than {}, the one before", before.above);
                return self.wrong(&entry.above, reason);
            }
            tiers.push(Tier { above, octet: self.octet(&entry.amount, &entry.octets)? });
        }
        Ok(tiers)
    }

    fn session(&self, entry: &SessionEntry, packet_step: u32) -> Result<Session, TariffError> {
        let step = self.within("step", &entry.step, SESSION_SIZES)? as u32;
        if !step.is_multiple_of(packet_step) {
            let reason =
                format!("invalid step {step} of a session: no multiple of {packet_step}, that of a packet");
            return self.wrong(&entry.step, reason);
        }
        let seconds = |daily: &Spanned<Datetime>| match daily.get_ref() {
            Datetime { date: None, time: Some(time), offset: None } => {
                Ok(u32::from(time.hour) * 3_600 + u32::from(time.minute) * 60)
            }
            _ => self.wrong(daily, "`daily` is no time of day, such as 00:00:00".to_string()),
        };
        let time = |time: &TimeEntry| -> Result<TimeStep, TariffError> {
            let seconds = self.within("seconds", &time.seconds, SECONDS)? as u32;
            Ok(TimeStep { seconds, price: self.price("price", &time.amount)? })
        };
        Ok(Session {
            idle: self.within("idle", &entry.idle, SECONDS)? as u32,
            daily: entry.daily.as_ref().map(seconds).transpose()?,
            floor: self.within("floor", &entry.floor, 0..=*SESSION_SIZES.end())? as u32,
            step,
            price: self.price("price", &entry.amount)?,
            time: entry.time.as_ref().map(time).transpose()?,
        })
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

    /// Lines 15 to 23.
    const SESSIONS: &str = r#"
[month]
fee = 2
tiers = [{ above = 2_000_000, amount = 0.25, octets = 1_000_000 }, { above = 4_000_000, amount = 0, octets = 1 }]

[session]
idle = 60
daily = 00:30:00
floor = 100
step = 1_000
amount = 0.05
time = { seconds = 20, amount = 0.5 }
"#;

    #[test]
    fn months_have_a_fee_an_allowance_and_tiers() {
        let tariff = Tariff::read(&(SATELLITE.to_string() + SESSIONS)).unwrap();
        let month = |octets| (tariff.month(octets) * 1e6).round() / 1e6;
        assert_eq!([0.0, 1e3, 2e3].map(month), [2.0, 2.0, 2.0005]);
        // 1,999,000 octets at 0.50 a megabyte, 2,000,000 at 0.25, others at nothing.
        assert_eq!([2e6, 3e6, 4e6, 9e9].map(month), [2.9995, 3.2495, 3.4995, 3.4995]);
    }

    #[test]
    fn sessions_end_in_silence_and_at_a_time_of_day() {
        let session = Tariff::read(&(SATELLITE.to_string() + SESSIONS)).unwrap().session.unwrap();
        let second = 1_000_000_000;
        let day = 20_000 * 86_400 * second;
        assert!(session.begins(None, day));
        assert!(
            !session.begins(Some(day), day + 60 * second - 1) && session.begins(Some(day), day + 60 * second)
        );
        // Half past midnight.
        assert!(session.begins(Some(day + 1_799 * second), day + 1_800 * second));
        assert!(!session.begins(Some(day - second), day));
        assert_eq!([0, 100, 1_000, 1_001].map(|octets| session.octets(octets)), [1_000, 1_000, 1_000, 2_000]);
        let prices = [0, 19, 20, 59].map(|seconds| (session.price(seconds * second) * 100.0).round());
        assert_eq!(prices, [55.0, 55.0, 105.0, 155.0]);
    }

    #[test]
    fn errors_of_months_and_sessions_name_line_and_reason() {
        let cases = [
            ("fee = 2\n", "", "line 16: missing field `fee`"),
            ("fee = 2", "fee = -2", "line 17: invalid fee -2.0: not within 0 and 1000000000"),
            (
                "4_000_000",
                "2_000_000",
                "line 18: invalid above 2000000: not larger than 2000000, the one before",
            ),
            ("0.25", "inf", "line 18: invalid price inf: not within 0 and 1000000000"),
            (
                "octets = 1 ",
                "octets = 0 ",
                "line 18: invalid octets of a price 0: not within 1 and 9223372036854775807",
            ),
            ("idle = 60", "idle = 0", "line 21: invalid idle 0: not within 1 and 31536000"),
            ("00:30:00", "2026-11-28", "line 22: `daily` is no time of day, such as 00:00:00"),
            ("step = 1_000", "step = 0", "line 24: invalid step 0: not within 1 and 1000000000"),
            (
                "step = 1_000",
                "step = 1_001",
                "line 24: invalid step 1001 of a session: no multiple of 10, that of a packet",
            ),
            ("step = 1_000\n", "", "line 20: missing field `step`"),
            ("amount = 0.05", "amount = 1e99", "line 25: invalid price 1e99: not within 0 and 1000000000"),
            ("seconds = 20", "seconds = 0", "line 26: invalid seconds 0: not within 1 and 31536000"),
        ];
        for (right, wrong, expected) in cases {
            let text = SATELLITE.to_string() + &SESSIONS.replacen(right, wrong, 1);
            assert_eq!(Tariff::read(&text).unwrap_err().to_string(), expected);
        }
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
