//! FASOR: a fast RTO for losses, a slow RTO against congestion, three series of timeouts. draft-ietf-core-fasor-02.
//!
//! Text and pseudocode differ for the first sample R. The text: "initialized with that sample as specified in RFC 6298,
//! except RTTVAR that is set to R/2K where K = 4". The pseudocode: K = 1 for this once. Both give an RTO of 1.5 R; the
//! next ones differ, and this implementation follows the text.
//!
//! SlowRTO has no limit in the draft. Here it is at most MAX_TRANSMIT_SPAN, so that a message is sent at least twice; and a
//! silence of the path whose end was one round trip as before counts as that round trip.
//!
//! The draft has one message under way at a time. With more, there is one state for a peer: a message takes the series of
//! the state in which it is first sent, and each acknowledgement moves the state.

use core::time::Duration;

use thinair_wire::time::Instant;

use super::{Acknowledged, CongestionControl, Estimator, Series, Timer, Transmission, nanos, part};

/// K of RFC 6298.
const K: u64 = 4;

/// Parameters of [`Fasor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FasorConfig {
    /// G, the granularity of the clock. Zero: the dither keeps the timeout at least SRTT/4 above the RTO.
    pub g: Duration,
    /// The largest FastRTO, 60 s or more.
    pub max_rto: Duration,
    /// Range of the addition to a timeout that keeps peers from retransmitting simultaneously: minimum and maximum, in
    /// thousandths of SRTT. Default: 250 to 1,000, as in the draft.
    pub dither: (u16, u16),
    /// [`Self::dither`] in state FAST, once there is a measurement: as long as every message is answered after one
    /// transmission, peers need not be spread. Default: as [`Self::dither`]; see [`Self::quick`] for less.
    pub fast_dither: (u16, u16),
    /// Ratio of SlowRTO to the measured time, in thousandths. Default: 1,500.
    pub slow_rto_factor: u16,
    /// True if the last octet of a request's Token is the number of earlier transmissions, so that a piggybacked response
    /// identifies the transmission that it answers (section 4.5). Default: false. It requires nothing of the server; the
    /// Token is an octet longer. A request that observes keeps its Token, which identifies the observation.
    pub count_in_token: bool,
}

impl Default for FasorConfig {
    fn default() -> Self {
        Self {
            g: Duration::ZERO,
            max_rto: Duration::from_secs(60),
            dither: (250, 1_000),
            fast_dither: (250, 1_000),
            slow_rto_factor: 1_500,
            count_in_token: false,
        }
    }
}

impl FasorConfig {
    /// Parameters with a dither of SRTT/8 to SRTT/4 in state FAST: quicker after a loss, and as careful as the draft
    /// after two. G is 5 ms, so that a process that waited for a processor does not retransmit too early where round
    /// trips are short.
    pub fn quick() -> Self {
        Self { g: Duration::from_millis(5), fast_dither: (125, 250), ..Self::default() }
    }
}

/// State, which determines the series of the next message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FasorState {
    /// FAST: F, 2F, 4F, ...
    #[default]
    Fast,
    /// FAST_SLOW_FAST: F, max(S, 2F), 2F, 4F, ...
    FastSlowFast,
    /// SLOW_FAST: S, F, 2F, 4F, ...
    SlowFast,
}

/// FastRTO, SlowRTO and the state of one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fasor {
    config: FasorConfig,
    estimator: Option<Estimator>,
    /// Time of its latest sample.
    sampled: Instant,
    /// SlowRTO in nanoseconds; 0 before it is measured.
    slow: u64,
    /// Previous RTT sample in nanoseconds; 0 if the previous message gave none, or transmissions are not counted.
    previous: u64,
    state: FasorState,
}

impl Fasor {
    /// Creates the state of a peer without measurements.
    pub const fn new(config: FasorConfig) -> Self {
        Self {
            config,
            estimator: None,
            sampled: Instant::ZERO,
            slow: 0,
            previous: 0,
            state: FasorState::Fast,
        }
    }

    /// Returns the state.
    pub const fn state(&self) -> FasorState {
        self.state
    }

    /// Returns SlowRTO as measured, without its limit; zero before.
    pub const fn slow_rto(&self) -> Duration {
        Duration::from_nanos(self.slow)
    }

    /// Returns SlowRTO in nanoseconds: at most MAX_TRANSMIT_SPAN.
    fn slow(&self, parameters: &Transmission) -> u64 {
        self.slow.min(nanos(parameters.max_transmit_span()))
    }

    fn known(&self, now: Instant) -> Option<Estimator> {
        self.estimator?.aged(self.sampled, now)
    }

    /// Returns FastRTO, and SRTT or its substitute before a sample.
    fn fast(&self, now: Instant, parameters: &Transmission) -> (u64, u64) {
        match self.known(now) {
            Some(estimator) => {
                // "max(RTO, Previous-RTT-Sample)", section 4.4.
                let rto = estimator.rto(nanos(self.config.g), K).max(self.previous);
                (rto.min(nanos(self.config.max_rto)), estimator.srtt)
            }
            None => {
                let rto = nanos(parameters.ack_timeout);
                (rto, rto / 3)
            }
        }
    }
}

impl CongestionControl for Fasor {
    /// ACK_RANDOM_FACTOR is not used: the draft has its own dither.
    fn start(&mut self, now: Instant, parameters: &Transmission, _in_flight: usize, random: u64) -> Timer {
        let (rto, srtt) = self.fast(now, parameters);
        let (from, to) = match (self.state, self.known(now)) {
            (FasorState::Fast, Some(_)) => self.config.fast_dither,
            _ => self.config.dither,
        };
        let (from, to) = (u64::from(from), u64::from(to));
        let at_least = rto.saturating_add((srtt / 1_000).saturating_mul(from));
        let fast =
            at_least.saturating_add(part((srtt / 1_000).saturating_mul(to.saturating_sub(from)), random));
        let slow = self.slow(parameters);
        match self.state {
            FasorState::Fast => Timer::new(fast, fast, Series::Double),
            FasorState::FastSlowFast => Timer::new(fast, fast, Series::FastSlowFast { slow }),
            FasorState::SlowFast => Timer::new(slow, fast, Series::SlowFast { fast }),
        }
    }

    fn back_off(&mut self, timer: &mut Timer) {
        timer.retransmissions = timer.retransmissions.saturating_add(1);
        timer.nanos = match (timer.series, timer.retransmissions) {
            (Series::FastSlowFast { slow }, 1) => slow.max(timer.base.saturating_mul(2)),
            (Series::FastSlowFast { .. }, _) => double(&mut timer.base),
            (Series::SlowFast { fast }, 1) => fast,
            (Series::SlowFast { .. } | Series::Double | Series::Variable, _) => double(&mut timer.base),
        };
    }

    fn on_ack(&mut self, ack: &Acknowledged) {
        let sample = ack.since_first();
        let certain = match ack.answered.filter(|_| self.config.count_in_token) {
            Some(answered) => Some(ack.now.nanos_since(answered)),
            None => ack.is_unambiguous().then_some(sample),
        };
        self.previous = certain.filter(|_| self.config.count_in_token).unwrap_or(0);
        if let Some(sample) = certain {
            self.estimator = Some(Estimator::next(self.known(ack.now), sample, 2 * K));
            self.sampled = ack.now;
        }
        if ack.is_unambiguous() {
            self.state = FasorState::Fast;
            return;
        }
        // Whichever transmission was answered: "when there is an acknowledgement after any retransmission" (4.3.2).
        let silence = self
            .known(ack.now)
            .is_some_and(|known| ack.follows_silence(&known, known.rto(nanos(self.config.g), K)));
        let took = if silence { ack.now.nanos_since(ack.last) } else { sample };
        let slow = u128::from(took) * u128::from(self.config.slow_rto_factor) / 1_000;
        self.slow = u64::try_from(slow).unwrap_or(u64::MAX);
        self.state = match self.state {
            FasorState::Fast => FasorState::FastSlowFast,
            FasorState::FastSlowFast | FasorState::SlowFast => FasorState::SlowFast,
        };
    }

    fn rto(&self, now: Instant, parameters: &Transmission) -> Duration {
        let (fast, _) = self.fast(now, parameters);
        Duration::from_nanos(if self.state == FasorState::SlowFast { self.slow(parameters) } else { fast })
    }

    fn has_sample(&self) -> bool {
        self.estimator.is_some() || self.slow != 0
    }

    fn srtt(&self) -> Option<Duration> {
        self.estimator.map(|estimator| Duration::from_nanos(estimator.srtt))
    }

    fn counts_in_token(&self) -> bool {
        self.config.count_in_token
    }
}

fn double(base: &mut u64) -> u64 {
    *base = base.saturating_mul(2);
    *base
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(rtt_millis: u64, transmissions: u8) -> Acknowledged {
        let zero = Instant::ZERO;
        Acknowledged {
            now: Instant::from_millis(rtt_millis),
            first: zero,
            last: zero,
            transmissions,
            answered: None,
        }
    }

    fn micros(fasor: &Fasor) -> u128 {
        fasor.rto(Instant::ZERO, &Transmission::default()).as_micros()
    }

    fn series(fasor: &mut Fasor) -> [u128; 5] {
        let mut timer = fasor.start(Instant::ZERO, &Transmission::default(), 0, 0);
        [0; 5].map(|_: u128| {
            let timeout = timer.timeout().as_micros();
            fasor.back_off(&mut timer);
            timeout
        })
    }

    /// By hand from the text. R = 100 ms: SRTT 100, RTTVAR 12.5, RTO 150. Then 180 ms: RTTVAR 9.375 + 20 = 29.375, SRTT
    /// 110, RTO 227.5. The pseudocode would have RTTVAR 37.5 + 20 = 57.5 and an RTO of 340.
    #[test]
    fn the_first_sample_gives_one_and_a_half_of_it() {
        let mut fasor = Fasor::new(FasorConfig::default());
        assert_eq!(micros(&fasor), 2_000_000);
        fasor.on_ack(&ack(100, 1));
        assert_eq!(micros(&fasor), 150_000);
        fasor.on_ack(&ack(180, 1));
        assert_eq!(micros(&fasor), 227_500);
    }

    /// 2 s + 2/3 s / 4 to 2 s + 2/3 s; 150 ms + 25 ms to 150 ms + 100 ms.
    #[test]
    fn timeouts_are_dithered_by_srtt() {
        let parameters = Transmission::default();
        let mut fasor = Fasor::new(FasorConfig::default());
        let range = |fasor: &mut Fasor| {
            [0, u64::MAX]
                .map(|random| fasor.start(Instant::ZERO, &parameters, 0, random).timeout().as_micros())
        };
        assert_eq!(range(&mut fasor), [2_166_666, 2_666_666]);
        fasor.on_ack(&ack(100, 1));
        assert_eq!(range(&mut fasor), [175_000, 250_000]);
    }

    /// By hand: F = 175 ms; S = 1.5 times the time from the first transmission.
    #[test]
    fn each_state_has_its_series() {
        let mut fasor = Fasor::new(FasorConfig::default());
        fasor.on_ack(&ack(100, 1));
        assert_eq!(series(&mut fasor), [175_000, 350_000, 700_000, 1_400_000, 2_800_000]);

        fasor.on_ack(&ack(400, 2));
        assert_eq!((fasor.state(), fasor.slow_rto()), (FasorState::FastSlowFast, Duration::from_millis(600)));
        assert_eq!(series(&mut fasor), [175_000, 600_000, 350_000, 700_000, 1_400_000]);

        // SlowRTO below 2F counts as 2F.
        fasor.on_ack(&ack(200, 2));
        assert_eq!((fasor.state(), fasor.slow_rto()), (FasorState::SlowFast, Duration::from_millis(300)));
        assert_eq!(series(&mut fasor), [300_000, 175_000, 350_000, 700_000, 1_400_000]);
        fasor.state = FasorState::FastSlowFast;
        assert_eq!(series(&mut fasor)[..2], [175_000, 350_000]);
    }

    #[test]
    fn states_move_as_in_the_figure_of_the_draft() {
        let mut fasor = Fasor::new(FasorConfig::default());
        let states = [2, 3, 2, 5, 1, 2, 1].map(|transmissions| {
            fasor.on_ack(&ack(100, transmissions));
            fasor.state()
        });
        use FasorState::{Fast, FastSlowFast, SlowFast};
        assert_eq!(states, [FastSlowFast, SlowFast, SlowFast, SlowFast, Fast, FastSlowFast, Fast]);
    }

    /// By hand. 100 ms: SRTT 100, RTTVAR 12.5. The second of two transmissions, sent after 175 ms, is answered after 255
    /// ms: a sample of 80 ms. RTTVAR 9.375 + 5 = 14.375, SRTT 97.5, RTO 155; SlowRTO 1.5 * 255 = 382.5.
    #[test]
    fn a_count_makes_every_sample_certain() {
        let mut fasor = Fasor::new(FasorConfig { count_in_token: true, ..FasorConfig::default() });
        fasor.on_ack(&ack(100, 1));
        assert_eq!(micros(&fasor), 150_000);
        fasor.on_ack(&Acknowledged { answered: Some(Instant::from_millis(175)), ..ack(255, 2) });
        assert_eq!((micros(&fasor), fasor.slow_rto()), (155_000, Duration::from_micros(382_500)));
        assert_eq!(fasor.state(), FasorState::FastSlowFast);
        // 400 ms: RTTVAR 10.78125 + 75.625, SRTT 85.3125 + 50, RTO 480.9375, above the sample; then 200 ms, seven times.
        fasor.on_ack(&ack(400, 1));
        assert_eq!(micros(&fasor), 480_937);
        // The RTO after a long round trip is at least the previous sample before RTTVAR has followed.
        let mut fasor = Fasor::new(FasorConfig { count_in_token: true, ..FasorConfig::default() });
        (0..50).for_each(|_| fasor.on_ack(&ack(100, 1)));
        fasor.on_ack(&ack(110, 1));
        // RTTVAR about 2.5, SRTT 101.25: RTO 111.25. After an answer that does not identify its transmission, the RTO
        // alone counts.
        assert_eq!(micros(&fasor) / 1_000, 111);
        fasor.previous = 300_000_000;
        assert_eq!(micros(&fasor), 300_000);
        fasor.on_ack(&ack(500, 2));
        assert_eq!(fasor.previous, 0);
    }

    /// 140 s from the first transmission would give 210 s.
    #[test]
    fn slow_rto_is_at_most_max_transmit_span() {
        let parameters = Transmission::default();
        let mut fasor = Fasor::new(FasorConfig::default());
        fasor.on_ack(&ack(100, 1));
        (0..2).for_each(|_| fasor.on_ack(&ack(140_000, 5)));
        assert_eq!((fasor.state(), fasor.slow_rto()), (FasorState::SlowFast, Duration::from_secs(210)));
        let timer = fasor.start(Instant::ZERO, &parameters, 0, 0);
        assert_eq!([timer.timeout(), fasor.rto(Instant::ZERO, &parameters)], [Duration::from_secs(45); 2]);
        let parameters = Transmission { ack_timeout: Duration::from_secs(10), ..parameters };
        assert_eq!(fasor.rto(Instant::ZERO, &parameters), Duration::from_secs(210));
    }

    /// A path of 100 ms is silent for 5 s; the transmission behind it is answered after 110 ms: SlowRTO 165 ms. After
    /// 1.5 s, the path has become slower: SlowRTO 7.5 s.
    #[test]
    fn a_silence_is_no_slow_path() {
        for (since_last, slow) in [(110, 165), (1_500, 7_500)] {
            let mut fasor = Fasor::new(FasorConfig::default());
            (0..9).for_each(|_| fasor.on_ack(&ack(100, 1)));
            fasor.on_ack(&ack(130, 1));
            let last = Instant::from_millis(5_000 - since_last);
            fasor.on_ack(&Acknowledged { last, ..ack(5_000, 6) });
            assert_eq!(fasor.slow_rto(), Duration::from_millis(slow));
        }
    }

    /// A round trip longer than the initial RTO gives an unambiguous sample with the third message.
    #[test]
    fn a_path_of_12_s_is_learned() {
        let parameters = Transmission::default();
        let mut fasor = Fasor::new(FasorConfig::default());
        let mut transmissions = std::vec![];
        for _ in 0..4 {
            let mut timer = fasor.start(Instant::ZERO, &parameters, 0, 0);
            let mut waited = timer.timeout();
            while waited < Duration::from_secs(12) {
                fasor.back_off(&mut timer);
                waited += timer.timeout();
            }
            transmissions.push(timer.retransmissions() + 1);
            fasor.on_ack(&ack(12_000, timer.retransmissions() + 1));
        }
        assert_eq!(transmissions, [3, 2, 1, 1]);
    }
}
