//! Parsers for values: numbers, times, rates, networks.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use thinair_wire::time;

/// Maximum time.
const DAY: Duration = Duration::from_secs(86_400);

/// Parses a number in a range, decimal, or hexadecimal after 0x.
pub(super) fn number<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String>
where
    T: TryFrom<u64> + PartialOrd + Display,
{
    move |text| {
        let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => (digits, 16),
            None => (text, 10),
        };
        // The library allows a sign; this format does not.
        let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u64::from_str_radix(digits, radix).ok().filter(|_| plain);
        let number = number.and_then(|number| T::try_from(number).ok());
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| format!("give a number from {} to {}", range.start(), range.end()))
    }
}

/// Parses a boolean.
pub(super) fn truth(text: &str) -> Result<bool, String> {
    match text {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err("give true or false".to_owned()),
    }
}

/// Parses a time with its unit: us, ms, s, min or h.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    time::span(text).filter(|span| *span <= DAY).ok_or_else(|| {
        "give a number with its unit, such as 500us, 3ms, 2s, 1min or 1h; at most 24h".to_owned()
    })
}

/// Parses a rate in bit/s, with k, M or G for 10^3, 10^6, 10^9.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    let units = [("k", 1e3), ("M", 1e6), ("G", 1e9)];
    let found = units.into_iter().find_map(|(unit, times)| Some((text.strip_suffix(unit)?, times)));
    let (digits, times) = found.unwrap_or((text, 1.0));
    let rate = decimal(digits.trim()).map(|number| (number * times).round());
    rate.filter(|rate| (1.0..=1e12).contains(rate))
        .map(|rate| rate as u64)
        .ok_or_else(|| "give a rate in bit/s, such as 9600, 64k or 3.507M".to_owned())
}

/// Parses digits with an optional point: no other format that the library accepts.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|octet| octet.is_ascii_digit() || octet == b'.');
    text.parse().ok().filter(|_| plain)
}

/// Parses the address of an interface and its prefix length; default: all bits.
pub(super) fn address(text: &str) -> Result<(IpAddr, u8), String> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address = IpAddr::from_str(address)
        .map_err(|_| "give an address and a prefix length, such as 10.9.0.1/30 or fd00::1/64")?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Ok(most), number(0..=most)).map_err(|_| {
        format!("the prefix length of an IPv{} network is 0 to {most}", if address.is_ipv4() { 4 } else { 6 })
    })?;
    Ok((address, bits))
}

/// Parses a network, whose host bits are zero.
pub(super) fn network(text: &str) -> Result<(IpAddr, u8), String> {
    let (given, bits) = address(text)?;
    let network = masked(given, bits);
    if network != given {
        return Err(format!("has host bits; the network is {network}/{bits}"));
    }
    Ok((network, bits))
}

/// Returns the address with all bits after the prefix cleared.
pub(crate) fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            IpAddr::from((address.to_bits() & mask).to_be_bytes())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            IpAddr::from((address.to_bits() & mask).to_be_bytes())
        }
    }
}

/// True if two networks have an address in common.
pub(super) fn overlap(a: (IpAddr, u8), b: (IpAddr, u8)) -> bool {
    let bits = a.1.min(b.1);
    a.0.is_ipv4() == b.0.is_ipv4() && masked(a.0, bits) == masked(b.0, bits)
}

/// Parses one of several keywords.
pub(super) fn word<T: Copy>(words: &[(&str, T)]) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            let meant = closest(text, known.iter().copied());
            let meant = meant.map(|word| format!("; did you mean {word}?")).unwrap_or_default();
            format!("expected one of {}{meant}", known.join(", "))
        })
    }
}

/// Returns the keyword that is most similar to a misspelled one.
pub(super) fn closest<'w>(text: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let near = words.map(|word| (strsim::damerau_levenshtein(text, word), word));
    let (distance, word) = near.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + word.len() / 4 && distance < word.len()).then_some(word)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn numbers_are_in_their_range() {
        let octet = number(1_u8..=255);
        assert_eq!((octet("1"), octet("0x40"), octet("0XfF")), (Ok(1), Ok(64), Ok(255)));
        for bad in ["0", "256", "+1", "-1", "0x+1", "", "0x", "1.5", "f", "99999999999999999999"] {
            assert_eq!(octet(bad), Err("give a number from 1 to 255".to_owned()), "{bad}");
        }
    }

    #[test]
    fn times_have_units() {
        assert_eq!(span("0"), Ok(Duration::ZERO));
        assert_eq!(span("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(span("3ms"), Ok(Duration::from_millis(3)));
        assert_eq!(span("1.5 s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(span("2min"), Ok(Duration::from_secs(120)));
        assert_eq!(span("24h"), Ok(DAY));
        for bad in ["", "3", "ms", "-3ms", "+3ms", "infs", "nans", "25h", "3 weeks", "1e3s"] {
            assert!(span(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rates_have_thousands() {
        assert_eq!(rate("9600"), Ok(9_600));
        assert_eq!(rate("3.507M"), Ok(3_507_000));
        assert_eq!(rate("64k"), Ok(64_000));
        for bad in ["", "k", "0", "-1", "1e6", "3.5.1M", "9999G"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn networks_have_no_host() {
        assert_eq!(address("10.9.0.1/30"), Ok((IpAddr::from([10, 9, 0, 1]), 30)));
        assert_eq!(address("fd00::1").unwrap().1, 128);
        assert_eq!(network("0.0.0.0/0").unwrap().1, 0);
        assert_eq!(network("::/0").unwrap().1, 0);
        assert_eq!(network("10.9.0.1/30"), Err("has host bits; the network is 10.9.0.0/30".to_owned()));
        for bad in ["", "/", "10.9.0.1/33", "10.9.0/8", "fd00::/129", "10.0.0.0/+8", "10.0.0.0/"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn networks_overlap_if_one_holds_the_other() {
        let overlap = |a, b| overlap(network(a).unwrap(), network(b).unwrap());
        assert!(overlap("10.0.0.0/8", "10.1.0.0/16") && overlap("10.1.0.0/16", "0.0.0.0/0"));
        assert!(!overlap("10.0.0.0/16", "10.1.0.0/16") && !overlap("::/0", "0.0.0.0/0"));
        assert!(overlap("fd00::/8", "fd12::/16") && !overlap("fd12::/16", "fd13::/16"));
    }

    #[test]
    fn a_word_that_is_not_known_is_told_with_its_neighbour() {
        let framing = word(&[("slip", 1), ("cobs", 2)]);
        assert_eq!(framing("cobs"), Ok(2));
        assert_eq!(framing("cops"), Err("expected one of slip, cobs; did you mean cobs?".to_owned()));
        assert_eq!(framing("hdlc"), Err("expected one of slip, cobs".to_owned()));
        assert_eq!(word(&[("u", 1)])("x"), Err("expected one of u".to_owned()));
    }
}
