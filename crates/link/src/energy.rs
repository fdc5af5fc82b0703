//! Energy that packets cost a device: times on the air, times powers of the radio, and instructions of its CPU.
//!
//! The model has powers and times; it excludes batteries, and the costs of start-up, synchronisation and signalling
//! of a radio.
//! **There are three totals, which must not be mixed**: the airtime, as in most publications; the airtime with overhearing of packets for
//! others; and that with the energy of the idle radio, which dominates if the receiver never sleeps.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign};
use core::time::Duration;

use crate::jitter::nanoseconds;
use crate::model::Direction;
use crate::preset::{self, Citation, Preset, assumed, public};

/// Energy in nanojoules: up to 18 GJ. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Energy(u64);

impl Energy {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Creates an energy of `nanojoules`.
    pub const fn from_nanojoules(nanojoules: u64) -> Self {
        Self(nanojoules)
    }

    /// Returns the energy in nanojoules.
    pub const fn as_nanojoules(self) -> u64 {
        self.0
    }

    /// Returns the energy in joules, as the nearest floating point number.
    pub fn as_joules(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the largest number of exchanges of `self` in which saving one repetition pays for `extra` in each: the
    /// greatest X with X (`self` + `extra`) <= (X + 1) `self`. `None` if `extra` is zero: it always pays.
    pub const fn break_even(self, extra: Self) -> Option<u64> {
        self.0.checked_div(extra.0)
    }

    /// Converts from attojoules, to the nearest nanojoule.
    const fn from_attojoules(attojoules: u128) -> Self {
        Self::saturated((attojoules + 500_000_000) / 1_000_000_000)
    }

    const fn saturated(nanojoules: u128) -> Self {
        Self(if nanojoules > u64::MAX as u128 { u64::MAX } else { nanojoules as u64 })
    }
}

impl Add for Energy {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Energy {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Energy {
    fn sum<I: Iterator<Item = Self>>(energies: I) -> Self {
        energies.fold(Self::ZERO, Self::add)
    }
}

/// Power in nanowatts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Power(u64);

impl Power {
    /// Creates a power of `nanowatts`.
    pub const fn from_nanowatts(nanowatts: u64) -> Self {
        Self(nanowatts)
    }

    /// Creates a power of `microwatts`; saturates.
    pub const fn from_microwatts(microwatts: u64) -> Self {
        Self(microwatts.saturating_mul(1_000))
    }

    /// Creates the power of `microamperes` at `millivolts`, as in data sheets.
    pub const fn from_current(microamperes: u32, millivolts: u32) -> Self {
        Self(microamperes as u64 * millivolts as u64)
    }

    /// Returns the power in nanowatts.
    pub const fn as_nanowatts(self) -> u64 {
        self.0
    }

    /// Returns the energy of `nanoseconds`, to the nearest nanojoule.
    pub const fn over(self, nanoseconds: u64) -> Energy {
        Energy::from_attojoules(self.0 as u128 * nanoseconds as u128)
    }
}

/// A processor. **A model: real instructions have different costs.**
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Name.
    pub name: &'static str,
    /// Power while computing.
    pub power: Power,
    /// Frequency in hertz. 0 means 1.
    pub frequency: u32,
    /// Cycles of a thousand instructions.
    pub cycles: u32,
    /// Sources of the numbers.
    pub sources: &'static [Citation],
}

impl Cpu {
    /// Returns the energy of `instructions` instructions, to the nearest nanojoule.
    pub const fn spends(&self, instructions: u64) -> Energy {
        let cycles = instructions as u128 * self.cycles as u128;
        let per_second = 1_000 * if self.frequency > 0 { self.frequency as u128 } else { 1 };
        match cycles.checked_mul(self.power.0 as u128) {
            Some(all) => Energy::saturated((all + per_second / 2) / per_second),
            None => Energy(u64::MAX),
        }
    }
}

/// The Cortex-M3 of a CC2538.
pub const CORTEX_M3: Cpu = Cpu {
    name: "cortex-m3",
    power: Power::from_current(13_000, 3_000),
    frequency: 32_000_000,
    cycles: 2_000,
    sources: &[
        assumed(
            "13 mA at 32 MHz and 3 V",
            "CC2538 of Texas Instruments, as commonly quoted; its data sheet was not at hand",
        ),
        assumed("2 cycles an instruction", "chosen: on the high side for this core, flash included"),
    ],
};

/// A whole Raspberry Pi of 2012, as measured while sending CoAP over 802.11.
pub const RASPBERRY_PI: Cpu = Cpu {
    name: "raspberry-pi",
    power: Power::from_current(340_000, 5_000),
    frequency: 700_000_000,
    cycles: 2_000,
    sources: &[
        public(
            "340 mA at 5 V, the whole board with its radio; 700 MHz",
            "M. Majanen, P. Koskela, M. Valta: Constrained Application Protocol Profile for Robust Header \
                Compression Framework, 2015, section V.E",
        ),
        assumed("2 cycles an instruction", "chosen"),
    ],
};

/// A radio of a device: powers and link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Radio {
    /// Name: lower case, digits, hyphens.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    /// Power while sending a frame.
    pub transmit: Power,
    /// Power while receiving a frame, for any destination.
    pub receive: Power,
    /// Power while waiting for frames.
    pub idle: Power,
    /// Power while sleeping.
    pub sleep: Power,
    /// Link of the radio. The device is A.
    pub link: &'static Preset,
    /// Duration of a link layer acknowledgement; zero if there is none.
    pub acknowledgement: Duration,
    /// Sources of the powers.
    pub sources: &'static [Citation],
}

/// Returns all radios, in the order of listing.
pub const fn radios() -> &'static [Radio] {
    &RADIOS
}

/// Returns the radio of this name.
pub fn by_name(name: &str) -> Option<&'static Radio> {
    RADIOS.iter().find(|radio| radio.name == name)
}

static RADIOS: [Radio; 6] = [WIFI, CC2538, CC2420, NB_IOT, LORA, LORA_SF12];

/// 802.11g at 54 Mbit/s: a network processor for embedded devices.
pub const WIFI: Radio = Radio {
    name: "802.11g",
    title: "IEEE 802.11g at 54 Mbit/s (CC3100)",
    transmit: Power::from_current(223_000, 3_600),
    receive: Power::from_current(53_000, 3_600),
    idle: Power::from_current(53_000, 3_600),
    sleep: Power::from_current(115, 3_600),
    link: &preset::WIFI_80211G,
    // 14 octets at 24 Mbit/s.
    acknowledgement: Duration::from_micros(34),
    sources: &[
        assumed(
            "223 mA transmitting at full power, 53 mA receiving, 54 Mbit/s; 115 uA in LPDS; 3.6 V",
            "CC3100 of Texas Instruments, as commonly quoted; its data sheet was not at hand",
        ),
        assumed("idle as receiving", "chosen: it listens all the time, without power save"),
    ],
};

/// 802.15.4 at 0 dBm, on one chip with the processor.
pub const CC2538: Radio = Radio {
    name: "802.15.4",
    title: "IEEE 802.15.4 at 2.4 GHz (CC2538)",
    transmit: Power::from_current(24_000, 3_000),
    receive: Power::from_current(20_000, 3_000),
    idle: Power::from_current(20_000, 3_000),
    // 1.3 uA.
    sleep: Power::from_nanowatts(3_900),
    link: &preset::IEEE_802_15_4,
    // 11 octets at 250 kbit/s.
    acknowledgement: Duration::from_micros(352),
    sources: &[
        assumed(
            "24 mA transmitting at 0 dBm, 20 mA receiving, CPU idle; 1.3 uA in power mode 2; 3 V",
            "CC2538 of Texas Instruments, as commonly quoted; its data sheet was not at hand",
        ),
        assumed("idle as receiving", "a receiver that listens is a receiver"),
    ],
};

/// 802.15.4 at 0 dBm, a chip of early sensor nodes.
pub const CC2420: Radio = Radio {
    name: "cc2420",
    title: "IEEE 802.15.4 at 2.4 GHz (CC2420)",
    transmit: Power::from_current(17_400, 3_000),
    receive: Power::from_current(19_700, 3_000),
    idle: Power::from_current(19_700, 3_000),
    sleep: Power::from_current(20, 3_000),
    sources: &[
        assumed(
            "17.4 mA transmitting at 0 dBm, 19.7 mA receiving, 20 uA in power down; 3 V",
            "CC2420 of Chipcon, as commonly quoted; its data sheet was not at hand. (Publications also have 50.2 mW for \
                transmitting.)",
        ),
        assumed("idle as receiving", "a receiver that listens is a receiver"),
    ],
    ..CC2538
};

/// NB-IoT at 23 dBm.
pub const NB_IOT: Radio = Radio {
    name: "nb-iot",
    title: "NB-IoT (LTE Cat-NB1)",
    transmit: Power::from_microwatts(545_000),
    receive: Power::from_microwatts(90_000),
    idle: Power::from_microwatts(3_000),
    sleep: Power::from_microwatts(15),
    link: &preset::NB_IOT,
    acknowledgement: Duration::ZERO,
    sources: &[assumed(
        "545 mW transmitting at 23 dBm, 90 mW receiving, 3 mW in light sleep, 15 uW in deep sleep",
        "as evaluations of NB-IoT commonly take it; 3GPP TR 45.820 was not at hand",
    )],
};

/// LoRa at 13 dBm, SF 7.
pub const LORA: Radio = Radio {
    name: "lora",
    title: "LoRa, SF 7 at 125 kHz (SX1276)",
    transmit: Power::from_current(29_000, 3_300),
    receive: Power::from_current(10_800, 3_300),
    idle: Power::from_current(1_600, 3_300),
    // 0.2 uA.
    sleep: Power::from_nanowatts(660),
    link: &preset::LORA,
    acknowledgement: Duration::ZERO,
    sources: &[
        assumed(
            "29 mA transmitting at 13 dBm, 10.8 mA receiving, 1.6 mA in standby, 0.2 uA asleep; 3.3 V",
            "SX1276 of Semtech, as commonly quoted; its data sheet was not at hand",
        ),
        assumed("idle is standby", "LoRaWAN class A: nothing is received outside of two windows"),
    ],
};

/// LoRa at 13 dBm, SF 12.
pub const LORA_SF12: Radio =
    Radio { name: "lora-sf12", title: "LoRa, SF 12 at 125 kHz (SX1276)", link: &preset::LORA_SF12, ..LORA };

/// Activity of a device: times in nanoseconds, and instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Sending.
    pub transmit: u64,
    /// Receiving packets for it.
    pub receive: u64,
    /// Receiving packets for others.
    pub overhear: u64,
    /// Time from start to end, including all of the above. In the rest the radio waited or slept.
    pub elapsed: u64,
    /// Instructions of its CPU for the packets.
    pub instructions: u64,
}

impl Usage {
    /// Returns the nanoseconds in which the radio was idle.
    pub const fn rest(&self) -> u64 {
        let busy = self.transmit.saturating_add(self.receive).saturating_add(self.overhear);
        self.elapsed.saturating_sub(busy)
    }
}

impl Radio {
    /// Counts a packet of `len` octets that the device sends, and the acknowledgements of its frames.
    pub fn sends(&self, usage: &mut Usage, len: usize) {
        let direction = &self.link.model.a_to_b;
        usage.transmit = usage.transmit.saturating_add(direction.on_air(len));
        usage.receive = usage.receive.saturating_add(self.acknowledgements(direction, len));
    }

    /// Counts a packet of `len` octets that the device receives, and the acknowledgements of its frames.
    pub fn receives(&self, usage: &mut Usage, len: usize) {
        let direction = &self.link.model.b_to_a;
        usage.receive = usage.receive.saturating_add(direction.on_air(len));
        usage.transmit = usage.transmit.saturating_add(self.acknowledgements(direction, len));
    }

    /// Counts a packet of `len` octets between two other devices that this one overhears, and the acknowledgements of
    /// its frames.
    pub fn overhears(&self, usage: &mut Usage, len: usize) {
        let direction = &self.link.model.a_to_b;
        let heard = direction.on_air(len).saturating_add(self.acknowledgements(direction, len));
        usage.overhear = usage.overhear.saturating_add(heard);
    }

    fn acknowledgements(&self, direction: &Direction<'_>, len: usize) -> u64 {
        let frames = direction.framing.frames(len).count() as u64;
        frames.saturating_mul(nanoseconds(self.acknowledgement))
    }

    /// Returns the energy of `usage`. The idle radio waits for `awake` thousandths of the time, and sleeps for the
    /// rest; more than 1,000 means 1,000.
    pub fn spends(&self, usage: &Usage, cpu: &Cpu, awake: u16) -> Spent {
        let awake = u64::from(awake.min(1_000));
        // Computed in a width that cannot overflow, so that both parts make up the whole.
        let idle = (u128::from(usage.rest()) * u128::from(awake) / 1_000) as u64;
        Spent {
            transmit: self.transmit.over(usage.transmit),
            receive: self.receive.over(usage.receive),
            overhear: self.receive.over(usage.overhear),
            idle: self.idle.over(idle),
            sleep: self.sleep.over(usage.rest() - idle),
            cpu: cpu.spends(usage.instructions),
        }
    }
}

/// Energy by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Sending.
    pub transmit: Energy,
    /// Receiving packets for it.
    pub receive: Energy,
    /// Receiving packets for others.
    pub overhear: Energy,
    /// Waiting.
    pub idle: Energy,
    /// Sleeping.
    pub sleep: Energy,
    /// Computing.
    pub cpu: Energy,
}

impl Spent {
    /// Returns the energy of the airtime and the CPU.
    pub fn airtime(&self) -> Energy {
        self.transmit + self.receive + self.cpu
    }

    /// Returns [`Self::airtime`] with overhearing.
    pub fn with_overhearing(&self) -> Energy {
        self.airtime() + self.overhear
    }

    /// Returns [`Self::with_overhearing`] with waiting and sleeping: everything.
    pub fn with_idle(&self) -> Energy {
        self.with_overhearing() + self.idle + self.sleep
    }
}

impl fmt::Display for Energy {
    /// Writes the energy in a suitable unit: 1.234 mJ.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            nanojoules @ 0..1_000 => write!(f, "{nanojoules} nJ"),
            nanojoules @ 1_000..1_000_000 => write!(f, "{:.3} uJ", nanojoules as f64 / 1e3),
            nanojoules @ 1_000_000..1_000_000_000 => write!(f, "{:.3} mJ", nanojoules as f64 / 1e6),
            nanojoules => write!(f, "{:.3} J", nanojoules as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;
    use crate::airtime::{Airtime, Rate};

    /// Section V.E of the paper on CoAP header compression: 2.3 ms at 340 mA and 5 V; of 153 mJ; 38 and 5 octets at
    /// 54 Mbit/s.
    #[test]
    fn the_figures_of_a_measurement_on_a_raspberry_pi_come_out() {
        let extra = Power::from_current(340_000, 5_000).over(2_300_000);
        assert_eq!(extra, Energy::from_nanojoules(3_910_000));
        let exchange = Energy::from_nanojoules(153_000_000);
        assert_eq!(exchange.break_even(extra), Some(39));
        assert_eq!(exchange.break_even(Energy::from_nanojoules(153_000_000 * 25 / 1_000)), Some(40));
        let air = |octets| Airtime::Rate(Rate::bps(54_000_000)).of(octets, &mut 0);
        assert_eq!((air(38), air(5)), (5_629, 740));
    }

    #[test]
    fn break_even_is_the_last_that_is_paid_for() {
        let pays = |x: u64, exchange: u64, extra: u64| x * (exchange + extra) <= (x + 1) * exchange;
        for (exchange, extra) in [(153_000, 3_910), (100, 7), (5, 5), (5, 6), (1_000, 1)] {
            let x = Energy(exchange).break_even(Energy(extra)).unwrap_or_default();
            assert!(pays(x, exchange, extra) && !pays(x + 1, exchange, extra), "{exchange} {extra}");
        }
        assert_eq!(Energy(5).break_even(Energy::ZERO), None);
    }

    /// 44 octets and 31 of link layer at 250 kbit/s are 2.4 ms; an acknowledgement is 352 us.
    #[test]
    fn a_packet_costs_its_airtime_and_its_acknowledgement() {
        let mut usage = Usage::default();
        CC2538.sends(&mut usage, 44);
        assert_eq!((usage.transmit, usage.receive), (2_400_000, 352_000));
        CC2538.receives(&mut usage, 44);
        assert_eq!((usage.transmit, usage.receive), (2_752_000, 2_752_000));
        CC2538.overhears(&mut usage, 44);
        assert_eq!(usage.overhear, 2_752_000);
        usage.elapsed = 1_000_000_000;
        usage.instructions = 1_000;
        let spent = CC2538.spends(&usage, &CORTEX_M3, 10);
        assert_eq!((spent.transmit.0, spent.receive.0, spent.overhear.0), (198_144, 165_120, 165_120));
        // 991.744 ms of rest, a hundredth of it awake at 60 mW, the rest at 3.9 uW.
        assert_eq!((spent.idle.0, spent.sleep.0), (595_046, 3_829));
        // 2,000 cycles of 39 mW / 32 MHz.
        assert_eq!(spent.cpu.0, 2_438);
        assert_eq!(spent.airtime().0, 198_144 + 165_120 + 2_438);
        assert_eq!(spent.with_overhearing().0, spent.airtime().0 + 165_120);
        assert_eq!(spent.with_idle().0, spent.with_overhearing().0 + 595_046 + 3_829);
    }

    /// 8,192 segments over 5 hops, frames of 208 octets, 32 us an octet, 50.2 mW and 59.1 mW are 29.80 J.
    #[test]
    fn a_transfer_over_five_hops_costs_what_was_published() {
        let (transmit, receive) = (Power::from_microwatts(50_200), Power::from_microwatts(59_100));
        let time = 8_192 * 5 * 208 * 32_000;
        let spent = transmit.over(time) + receive.over(time);
        assert_eq!((spent.as_joules() * 100.0).round(), 2_980.0);
    }

    #[test]
    fn a_radio_that_never_sleeps_spends_most_on_waiting() {
        let mut usage = Usage { elapsed: 60_000_000_000, ..Usage::default() };
        CC2538.sends(&mut usage, 44);
        let [asleep, awake, more] =
            [0, 1_000, u16::MAX].map(|awake| CC2538.spends(&usage, &CORTEX_M3, awake));
        assert_eq!(awake, more);
        assert_eq!((asleep.idle, awake.sleep), (Energy::ZERO, Energy::ZERO));
        assert!(awake.idle.0 > 1_000 * awake.airtime().0);
        let busy = Usage { transmit: 5, elapsed: 3, ..Usage::default() };
        assert_eq!(busy.rest(), 0);
    }

    #[test]
    fn radios_are_found_by_their_names_and_have_sources() {
        for radio in radios() {
            assert_eq!(by_name(radio.name), Some(radio));
            assert!(!radio.sources.is_empty());
            assert!(radio.transmit > radio.idle || radio.idle == radio.receive);
            assert!(radio.sleep < radio.idle);
        }
        assert_eq!(by_name("802.11b"), None);
    }

    #[test]
    fn energies_are_shown_in_the_unit_that_fits() {
        let shown = [999, 1_000, 3_910_000, 12_345_678_901].map(|nanojoules| Energy(nanojoules).to_string());
        assert_eq!(shown, ["999 nJ", "1.000 uJ", "3.910 mJ", "12.346 J"]);
        assert_eq!(Power(u64::MAX).over(u64::MAX), Energy(u64::MAX));
        assert_eq!(CORTEX_M3.spends(u64::MAX), Energy(u64::MAX));
    }
}
