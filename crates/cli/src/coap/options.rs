//! Options of a request: content and transmission.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use thinair_coap::congestion::{Algorithm, FasorConfig, Transmission};
use thinair_coap::oscore::MAX_ID;
use thinair_coap::{BlockSize, Config, Limits, OptionList, Policy, Timing, Tokens, Uri, number};

use super::names::{self, OptionFormat};
use crate::values::time;

/// Options of a message that have a command-line option of their own.
const TAKEN: &[(u16, &str)] = &[
    (number::OBSERVE, "`thinair coap observe` does that"),
    (number::BLOCK1, "--block-size does that"),
    (number::BLOCK2, "--block-size does that"),
    (number::SIZE1, "it follows from the payload"),
];

/// Congestion control algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Congestion {
    /// ACK_TIMEOUT, doubled with each retransmission
    Rfc7252,
    /// RTO as in TCP (RFC 6298), without its lower bound
    Rfc6298,
    /// draft-ietf-core-cocoa-03
    Cocoa,
    /// draft-ietf-core-fasor-02
    Fasor,
    /// fasor with less dithering if nothing is lost
    FasorQuick,
}

impl Congestion {
    fn algorithm(self) -> Algorithm {
        match self {
            Self::Rfc7252 => Algorithm::Rfc7252,
            Self::Rfc6298 => Algorithm::Rfc6298(Default::default()),
            Self::Cocoa => Algorithm::Cocoa(Default::default()),
            Self::Fasor => Algorithm::Fasor(FasorConfig::default()),
            Self::FasorQuick => Algorithm::Fasor(FasorConfig::quick()),
        }
    }
}

/// Content and transmission of every request.
#[derive(Args, Clone, Debug)]
pub(crate) struct RequestOptions {
    /// Content-Format of the response, a number or name such as json or application/cbor
    #[arg(long, value_name = "FORMAT", value_parser = names::format_number, help_heading = "Request")]
    accept: Option<u16>,
    /// ETag of a stored response, in hexadecimal; the server confirms it with 2.03; may be repeated
    #[arg(long, hide_short_help = true, value_name = "HEX", value_parser = etag, help_heading = "Request")]
    etag: Vec<OptionOctets>,
    /// Proceed only if the resource has this ETag (hexadecimal), or, without a value, if it exists; may be
    /// repeated
    #[arg(long, hide_short_help = true, value_name = "HEX", value_parser = if_match, num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Request")]
    if_match: Vec<OptionOctets>,
    /// Proceed only if the resource does not exist
    #[arg(long, hide_short_help = true, help_heading = "Request")]
    if_none_match: bool,
    /// Add an option, by number or name; may be repeated
    ///
    /// VALUE is 0x and hexadecimal digits, a number for options that have one, or text. Uri-Host and Uri-Port
    /// replace those of the URI in the message; the destination stays.
    #[arg(long, value_name = "OPTION=VALUE", value_parser = option, help_heading = "Request")]
    option: Vec<(u16, OptionOctets)>,
    /// Send a Non-confirmable message, which is not retransmitted
    #[arg(long, help_heading = "Request")]
    non: bool,
    /// Request from a group: HOST is a multicast address; print every answer that arrives within TIME [default: 6s]
    ///
    /// The message is Non-confirmable and sent once (RFC 7252, section 8).
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = time, num_args = 0..=1, require_equals = true, default_missing_value = "6s", help_heading = "Request")]
    pub(crate) group: Option<Duration>,
    /// Encrypt by the OSCORE security context in this folder
    ///
    /// RFC 8613. settings.json and sequence.json in it are in the format of aiocoap; `thinair coap keygen` makes
    /// such folders. A response that is not protected is not accepted.
    #[arg(
        long,
        hide_short_help = true,
        value_name = "FOLDER",
        conflicts_with = "group",
        help_heading = "Request"
    )]
    pub(crate) oscore: Option<PathBuf>,
    /// Encrypt by OSCORE, with keys that are agreed on first (EDHOC), with the private key in this file
    ///
    /// RFC 9528. The credential of the key, and that of the server, are .ccs files beside it; `thinair coap pair` makes all of
    /// them. The first request has the last message of the key exchange (RFC 9668).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["group", "oscore"], help_heading = "Request")]
    pub(crate) edhoc: Option<PathBuf>,
    /// Use the context of --oscore although its folder was copied: its original is never used again
    #[arg(long, hide_short_help = true, requires = "oscore", help_heading = "Request")]
    pub(crate) moved: bool,
    /// Use the pre-shared key in this file for coaps://
    ///
    /// It has one line, IDENTITY:KEY, the key in hexadecimal digits; `thinair coap keygen --psk` makes it. DTLS 1.2 with TLS_PSK_WITH_AES_128_CCM_8 and connection IDs (RFC 6347, RFC 9146). Only its owner may be able
    /// to read the file, as after chmod 600.
    #[arg(long, value_name = "FILE", conflicts_with = "group", help_heading = "Request")]
    pub(crate) psk_file: Option<PathBuf>,

    /// Congestion control algorithm
    #[arg(long, value_enum, hide_short_help = true, value_name = "NAME", default_value_t = Congestion::FasorQuick, help_heading = "Transmission")]
    congestion: Congestion,
    /// ACK_TIMEOUT, timeout of the first transmission; set it above the round-trip time [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Transmission")]
    ack_timeout: Option<Duration>,
    /// ACK_RANDOM_FACTOR, 1 to 10: the first timeout is up to FACTOR times ACK_TIMEOUT [default: 1.5]
    #[arg(long, hide_short_help = true, value_name = "FACTOR", value_parser = factor, help_heading = "Transmission")]
    ack_random_factor: Option<u16>,
    /// MAX_RETRANSMIT: number of retransmissions with rfc7252; other algorithms retransmit for
    /// MAX_TRANSMIT_SPAN, which follows from it [default: 4]
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u8).range(..=20), help_heading = "Transmission")]
    max_retransmit: Option<u8>,
    /// NSTART, maximum number of unacknowledged messages to the server [default: 1]
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Transmission")]
    nstart: Option<u16>,
    /// Block size in octets, a power of 2 from 16 to 1024 [default: 1024]
    #[arg(long, value_name = "N", value_parser = block_size, help_heading = "Transmission")]
    block_size: Option<BlockSize>,
    /// Token length in octets, 1 to 8 [default: 3; 1 with --oscore or --edhoc]. Tokens to a server count from a random start
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8), help_heading = "Transmission")]
    token_length: Option<u8>,
    /// Maximum size of the response in octets; it is kept in memory
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 64 << 20, help_heading = "Transmission")]
    max_body: usize,
    /// Time limit of the exchange, such as 30s
    ///
    /// For an observation, of its first notification [default: the limit of retransmissions, then 93s for the
    /// response to an acknowledged request].
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Transmission")]
    pub(crate) timeout: Option<Duration>,
    /// Time limit of the TCP handshake with each address
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = time, default_value = "10s", help_heading = "Transmission")]
    pub(crate) connect_timeout: Duration,

    /// Write the payload to a file; of an observation, the latest payload
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Print response code and options to standard error
    #[arg(long, short = 'v', visible_short_alias = 'i', help_heading = "Output")]
    pub(crate) include: bool,
    /// Print times and message counts to standard error
    #[arg(long, help_heading = "Output")]
    pub(crate) timing: bool,
    /// Print JSON (thinair.coap/1); for an observation, one line per notification
    #[arg(long, conflicts_with = "output", help_heading = "Output")]
    pub(crate) json: bool,
}

/// Octets given as an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OptionOctets(pub(super) Vec<u8>);

impl RequestOptions {
    /// Returns the settings of the endpoint.
    pub(crate) fn config(&self) -> Config {
        let config = Config::default();
        let is_bound = self.oscore.is_some() || self.edhoc.is_some();
        let policy = if is_bound { Policy::OSCORE_CLIENT } else { Policy::CLIENT };
        let transmission = Transmission {
            ack_timeout: self.ack_timeout.unwrap_or(config.timing.transmission.ack_timeout),
            ack_random_factor: self.ack_random_factor.unwrap_or(config.timing.transmission.ack_random_factor),
            max_retransmit: self.max_retransmit.unwrap_or(config.timing.transmission.max_retransmit),
            nstart: self.nstart.unwrap_or(config.timing.transmission.nstart),
            ..config.timing.transmission
        };
        Config {
            timing: Timing { transmission, congestion: self.congestion.algorithm(), ..config.timing },
            limits: Limits { max_body: self.max_body, ..config.limits },
            policy: Policy {
                block_size: self.block_size.unwrap_or(config.policy.block_size),
                tokens: self.token_length.map_or(policy.tokens, Tokens::Sequence),
                ..policy
            },
        }
    }

    /// Returns the first timeout of a handshake, if it is given.
    pub(crate) const fn handshake_timeout(&self) -> Option<Duration> {
        self.ack_timeout
    }

    pub(crate) const fn is_confirmable(&self) -> bool {
        !self.non
    }

    /// Returns the options of a request for `uri`.
    pub(crate) fn options(&self, uri: &Uri, content_format: Option<u16>) -> OptionList {
        let mut options = uri.options();
        for number in [number::URI_HOST, number::URI_PORT] {
            if self.option.iter().any(|(given, _)| *given == number) {
                options.remove(number);
            }
        }
        self.etag.iter().for_each(|etag| options.push(number::ETAG, &etag.0));
        self.if_match.iter().for_each(|etag| options.push(number::IF_MATCH, &etag.0));
        if self.if_none_match {
            options.push(number::IF_NONE_MATCH, &[]);
        }
        for (number, format) in [(number::CONTENT_FORMAT, content_format), (number::ACCEPT, self.accept)] {
            if let Some(format) = format {
                options.push_uint(number, u32::from(format));
            }
        }
        self.option.iter().for_each(|(number, value)| options.push(*number, &value.0));
        options
    }
}

fn factor(text: &str) -> Result<u16, String> {
    let factor = text.parse::<f64>().ok().filter(|factor| (1.0..=10.0).contains(factor));
    factor
        .map(|factor| (factor * 1_000.0).round() as u16)
        .ok_or_else(|| "expected a number from 1 to 10".to_owned())
}

fn block_size(text: &str) -> Result<BlockSize, String> {
    let octets = text.parse().ok().filter(|octets| BlockSize::at_most(*octets).octets() == *octets);
    octets.map(BlockSize::at_most).ok_or_else(|| "expected 16, 32, 64, 128, 256, 512 or 1024".to_owned())
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |octet, digit| octet << 4 | digit)).collect())
}

fn etag(text: &str) -> Result<OptionOctets, String> {
    of_length(number::ETAG, text)
}

fn if_match(text: &str) -> Result<OptionOctets, String> {
    of_length(number::IF_MATCH, text)
}

fn of_length(number: u16, text: &str) -> Result<OptionOctets, String> {
    let octets = hexadecimal(text.strip_prefix("0x").unwrap_or(text));
    let octets = octets.filter(|octets| number::allows(number, octets.len()));
    octets
        .map(OptionOctets)
        .ok_or_else(|| "expected up to 8 octets in hexadecimal digits, as in 0x1f2e".to_owned())
}

/// Parses a Sender ID of OSCORE.
pub(super) fn identifier(text: &str) -> Result<OptionOctets, String> {
    let octets = hexadecimal(text.strip_prefix("0x").unwrap_or(text)).filter(|id| id.len() <= MAX_ID);
    octets.map(OptionOctets).ok_or_else(|| format!("expected up to {MAX_ID} octets in hexadecimal digits"))
}

/// Parses an option that has no command-line option of its own.
fn option(text: &str) -> Result<(u16, OptionOctets), String> {
    let (option, value) = text.split_once('=').ok_or("expected OPTION=VALUE, as in 2053=0x01")?;
    let number = names::option_number(option)?;
    if let Some((_, instead)) = TAKEN.iter().find(|(taken, _)| *taken == number) {
        return Err(format!("option {option} cannot be set with --option: {instead}"));
    }
    let kind = names::option(number).map_or(OptionFormat::Text, |(_, kind)| kind);
    let octets = match (value.strip_prefix("0x"), kind) {
        (Some(digits), _) => hexadecimal(digits).ok_or("expected pairs of hexadecimal digits after 0x")?,
        (None, OptionFormat::Uint | OptionFormat::Format | OptionFormat::Block) => {
            let uint: u32 =
                value.parse().map_err(|_| format!("option {option}: expected a number below 2^32"))?;
            let octets = uint.to_be_bytes();
            octets.into_iter().skip(uint.leading_zeros() as usize / 8).collect()
        }
        (None, OptionFormat::Opaque) => {
            return Err(format!("option {option}: expected octets, such as {option}=0x1f2e"));
        }
        (None, OptionFormat::Empty | OptionFormat::Text) => value.as_bytes().to_vec(),
    };
    if !number::allows(number, octets.len()) {
        return Err(format!("option {option}: invalid length of {} octets", octets.len()));
    }
    Ok((number, OptionOctets(octets)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_a_number_or_a_name_and_a_value() {
        let octets = |text: &str| option(text).map(|(number, octets)| (number, octets.0));
        assert_eq!(octets("2053=0x01ff"), Ok((2053, vec![1, 0xFF])));
        assert_eq!(octets("2053=x=y"), Ok((2053, b"x=y".to_vec())));
        assert_eq!(octets("Uri-Host=example.net"), Ok((3, b"example.net".to_vec())));
        assert_eq!(octets("max-age=256"), Ok((14, vec![1, 0])));
        assert_eq!(octets("258=26"), Ok((258, vec![26])));
        for (text, why) in [
            ("2053", "OPTION=VALUE"),
            ("nothing=1", "give its number"),
            ("6=0", "observe"),
            ("Block2=3", "--block-size"),
            ("ETag=x", "0x1f2e"),
            ("4=0x", "0 octets"),
            ("258=256", "2 octets"),
            ("9999=0x1", "pairs"),
        ] {
            let error = octets(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_time_has_its_unit() {
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(time("20 ms"), Ok(Duration::from_millis(20)));
        assert_eq!(time("2min"), Ok(Duration::from_secs(120)));
        for text in ["2", "0s", "-1s", "x", "s", "inf s", "9999999h"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_of_blocks_are_powers_of_2() {
        assert_eq!(block_size("64").map(BlockSize::octets), Ok(64));
        assert!(["0", "15", "65", "2048", "x"].iter().all(|text| block_size(text).is_err()));
        assert_eq!(factor("1.25"), Ok(1_250));
        assert!(factor("0.5").is_err() && factor("nan").is_err());
    }
}
