//! Airtime: the time that a frame takes on the air.

use core::num::NonZeroU64;

/// Nanoseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// Bit rate in bit/s, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(NonZeroU64);

impl Rate {
    /// Creates a rate of `bits` a second; `None` for 0.
    pub const fn from_bps(bits: u64) -> Option<Self> {
        match NonZeroU64::new(bits) {
            Some(bits) => Some(Self(bits)),
            None => None,
        }
    }

    /// [`Self::from_bps`] for constants: 0 means 1.
    pub(crate) const fn bps(bits: u64) -> Self {
        match Self::from_bps(bits) {
            Some(rate) => rate,
            None => Self(NonZeroU64::MIN),
        }
    }

    /// Returns the rate in bit/s.
    pub const fn as_bps(self) -> u64 {
        self.0.get()
    }
}

/// Model of the airtime of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Airtime {
    /// Frames take no time.
    #[default]
    None,
    /// Octets are sent at this rate.
    Rate(Rate),
    /// Frames are sent in symbols of equal size, the last one padded.
    Ofdm(Ofdm),
    /// Frames are sent in LoRa symbols.
    LoRa(LoRa),
}

/// A modem with symbols of a fixed number of bits, and a preamble. IEEE 802.11-2020, section 17.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ofdm {
    /// Duration of preamble, signal field, and other constant parts of a frame, in nanoseconds.
    pub preamble: u32,
    /// Bits in addition to the octets: SERVICE and tail.
    pub service: u16,
    /// Data bits of a symbol. 0 means 1.
    pub bits: u16,
    /// Duration of a symbol, in nanoseconds.
    pub symbol: u32,
}

impl Ofdm {
    /// 802.11g (ERP-OFDM) at 54 Mbit/s: 16 us preamble, 4 us SIGNAL, 6 us signal extension; 16 bits SERVICE and 6 tail;
    /// 216 bits in 4 us. IEEE 802.11-2020, sections 17.3.2 and 18.3.2.4.
    pub const G54: Self = Self { preamble: 26_000, service: 22, bits: 216, symbol: 4_000 };
    /// 802.11g at 24 Mbit/s, used for acknowledgements of frames at 54 Mbit/s: 96 bits a symbol.
    pub const G24: Self = Self { bits: 96, ..Self::G54 };

    /// Returns the airtime of a frame of `octets`, in nanoseconds.
    pub const fn airtime(&self, octets: u64) -> u64 {
        let bits = octets.saturating_mul(8).saturating_add(self.service as u64);
        let symbols = bits.div_ceil(if self.bits > 0 { self.bits as u64 } else { 1 });
        symbols.saturating_mul(self.symbol as u64).saturating_add(self.preamble as u64)
    }
}

/// A LoRa modem. Semtech, SX1276 data sheet, section 4.1.1.7; AN1200.13.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoRa {
    /// Spreading factor, 6 to 12: binary logarithm of the chips of a symbol.
    pub spreading_factor: u8,
    /// Bandwidth in hertz: 125,000 to 500,000.
    pub bandwidth: u32,
    /// Redundant bits for four data bits: 1 for 4/5, up to 4 for 4/8.
    pub coding_rate: u8,
    /// Programmed symbols of the preamble, to which 4.25 are added. LoRaWAN has 8.
    pub preamble: u16,
    /// True if the header with length and coding rate is sent.
    pub has_header: bool,
    /// True if a CRC of 16 bits is sent. LoRaWAN has it on the uplink only.
    pub has_crc: bool,
}

impl LoRa {
    /// Returns the duration of a symbol in nanoseconds, 2^SF / BW.
    pub const fn symbol(&self) -> u64 {
        let chips = 1 << if self.spreading_factor < 32 { self.spreading_factor } else { 32 };
        let bandwidth = if self.bandwidth > 0 { self.bandwidth as u64 } else { 1 };
        chips * SECOND / bandwidth
    }

    /// Returns the symbols of the header and `octets` of payload, without those of the preamble.
    pub const fn payload_symbols(&self, octets: u64) -> u64 {
        // LowDataRateOptimize is mandatory for symbols of more than 16 ms: SF 11 and 12 at 125 kHz.
        let low_rate = if self.symbol() > 16_000_000 { 2 } else { 0 };
        let sf = self.spreading_factor as u64;
        let bits = octets.saturating_mul(8).saturating_add(if self.has_crc { 44 } else { 28 });
        let spared = 4 * sf + if self.has_header { 0 } else { 20 };
        let block = 4 * sf.saturating_sub(low_rate);
        let blocks = if block == 0 { 0 } else { bits.saturating_sub(spared).div_ceil(block) };
        blocks.saturating_mul(self.coding_rate as u64 + 4).saturating_add(8)
    }

    /// Returns the airtime of a packet with `octets` of payload in nanoseconds, preamble included.
    pub const fn airtime(&self, octets: u64) -> u64 {
        let symbols = self.payload_symbols(octets).saturating_add(self.preamble as u64);
        // Plus 4.25 constant symbols of the preamble.
        symbols.saturating_mul(4).saturating_add(17).saturating_mul(self.symbol()) / 4
    }
}

impl Airtime {
    /// Returns the airtime of `octets` in whole nanoseconds, with all that the link layer adds.
    ///
    /// The remainder, a fraction of a nanosecond, is kept in `carried` (initially 0), so that consecutive frames take
    /// as long as all their octets at once: the rate is exact in the long run.
    pub const fn of(&self, octets: u64, carried: &mut u64) -> u64 {
        match self {
            Self::None => 0,
            Self::Rate(rate) => {
                let rate = rate.as_bps() as u128;
                let bits = 8 * octets as u128 * SECOND as u128 + *carried as u128;
                // The remainder is less than the rate.
                *carried = (bits % rate) as u64;
                let nanoseconds = bits / rate;
                if nanoseconds > u64::MAX as u128 { u64::MAX } else { nanoseconds as u64 }
            }
            Self::Ofdm(modem) => modem.airtime(octets),
            Self::LoRa(modem) => modem.airtime(octets),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_at_a_rate_take_exactly_their_time_in_the_long_run() {
        // Each leaves a third of a nanosecond.
        let air = Airtime::Rate(Rate::bps(24_000_000_000));
        let mut carried = 0;
        let times: std::vec::Vec<_> = (0..6).map(|_| air.of(1, &mut carried)).collect();
        assert_eq!(times, [0, 0, 1, 0, 0, 1]);
        assert_eq!(Airtime::Rate(Rate::bps(20_000)).of(44, &mut 0), 17_600_000);
        assert_eq!(Airtime::Rate(Rate::bps(1)).of(u64::MAX, &mut 0), u64::MAX);
        assert_eq!(Rate::from_bps(0), None);
    }

    /// 22 + 8 * 14 bits in 96 a symbol are 2 symbols; 22 + 8 * 1500 in 216 are 56.
    #[test]
    fn ofdm_fills_its_last_symbol() {
        assert_eq!(Ofdm::G24.airtime(14), 26_000 + 8_000);
        assert_eq!((Ofdm::G54.airtime(1_500), Ofdm::G54.airtime(0)), (26_000 + 224_000, 30_000));
        assert_eq!((Ofdm::G54.airtime(24), Ofdm::G54.airtime(25)), (30_000, 34_000));
        assert_eq!(Ofdm { bits: 0, ..Ofdm::G54 }.airtime(u64::MAX), u64::MAX);
    }

    /// AN1200.13, and the calculator of Semtech: SF 7 to 12 at 125 kHz, 4/5, preamble of 8, header and CRC.
    #[test]
    fn lora_takes_the_time_of_the_data_sheet() {
        let modem = |spreading_factor| LoRa {
            spreading_factor,
            bandwidth: 125_000,
            coding_rate: 1,
            preamble: 8,
            has_header: true,
            has_crc: true,
        };
        assert_eq!(modem(7).symbol(), 1_024_000);
        // 8 + ceil((80 - 28 + 28 + 16) / 28) * 5 = 28 symbols, and 12.25 of preamble.
        assert_eq!((modem(7).payload_symbols(10), modem(7).airtime(10)), (28, 41_216_000));
        // LowDataRateOptimize: 8 + ceil((80 - 48 + 28 + 16) / 40) * 5 = 18 symbols.
        assert_eq!((modem(12).payload_symbols(10), modem(12).airtime(10)), (18, 991_232_000));
        assert_eq!(modem(255).airtime(u64::MAX), u64::MAX / 4);
        let implicit = LoRa { has_header: false, has_crc: false, ..modem(7) };
        assert_eq!(implicit.payload_symbols(0), 8);
    }
}
