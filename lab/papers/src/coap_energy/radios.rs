//! Energy of exchanges on a radio, and break-even points of compression.

use thinair_link::Direction;
use thinair_link::energy::{self, CORTEX_M3, Cpu, Energy, Radio, Spent, Usage};

use super::exchange::{Course, EnergyScheme, ExchangeLoad};

/// Processor that compresses.
pub(super) const CPU: Cpu = CORTEX_M3;
/// Seconds between two exchanges of a device.
pub(super) const PERIOD_SECONDS: u64 = 60;
/// Share of the time in which a waiting radio listens, in thousandths.
pub(super) const AWAKE: u16 = 10;
/// Number of other devices with the same traffic on a shared medium, within range.
const NEIGHBOURS: usize = 4;

/// Radios that are compared.
pub(super) const RADIOS: [Radio; 5] =
    [energy::WIFI, energy::CC2538, energy::NB_IOT, energy::LORA, energy::LORA_SF12];

/// Number of neighbors that a device hears: 0 where it listens to a base station only.
fn neighbours(radio: &Radio) -> usize {
    if [energy::WIFI, energy::CC2538].contains(radio) { NEIGHBOURS } else { 0 }
}

/// Activity of the client in an exchange, and until the next one.
fn usage(radio: &Radio, exchange: &ExchangeLoad) -> Usage {
    let elapsed = PERIOD_SECONDS * 1_000_000_000;
    let mut usage = Usage { elapsed, instructions: exchange.instructions, ..Usage::default() };
    radio.sends(&mut usage, exchange.request);
    radio.receives(&mut usage, exchange.response);
    for _ in 0..neighbours(radio) {
        radio.overhears(&mut usage, exchange.request);
        radio.overhears(&mut usage, exchange.response);
    }
    usage
}

/// Energy of an exchange at the client.
pub(super) fn spent(radio: &Radio, exchange: &ExchangeLoad) -> Spent {
    radio.spends(&usage(radio, exchange), &CPU, AWAKE)
}

/// Joules of an exchange by its airtime and the CPU, mean of several.
pub(super) fn mean(radio: &Radio, exchanges: &[ExchangeLoad], total: impl Fn(&Spent) -> Energy) -> f64 {
    let sum: Energy = exchanges.iter().map(|exchange| total(&spent(radio, exchange))).sum();
    sum.as_joules() / exchanges.len() as f64
}

/// Course of compressed packets beside the uncompressed ones, on a radio.
#[derive(Clone, Copy)]
pub(super) struct Versus<'c> {
    pub(super) radio: Radio,
    pub(super) plain: &'c Course,
    pub(super) compressed: &'c Course,
}

impl Versus<'_> {
    /// Joules of an exchange in steady state: uncompressed, compressed.
    fn settled(&self) -> [f64; 2] {
        [self.plain, self.compressed].map(|course| mean(&self.radio, course.settled(), Spent::airtime))
    }

    /// Octets that compression saves per exchange, at the IP layer.
    pub(super) fn octets_saved(&self) -> f64 {
        let [plain, compressed] = [self.plain, self.compressed].map(|course| {
            let settled = course.settled();
            settled.iter().map(ExchangeLoad::octets).sum::<usize>() as f64 / settled.len() as f64
        });
        plain - compressed
    }

    /// Share of the energy that compression saves; negative if it costs more.
    pub(super) fn saving(&self) -> f64 {
        let [plain, compressed] = self.settled();
        1.0 - compressed / plain
    }

    /// Share of exchanges that must be spared a repetition so that compression pays: the paper's one in 40. Negative:
    /// the share that may be repeated in addition before the saving is gone.
    pub(super) fn break_even_loss(&self) -> f64 {
        let [plain, compressed] = self.settled();
        compressed / plain - 1.0
    }

    /// Nanojoules per instruction at which the CPU uses what the radio saves; `None` if the radio saves nothing.
    pub(super) fn break_even_cpu(&self) -> Option<f64> {
        let of =
            |course: &Course| mean(&self.radio, course.settled(), |spent| spent.transmit + spent.receive);
        let instructions = self.compressed.settled().last()?.instructions as f64;
        let saved = of(self.plain) - of(self.compressed);
        (saved > 0.0 && instructions > 0.0).then(|| 1e9 * saved / instructions)
    }

    /// Number of exchanges after which the total, from the first on, is below that of uncompressed ones.
    pub(super) fn pays_after(&self) -> Option<usize> {
        let mut sums = [Energy::ZERO; 2];
        let both = self.plain.exchanges.iter().zip(&self.compressed.exchanges);
        both.map(|(plain, compressed)| {
            sums[0] += spent(&self.radio, plain).airtime();
            sums[1] += spent(&self.radio, compressed).airtime();
            sums[1] < sums[0]
        })
        .position(|is_less| is_less)
        .map(|number| number + 1)
    }

    /// Joules of a completed exchange over a link with independent bit errors: uncompressed, compressed.
    pub(super) fn with_errors(&self, rate: f64) -> [f64; 2] {
        [self.plain, self.compressed].map(|course| completed(&self.radio, course, rate))
    }

    /// Bit error rate from which compression pays; `None` if it pays without errors, or never.
    pub(super) fn break_even_rate(&self) -> Option<f64> {
        let pays = |exponent: f64| {
            let [plain, compressed] = self.with_errors(10_f64.powf(exponent));
            compressed < plain
        };
        let (mut low, mut high) = (-12.0, -2.0);
        if pays(low) || !pays(high) {
            return None;
        }
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if pays(middle) { high = middle } else { low = middle }
        }
        Some(10_f64.powf(high))
    }
}

/// Joules until an exchange is complete, if the client repeats the request until a response arrives and the link layer
/// repeats no frame. A frame with any damage is lost, also in its link layer octets; acknowledgements are never lost.
///
/// With p and q for the success probabilities of request and response, (E_request + p E_response) / (p q).
fn completed(radio: &Radio, course: &Course, rate: f64) -> f64 {
    let settled = course.settled();
    let of_one = |exchange: &ExchangeLoad| {
        let arrives = |direction: &Direction<'_>, octets: usize| {
            (1.0 - rate).powf(8.0 * direction.framing.octets(octets) as f64)
        };
        let (up, down) = (&radio.link.model.a_to_b, &radio.link.model.b_to_a);
        let (p, q) = (arrives(up, exchange.request), arrives(down, exchange.response));
        let mut usages = [Usage::default(); 2];
        radio.sends(&mut usages[0], exchange.request);
        radio.receives(&mut usages[1], exchange.response);
        let [request, response] = usages.map(|usage| radio.spends(&usage, &CPU, AWAKE).airtime().as_joules());
        let cpu = CPU.spends(exchange.instructions).as_joules();
        (request + cpu + p * response) / (p * q)
    };
    settled.iter().map(of_one).sum::<f64>() / settled.len() as f64
}

/// Course of a scheme.
pub(super) fn of(courses: &[Course], scheme: EnergyScheme) -> Option<&Course> {
    courses.iter().find(|course| course.scheme == scheme)
}
