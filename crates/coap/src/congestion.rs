//! Retransmission timeouts: one trait, and a file for each algorithm.
//!
//! An algorithm keeps a state for each peer. For each message it returns a [`Timer`] with the series of timeouts that was
//! chosen when the message was sent, so that measurements from other messages do not change it meanwhile. All arithmetic
//! is in integer nanoseconds.
//!
//! | algorithm | first timeout | next ones | learns from |
//! |---|---|---|---|
//! | [`Rfc7252`] | ACK_TIMEOUT, dithered | doubled | nothing |
//! | [`Rfc6298`] | SRTT + 4 RTTVAR | doubled, and kept for the next message (Karn) | messages sent once |
//! | [`Cocoa`] | mean of a strong and a weak estimator, dithered | times 3, 2 or 1.5 | messages sent up to three times |
//! | [`Fasor`] | FastRTO or SlowRTO | FastRTO doubled, with SlowRTO in between | all messages |
//!
//! ```
//! use thinair_coap::congestion::{Acknowledged, Algorithm, CongestionControl, Controller, Transmission};
//! use core::time::Duration;
//! use thinair_wire::time::Instant;
//!
//! let parameters = Transmission::default();
//! let mut controller = Controller::new(&Algorithm::Rfc7252, &parameters);
//! let timer = controller.start(Instant::ZERO, &parameters, 0, 0);
//! assert_eq!(timer.timeout(), Duration::from_secs(2));
//! ```

mod cocoa;
mod estimator;
mod fasor;
mod rfc6298;
mod rfc7252;
mod schedule;

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use thinair_wire::time::Instant;

pub use cocoa::{Cocoa, CocoaConfig};
pub use estimator::Estimator;
pub use fasor::{Fasor, FasorConfig, FasorState};
pub use rfc6298::{Rfc6298, Rfc6298Config};
pub use rfc7252::Rfc7252;
pub use schedule::MAX_TRANSMISSIONS;
pub(crate) use schedule::Schedule;

/// Transmission parameters. RFC 7252, section 4.8. Each peer can have its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// ACK_TIMEOUT: first timeout on a path without measurements. Default: 2 s; at least 1 s on the Internet, and more
    /// where a round trip takes longer (NB-IoT, LoRa, satellites).
    pub ack_timeout: Duration,
    /// ACK_RANDOM_FACTOR in thousandths. Default: 1,500. Less than 1,000 means 1,000.
    pub ack_random_factor: u16,
    /// MAX_RETRANSMIT: largest number of retransmissions with [`Rfc7252`]. An algorithm with measured timeouts retransmits
    /// for [`Self::max_transmit_span`], at most [`MAX_TRANSMISSIONS`] times in all. Default: 4; zero means none.
    pub max_retransmit: u8,
    /// NSTART: largest number of messages to one peer that wait for an acknowledgement. Default: 1; zero means 1. More
    /// than 1 requires congestion control (section 4.7).
    pub nstart: u16,
    /// PROBING_RATE: average rate towards a peer that does not answer, in octets a second. Default: 1; zero means 1.
    pub probing_rate: u32,
}

impl Default for Transmission {
    fn default() -> Self {
        Self {
            ack_timeout: Duration::from_secs(2),
            ack_random_factor: 1_500,
            max_retransmit: 4,
            nstart: 1,
            probing_rate: 1,
        }
    }
}

/// MAX_LATENCY: longest time that a datagram takes. RFC 7252, section 4.8.2.
pub const MAX_LATENCY: Duration = Duration::from_secs(100);

impl Transmission {
    /// MAX_TRANSMIT_SPAN: from the first transmission of a message to its last one; 45 s.
    pub fn max_transmit_span(&self) -> Duration {
        self.series(u32::from(self.max_retransmit))
    }

    /// MAX_TRANSMIT_WAIT: from the first transmission of a message to giving up; 93 s.
    pub fn max_transmit_wait(&self) -> Duration {
        self.series(u32::from(self.max_retransmit) + 1)
    }

    /// Time after its first transmission during which a Confirmable message may be retransmitted: a later transmission
    /// that takes MAX_LATENCY could reach a peer that considers it a new message. 147 s.
    pub fn retransmission_lifetime(&self) -> Duration {
        self.exchange_lifetime().saturating_sub(MAX_LATENCY)
    }

    /// EXCHANGE_LIFETIME: time before the Message ID of a Confirmable message may be reused; 247 s.
    pub fn exchange_lifetime(&self) -> Duration {
        self.max_transmit_span().saturating_add(MAX_LATENCY * 2).saturating_add(self.ack_timeout)
    }

    /// NON_LIFETIME: time before the Message ID of a Non-confirmable message may be reused; 145 s.
    pub fn non_lifetime(&self) -> Duration {
        self.max_transmit_span().saturating_add(MAX_LATENCY)
    }

    /// `ACK_TIMEOUT * (2^count - 1) * ACK_RANDOM_FACTOR`.
    fn series(&self, count: u32) -> Duration {
        let longest = dither(nanos(self.ack_timeout), self.ack_random_factor, u64::MAX);
        Duration::from_nanos(
            longest.saturating_mul(1_u64.checked_shl(count).unwrap_or(u64::MAX).saturating_sub(1)),
        )
    }
}

/// The timeouts of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    nanos: u64,
    /// Base from which the series continues, without dither.
    base: u64,
    /// First of the timeouts that are not SlowRTO, in nanoseconds.
    rto: u64,
    retransmissions: u8,
    series: Series,
}

/// Rule for the timeouts after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Series {
    /// Doubled each time.
    Double,
    /// Chosen by the algorithm from the timeout before.
    Variable,
    /// `FAST_SLOW_FAST` of FASOR, with SlowRTO in nanoseconds.
    FastSlowFast { slow: u64 },
    /// `SLOW_FAST` of FASOR, with FastRTO in nanoseconds.
    SlowFast { fast: u64 },
}

impl Timer {
    const fn new(nanos: u64, base: u64, series: Series) -> Self {
        Self { nanos, base, rto: base, retransmissions: 0, series }
    }

    /// Returns the time from the latest transmission to the next one, or to giving up.
    pub const fn timeout(&self) -> Duration {
        Duration::from_nanos(self.nanos)
    }

    /// Returns the number of retransmissions of the message.
    pub const fn retransmissions(&self) -> u8 {
        self.retransmissions
    }

    /// True if the timeout is SlowRTO of FASOR.
    const fn is_slow(&self) -> bool {
        matches!(
            (self.series, self.retransmissions),
            (Series::FastSlowFast { .. }, 1) | (Series::SlowFast { .. }, 0)
        )
    }
}

/// An acknowledgement of, or answer to, a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Time of its arrival.
    pub now: Instant,
    /// Time of the first transmission of the message.
    pub first: Instant,
    /// Time of the latest transmission.
    pub last: Instant,
    /// Number of transmissions, at least 1.
    pub transmissions: u8,
    /// Time of the transmission that was answered, if the answer identifies it ([`FasorConfig::count_in_token`]).
    pub answered: Option<Instant>,
}

impl Acknowledged {
    /// Returns the time from the first transmission to the acknowledgement, in nanoseconds.
    const fn since_first(&self) -> u64 {
        self.now.nanos_since(self.first)
    }

    /// True if it is certain which transmission was acknowledged.
    const fn is_unambiguous(&self) -> bool {
        self.transmissions <= 1
    }

    /// True if the path was silent, and not slow: after at least eight RTOs, one transmission was answered as soon as
    /// others before. An estimate is of one round trip, without back-off.
    const fn follows_silence(&self, estimate: &Estimator, rto: u64) -> bool {
        let since_last = self.now.nanos_since(self.last);
        self.since_first() >= rto.saturating_mul(8)
            && estimate.srtt / 4 * 3 <= since_last
            && since_last <= rto
    }
}

/// A congestion control algorithm with its state for one peer.
///
/// **`start` when a message is sent, `back_off` each time it is sent again, then one of `on_ack` and `on_give_up`.**
pub trait CongestionControl {
    /// Returns the timer of a message that is sent `now`, while `in_flight` others wait for their acknowledgement.
    /// `random` is the position in the range of the dither: 0 is its start.
    fn start(&mut self, now: Instant, parameters: &Transmission, in_flight: usize, random: u64) -> Timer;

    /// Advances to the next timeout of the series: the timer has expired and the message is retransmitted.
    fn back_off(&mut self, timer: &mut Timer);

    /// Processes an acknowledgement.
    fn on_ack(&mut self, ack: &Acknowledged);

    /// Processes the end of a series without an acknowledgement.
    fn on_give_up(&mut self, _now: Instant) {}

    /// Returns the first timeout of a message that was sent `now`, without dither.
    fn rto(&self, now: Instant, parameters: &Transmission) -> Duration;

    /// Returns the number of messages that may be under way.
    fn nstart(&self, parameters: &Transmission) -> usize {
        usize::from(parameters.nstart.max(1))
    }

    /// True if there is a measurement of the path to this peer.
    fn has_sample(&self) -> bool;

    /// True if timeouts are measured, so that their number is no measure of time. Default: true.
    fn is_adaptive(&self) -> bool {
        true
    }

    /// Returns SRTT, if the algorithm has one and there was a sample.
    fn srtt(&self) -> Option<Duration> {
        None
    }

    /// Returns N: at least one of N consecutive notifications to a peer is Confirmable. Default: 32, since notifications
    /// "MUST be interspersed with confirmable messages", which show that the client still wants them (RFC 7641, section
    /// 7).
    fn confirm_every(&self) -> u8 {
        32
    }

    /// True if the Token of a request contains the number of its retransmissions.
    fn counts_in_token(&self) -> bool {
        false
    }
}

/// Congestion control algorithm and its parameters.
///
/// The default is FASOR with less dither where nothing is lost ([`FasorConfig::quick`]). It has the shortest mean
/// exchange of those that neither collapse where 800 clients share 20 kbit/s nor retransmit too early where a round trip
/// takes 25 s: RFC 7252 and CoCoA do both. `thinair-lab paper run coap-latency` measures it; `docs/congestion.md` has the
/// figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 7252, section 4.2.
    Rfc7252,
    /// RFC 6298 without a minimum RTO.
    Rfc6298(Rfc6298Config),
    /// draft-ietf-core-cocoa-03.
    Cocoa(CocoaConfig),
    /// draft-ietf-core-fasor-02.
    Fasor(FasorConfig),
}

impl Default for Algorithm {
    fn default() -> Self {
        Self::Fasor(FasorConfig::quick())
    }
}

impl Algorithm {
    /// Names: those of the variants in their order, and `fasor-quick`, the default.
    pub const NAMES: [&'static str; 5] = ["rfc7252", "rfc6298", "cocoa", "fasor", "fasor-quick"];

    /// Returns its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rfc7252 => Self::NAMES[0],
            Self::Rfc6298(_) => Self::NAMES[1],
            Self::Cocoa(_) => Self::NAMES[2],
            Self::Fasor(config) if *config == FasorConfig::quick() => Self::NAMES[4],
            Self::Fasor(_) => Self::NAMES[3],
        }
    }
}

/// Error: unknown congestion control algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm;

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown congestion control; use rfc7252, rfc6298, cocoa, fasor or fasor-quick")
    }
}

impl core::error::Error for UnknownAlgorithm {}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        Ok(match name {
            "rfc7252" => Self::Rfc7252,
            "rfc6298" => Self::Rfc6298(Rfc6298Config::default()),
            "cocoa" => Self::Cocoa(CocoaConfig::default()),
            "fasor" => Self::Fasor(FasorConfig::default()),
            "fasor-quick" => Self::Fasor(FasorConfig::quick()),
            _ => return Err(UnknownAlgorithm),
        })
    }
}

/// An instance of one of the algorithms, with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Controller {
    /// RFC 7252, section 4.2.
    Rfc7252(Rfc7252),
    /// RFC 6298.
    Rfc6298(Rfc6298),
    /// draft-ietf-core-cocoa-03.
    Cocoa(Cocoa),
    /// draft-ietf-core-fasor-02.
    Fasor(Fasor),
}

impl Controller {
    /// Creates the state of a peer without measurements.
    pub const fn new(algorithm: &Algorithm, parameters: &Transmission) -> Self {
        match algorithm {
            Algorithm::Rfc7252 => Self::Rfc7252(Rfc7252),
            Algorithm::Rfc6298(config) => Self::Rfc6298(Rfc6298::new(*config)),
            Algorithm::Cocoa(config) => Self::Cocoa(Cocoa::new(*config, parameters)),
            Algorithm::Fasor(config) => Self::Fasor(Fasor::new(*config)),
        }
    }

    fn inner(&self) -> &dyn CongestionControl {
        match self {
            Self::Rfc7252(controller) => controller,
            Self::Rfc6298(controller) => controller,
            Self::Cocoa(controller) => controller,
            Self::Fasor(controller) => controller,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn CongestionControl {
        match self {
            Self::Rfc7252(controller) => controller,
            Self::Rfc6298(controller) => controller,
            Self::Cocoa(controller) => controller,
            Self::Fasor(controller) => controller,
        }
    }
}

impl CongestionControl for Controller {
    fn start(&mut self, now: Instant, parameters: &Transmission, in_flight: usize, random: u64) -> Timer {
        self.inner_mut().start(now, parameters, in_flight, random)
    }

    fn back_off(&mut self, timer: &mut Timer) {
        self.inner_mut().back_off(timer);
    }

    fn on_ack(&mut self, ack: &Acknowledged) {
        self.inner_mut().on_ack(ack);
    }

    fn on_give_up(&mut self, now: Instant) {
        self.inner_mut().on_give_up(now);
    }

    fn rto(&self, now: Instant, parameters: &Transmission) -> Duration {
        self.inner().rto(now, parameters)
    }

    fn nstart(&self, parameters: &Transmission) -> usize {
        self.inner().nstart(parameters)
    }

    fn has_sample(&self) -> bool {
        self.inner().has_sample()
    }

    fn is_adaptive(&self) -> bool {
        self.inner().is_adaptive()
    }

    fn srtt(&self) -> Option<Duration> {
        self.inner().srtt()
    }

    fn confirm_every(&self) -> u8 {
        self.inner().confirm_every()
    }

    fn counts_in_token(&self) -> bool {
        self.inner().counts_in_token()
    }
}

/// Nanoseconds of a duration; saturates after 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the point at fraction `random` / 2^64 of the range from `base` to `base * factor / 1000`.
fn dither(base: u64, factor: u16, random: u64) -> u64 {
    let width = u128::from(base) * u128::from(factor.saturating_sub(1_000)) / 1_000;
    base.saturating_add(part(u64::try_from(width).unwrap_or(u64::MAX), random))
}

/// Returns `width * random / 2^64`, rounded.
pub(crate) fn part(width: u64, random: u64) -> u64 {
    ((u128::from(width) * u128::from(random) + (1 << 63)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7252, section 4.8.2, table 3.
    #[test]
    fn derived_parameters_are_those_of_table_3() {
        let parameters = Transmission::default();
        let seconds = [
            parameters.max_transmit_span(),
            parameters.max_transmit_wait(),
            parameters.exchange_lifetime(),
            parameters.non_lifetime(),
        ]
        .map(|duration| duration.as_secs_f64());
        assert_eq!(seconds, [45.0, 93.0, 247.0, 145.0]);
    }

    #[test]
    fn large_parameters_saturate() {
        let parameters =
            Transmission { ack_timeout: Duration::MAX, max_retransmit: 255, ..Transmission::default() };
        assert!(parameters.exchange_lifetime() > Duration::from_secs(3_600));
    }

    #[test]
    fn an_algorithm_is_found_by_its_name() {
        for name in Algorithm::NAMES {
            assert_eq!(name.parse::<Algorithm>().map(|algorithm| algorithm.name()), Ok(name));
        }
        assert_eq!("tahoe".parse::<Algorithm>(), Err(UnknownAlgorithm));
    }
}
