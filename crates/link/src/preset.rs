//! Named links of publications and standards. Every number has its source, and the kind of evidence that this is.

mod text;

use core::time::Duration;

use crate::airtime::{Airtime, LoRa, Ofdm, Rate};
use crate::framing::{Fragmentation, Framing};
use crate::jitter::Jitter;
use crate::model::{Direction, Duplex, DutyCycle, IdleWake, LinkModel, Queue};
use crate::probability::Probability;

/// A named link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name: lower case, digits, hyphens.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    /// Largest packet that takes one frame, in octets, for the MTU of an interface.
    pub mtu: u16,
    /// Model. A is the device, B the network.
    pub model: LinkModel<'static>,
    /// Sources of the numbers.
    pub sources: &'static [Citation],
}

/// Source of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Citation {
    /// The number.
    pub what: &'static str,
    /// Its source.
    pub from: &'static str,
    /// Kind of evidence.
    pub evidence: Evidence,
}

/// Kind of evidence for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// Compared with published measurements by the command that the source names.
    Measured,
    /// In a public document, which the source names: a publication or a standard.
    Public,
    /// Chosen, or from a document that was not at hand when the number was written down.
    Assumed,
}

impl Evidence {
    /// All kinds, in the order of listing.
    pub const ALL: [Self; 3] = [Self::Measured, Self::Public, Self::Assumed];

    /// Returns its name: one word in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Public => "public",
            Self::Assumed => "assumed",
        }
    }
}

pub(crate) const fn measured(what: &'static str, from: &'static str) -> Citation {
    Citation { what, from, evidence: Evidence::Measured }
}

pub(crate) const fn public(what: &'static str, from: &'static str) -> Citation {
    Citation { what, from, evidence: Evidence::Public }
}

pub(crate) const fn assumed(what: &'static str, from: &'static str) -> Citation {
    Citation { what, from, evidence: Evidence::Assumed }
}

/// Returns all presets, in the order of listing.
pub const fn presets() -> &'static [Preset] {
    &PRESETS
}

/// Returns the preset of this name.
pub fn by_name(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

static PRESETS: [Preset; 10] =
    [ZIGBEE_20K, ZIGBEE_250K, IEEE_802_15_4, GPRS, WIFI, WIFI_80211G, GEO_DVBS, NB_IOT, LORA, LORA_SF12];

const IOT_SERVICES: &str = "L. Daniel, M. Kojo, M. Latvala: Experimental Evaluation of Transport Services CoAP, HTTP and SPDY \
    for Internet of Things, 2014: “data rate 20 Kbps and link delay of 20 ms. Link MTU 128 bytes. Roughly corresponds to \
    Zigbee”, and its runs at 250 Kbps";
const NETEM_QUEUE: &str = "chosen: enough for one object of 5 kB";

/// 20 kbit/s, 20 ms, MTU 128.
pub const ZIGBEE_20K: Preset = Preset {
    name: "zigbee-20k",
    title: "Roughly Zigbee at 20 kbit/s, full duplex as published",
    mtu: 128,
    model: LinkModel::symmetric(
        Direction {
            airtime: Airtime::Rate(Rate::bps(20_000)),
            delay: Duration::from_millis(20),
            queue: Queue::packets(50),
            framing: Framing { overhead: 0, mtu: 0, fragmentation: Fragmentation::rfc4944(128) },
            ..Direction::IDEAL
        },
        Duplex::Full,
    ),
    sources: &[
        public("rate, delay, MTU", IOT_SERVICES),
        assumed("full duplex, no link-layer octets", "what netem does, with which it was emulated"),
        assumed("queue", NETEM_QUEUE),
        public("fragments of longer packets", "RFC 4944, section 5.3; of frames of the MTU"),
    ],
};

/// [`ZIGBEE_20K`] with 250 kbit/s.
pub const ZIGBEE_250K: Preset = Preset {
    name: "zigbee-250k",
    title: "Roughly Zigbee at 250 kbit/s, full duplex as published",
    model: LinkModel::symmetric(
        Direction { airtime: Airtime::Rate(Rate::bps(250_000)), ..ZIGBEE_20K.model.a_to_b },
        Duplex::Full,
    ),
    ..ZIGBEE_20K
};

/// IEEE 802.15.4 at 2.4 GHz, between two nodes without others in range.
pub const IEEE_802_15_4: Preset = Preset {
    name: "ieee802154",
    title: "IEEE 802.15.4 at 2.4 GHz as the standard has it: half duplex, headers, access, acknowledgements",
    mtu: 102,
    model: LinkModel::symmetric(
        Direction {
            airtime: Airtime::Rate(Rate::bps(250_000)),
            // 1,120 back-off on average, 128 CCA, 192 and 192 turnaround, 352 acknowledgement.
            per_frame: Duration::from_micros(1_984),
            queue: Queue::packets(50),
            framing: Framing { overhead: 6 + 25, mtu: 0, fragmentation: Fragmentation::rfc4944(102) },
            ..Direction::IDEAL
        },
        Duplex::Half { turnaround: Duration::from_micros(192) },
    ),
    sources: &[
        public("rate", "IEEE 802.15.4-2006, section 6.5.1: 250 kbit/s, symbols of 16 us"),
        public("6 octets of preamble, SFD and length", "IEEE 802.15.4-2006, section 6.3"),
        public(
            "25 octets of MAC header and FCS, 102 for the packet",
            "RFC 4944, section 4: the most there are",
        ),
        public(
            "1,984 us a frame: back-off, CCA, turnarounds, acknowledgement",
            "IEEE 802.15.4-2006, section 7.5.1.4: on average (2^3 - 1) / 2 periods of 320 us, CCA of 128 us, twice \
                aTurnaroundTime of 192 us, a frame of 11 octets",
        ),
        public("turnaround", "IEEE 802.15.4-2006, section 6.4.1: aTurnaroundTime, 12 symbols"),
        public("fragments", "RFC 4944, section 5.3"),
        assumed("queue", NETEM_QUEUE),
    ],
};

const COAP_LATENCY: &str = "`thinair-lab paper run coap-latency`: fitted to F. Zheng, B. Fu, Z. Cao: CoAP Latency Evaluation \
    (draft-zheng-core-coap-lantency-evaluation-00), 2016: the rows RAW of table 1 are within their bands";
/// GPRS, 20 kbit/s up and 40 down.
pub const GPRS: Preset = Preset {
    name: "gprs",
    title: "GPRS: 20 kbit/s up, 40 kbit/s down, a deep queue",
    mtu: 1_500,
    model: LinkModel {
        a_to_b: GPRS_UP,
        b_to_a: Direction { airtime: Airtime::Rate(Rate::bps(40_000)), ..GPRS_UP },
        duplex: Duplex::Full,
    },
    sources: &[
        measured("rates, 72.5 ms each way", COAP_LATENCY),
        measured("jitter: |N(0, 2 ms)|, and exp(100 ms) for 2 % of packets", COAP_LATENCY),
        assumed("queue of 1,000 packets", "chosen: deep, it never overflowed in what was published"),
        assumed("order is kept", "a FIFO below: RLC delivers in sequence"),
        assumed("no idle_wake", "optional, see GPRS_IDLE_WAKE"),
    ],
};

const GPRS_UP: Direction<'static> = Direction {
    airtime: Airtime::Rate(Rate::bps(20_000)),
    delay: Duration::from_micros(72_500),
    jitter: Jitter {
        deviation: Duration::from_millis(2),
        spikes: percent(2),
        spike: Duration::from_millis(100),
    },
    queue: Queue::packets(1_000),
    ..Direction::IDEAL
};

/// Establishment of a Temporary Block Flow: the first packet after 0.5 s of silence takes 400 ms longer. It explains why
/// pings in that network took 572 ms, and messages every 100 ms 178 ms.
pub const GPRS_IDLE_WAKE: IdleWake =
    IdleWake { after: Duration::from_millis(500), wake: Duration::from_millis(400) };

/// Wi-Fi in an office, 8.8 ms in each direction.
pub const WIFI: Preset = Preset {
    name: "wifi",
    title: "Wi-Fi and the network behind it, by its delay alone",
    mtu: 1_500,
    model: LinkModel::symmetric(
        Direction {
            delay: Duration::from_micros(8_800),
            jitter: Jitter {
                deviation: Duration::from_micros(200),
                spikes: percent(2),
                spike: Duration::from_millis(20),
            },
            queue: Queue::packets(1_000),
            ..Direction::IDEAL
        },
        Duplex::Full,
    ),
    sources: &[
        measured("8.8 ms each way, no rate", COAP_LATENCY),
        measured("jitter: |N(0, 0.2 ms)|, and exp(20 ms) for 2 % of packets", COAP_LATENCY),
        assumed("queue of 1,000 packets, order is kept", "chosen: it never overflowed in what was published"),
    ],
};

/// 802.11g at 54 Mbit/s.
pub const WIFI_80211G: Preset = Preset {
    name: "wifi-80211g",
    title: "IEEE 802.11g at 54 Mbit/s as the standard has it, between two stations that hear nobody else",
    mtu: 1_500,
    model: LinkModel::symmetric(
        Direction {
            airtime: Airtime::Ofdm(Ofdm::G54),
            // 28 DIFS, 67.5 back-off on average, 10 SIFS, 34 acknowledgement.
            per_frame: Duration::from_nanos(139_500),
            queue: Queue::packets(1_000),
            framing: Framing { overhead: 36, mtu: 2_304, fragmentation: Fragmentation::None },
            ..Direction::IDEAL
        },
        Duplex::Half { turnaround: Duration::ZERO },
    ),
    sources: &[
        public("symbols and preamble at 54 Mbit/s", "IEEE 802.11-2020, sections 17.3.2 and 18.3.2.4"),
        public(
            "36 octets: MAC header 24, FCS 4, LLC and SNAP 8",
            "IEEE 802.11-2020, section 9.3.2; RFC 1042",
        ),
        public(
            "139.5 us a frame: DIFS, back-off, SIFS, acknowledgement",
            "IEEE 802.11-2020, section 18.4: slots of 9 us, DIFS of 28 us, (16 - 1) / 2 slots on average, SIFS of 10 us, \
                14 octets at 24 Mbit/s",
        ),
        assumed("queue", "chosen: 1,000 packets"),
        public("2,304 octets at most", "IEEE 802.11-2020, section 9.2.4.7.1: MSDU"),
    ],
};

/// A geostationary DVB-S channel.
pub const GEO_DVBS: Preset = Preset {
    name: "geo-dvbs",
    title: "DVB-S over a geostationary satellite, 3.507 Mbit/s",
    mtu: 1_500,
    model: LinkModel::symmetric(
        Direction {
            airtime: Airtime::Rate(Rate::bps(3_507_000)),
            delay: Duration::from_millis(250),
            queue: Queue::packets(1_000),
            ..Direction::IDEAL
        },
        Duplex::Full,
    ),
    sources: &[
        public(
            "rate",
            "the evaluation of ROHC over ULE in a DVB-S testbed: the Transport Stream, 3.507 Mbit/s",
        ),
        assumed("250 ms each way", "two times 36,000 km at the speed of light, and some way on the ground"),
        assumed("no link-layer octets", "those of ULE and MPEG-2 TS are counted by who encapsulates"),
        assumed("queue", "chosen: 1,000 packets"),
    ],
};

/// NB-IoT of Release 13.
pub const NB_IOT: Preset = Preset {
    name: "nb-iot",
    title: "NB-IoT (LTE Cat-NB1): 66 kbit/s up, 26 kbit/s down, half duplex",
    mtu: 1_500,
    model: LinkModel {
        a_to_b: NB_IOT_UP,
        b_to_a: Direction { airtime: Airtime::Rate(Rate::bps(26_000)), idle_wake: None, ..NB_IOT_UP },
        duplex: Duplex::Half { turnaround: Duration::from_millis(3) },
    },
    sources: &[
        assumed(
            "66 kbit/s up (multi-tone), 26 kbit/s down",
            "peak rates of Cat-NB1 in 3GPP Release 13, scheduling gaps included, as commonly described",
        ),
        assumed("5 octets of PDCP, RLC and MAC", "PDCP with an SN of 7 bits, RLC in AM, and MAC: the least"),
        public("1,600 octets at most", "RFC 8376, section 2.4: PDCP SDU"),
        assumed(
            "1.6 s to wake after 10 s of silence",
            "exception reports at a coupling loss of 144 dB, as evaluations of NB-IoT commonly have them; the 10 s are a usual \
                inactivity timer of networks",
        ),
        assumed(
            "50 ms each way while connected",
            "chosen: scheduling of NPDCCH and NPUSCH, and a core network",
        ),
        assumed("3 ms turnaround", "guard of half-duplex FDD, rounded up"),
        assumed("queue", "chosen: 100 packets"),
    ],
};

const NB_IOT_UP: Direction<'static> = Direction {
    airtime: Airtime::Rate(Rate::bps(66_000)),
    delay: Duration::from_millis(50),
    queue: Queue::packets(100),
    framing: Framing { overhead: 5, mtu: 1_600, fragmentation: Fragmentation::None },
    idle_wake: Some(IdleWake { after: Duration::from_secs(10), wake: Duration::from_millis(1_600) }),
    ..Direction::IDEAL
};

const LORA_SOURCES: &[Citation] = &[
    assumed("symbols", "the formula in common use, by the number of symbols; the data sheet was not at hand"),
    assumed(
        "125 kHz, 4/5, preamble of 8, CRC on the uplink only",
        "LoRaWAN 1.0.x in EU868, as commonly described",
    ),
    assumed("13 octets: MHDR 1, FHDR 7, FPort 1, MIC 4", "LoRaWAN 1.0.x, as commonly described"),
    assumed(
        "242 octets with SF 7, 51 with SF 12",
        "LoRaWAN in EU868, data rates 5 and 0, without FOpts, as commonly described",
    ),
    public("fragments: header of 1 octet, tiles of 10", "RFC 9011, section 5.6.2; both ways here"),
    assumed(
        "duty cycle 1 %",
        "868.0 to 868.6 MHz in Europe, as commonly described; the pause after a frame of LoRaWAN 1.0.x",
    ),
    assumed("1 s down", "LoRaWAN: RECEIVE_DELAY1, if the answer waits at the network"),
    assumed("queue", "chosen: 16 packets"),
];

/// LoRaWAN in Europe, fast.
pub const LORA: Preset = Preset {
    name: "lora",
    title: "LoRaWAN in Europe with SF 7 (data rate 5), duty cycle 1 %",
    mtu: 242,
    model: lora(7, 242),
    sources: LORA_SOURCES,
};

/// LoRaWAN in Europe, far.
pub const LORA_SF12: Preset = Preset {
    name: "lora-sf12",
    title: "LoRaWAN in Europe with SF 12 (data rate 0), duty cycle 1 %",
    mtu: 51,
    model: lora(12, 51),
    sources: LORA_SOURCES,
};

const fn lora(spreading_factor: u8, payload: u16) -> LinkModel<'static> {
    let modem = LoRa {
        spreading_factor,
        bandwidth: 125_000,
        coding_rate: 1,
        preamble: 8,
        has_header: true,
        has_crc: true,
    };
    let up = Direction {
        airtime: Airtime::LoRa(modem),
        queue: Queue::packets(16),
        framing: Framing {
            overhead: 13,
            mtu: 0,
            fragmentation: Fragmentation::Frames { payload, first: 1, next: 1, unit: 10 },
        },
        duty_cycle: DutyCycle::from_per_mille(10),
        ..Direction::IDEAL
    };
    let down = Direction {
        airtime: Airtime::LoRa(LoRa { has_crc: false, ..modem }),
        delay: Duration::from_secs(1),
        ..up
    };
    LinkModel { a_to_b: up, b_to_a: down, duplex: Duplex::Half { turnaround: Duration::ZERO } }
}

/// Creates a probability for constants: more than 100 means 100.
const fn percent(percent: u32) -> Probability {
    match Probability::from_percent(percent) {
        Some(probability) => probability,
        None => Probability::ALWAYS,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;
    use std::string::ToString;

    use super::*;

    #[test]
    fn presets_are_found_by_their_names_and_have_sources() {
        let names: BTreeSet<_> = presets().iter().map(|preset| preset.name).collect();
        assert_eq!(names.len(), presets().len());
        for preset in presets() {
            assert_eq!(by_name(preset.name), Some(preset));
            assert!(preset.sources.iter().any(|source| source.what.contains("queue")), "{}", preset.name);
            for source in preset.sources {
                assert_eq!(
                    source.evidence == Evidence::Measured,
                    source.from.starts_with("`thinair"),
                    "a measured number names its command: {source:?}"
                );
                assert!(
                    source.evidence == Evidence::Assumed || !source.from.starts_with("chosen"),
                    "{source:?}"
                );
            }
        }
        assert_eq!(by_name("Zigbee-20k"), None);
        for name in ["zigbee-20k", "zigbee-250k", "gprs", "wifi", "geo-dvbs", "nb-iot", "lora"] {
            assert!(by_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_packet_of_the_mtu_is_one_frame() {
        for preset in presets() {
            let framing = preset.model.a_to_b.framing;
            assert_eq!(framing.frames(preset.mtu.into()).count(), 1, "{}", preset.name);
            let is_bounded = framing.mtu > 0 || framing.frames(usize::from(preset.mtu) + 1).count() == 2;
            assert!(is_bounded || framing == Framing::default(), "{}", preset.name);
        }
    }

    #[test]
    fn directions_are_described_by_their_numbers() {
        assert_eq!(
            ZIGBEE_20K.model.a_to_b.to_string(),
            "20 kbit/s, 20 ms, frames of 128 octets, queue of 50 packets"
        );
        assert_eq!(
            GPRS.model.b_to_a.to_string(),
            "40 kbit/s, 72.5 ms, jitter |N(0, 2 ms)| and exp(100 ms) for 2 % of packets, queue of 1000 packets"
        );
        assert_eq!(
            LORA.model.a_to_b.to_string(),
            "LoRa SF 7 at 125 kHz, no delay, 13 octets a frame, frames of 242 octets, duty cycle 1 %, \
            queue of 16 packets"
        );
        assert_eq!(
            NB_IOT.model.a_to_b.to_string(),
            "66 kbit/s, 50 ms, 5 octets a frame, at most 1600 octets, 1.6 s to wake after 10 s, queue of 100 packets"
        );
    }
}
