//! Capacity of a transport stream of constant bit rate, in packets: for planning, without sending.
//!
//! The calculation covers TS packets, the encapsulation of PDUs, and the placement of PDUs in TS packets (RFC 4326,
//! section 6.2; RFC 5163, section 3.2). Sizes of compressed headers are given as a cycle that repeats. Null packets and
//! PSI are not included: subtract their share from the bit rate.
//!
//! The equations are those of Ang, Wan, Kataoka and Teh, Performance evaluation of RObust Header Compression (ROHC)
//! over unidirectional links using DVB-S testbed, Keio SFC journal 8(2), 2008.

/// Length of a TS packet, in octets.
const TS_PACKET: u64 = 188;
/// Length of its payload, in octets: the header takes 4, and ULE sends no adaptation field.
const TS_PAYLOAD: u32 = 184;
/// Length of the Payload Pointer, in octets.
const PAYLOAD_POINTER: u32 = 1;

/// Overhead of a PDU, and number of PDUs that share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulation {
    /// Overhead of the whole, in octets.
    pub around: u32,
    /// Overhead before each PDU, in octets.
    pub before_each: u32,
    /// Number of PDUs that share it, at least 1.
    pub pdus: u32,
}

impl Encapsulation {
    /// SNDU with D=1: no address, so 4 octets of header and 4 of CRC. RFC 4326, section 4.
    pub const ULE: Self = Self { around: 8, before_each: 0, pdus: 1 };
    /// SNDU with D=0: 6 more octets, of the destination address.
    pub const ULE_NPA: Self = Self { around: 14, before_each: 0, pdus: 1 };
    /// Section of Multiprotocol Encapsulation without LLC/SNAP: header of 12 octets, CRC of 4. EN 301 192, section 7.
    pub const MPE: Self = Self { around: 16, before_each: 0, pdus: 1 };

    /// Adds PDU-Concat: `pdus` PDUs, each after its length of 2 octets, and a Type of 2 more octets. RFC 5163, section
    /// 3.2. Below 2 PDUs the encapsulation does not change.
    pub const fn concat(self, pdus: u32) -> Self {
        if pdus < 2 { self } else { Self { around: self.around + 2, before_each: 2, pdus } }
    }
}

/// Placement of PDUs in TS packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// A continuous stream of octets: equations 2 to 7, without Payload Pointer and tails.
    Ideal,
    /// Packing: the next SNDU begins in the TS packet in which the last one ends, if RFC 4326, section 6.2, allows it.
    Packing,
    /// Padding: every SNDU begins in a TS packet of its own.
    Padding,
}

/// Consecutive packets with headers of equal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderRun {
    /// Number of packets.
    pub packets: u32,
    /// Length of the headers of each, in octets.
    pub octets: u32,
}

/// Packets of equal payload. Their headers repeat: first all of the first entry, then all of the next, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFlow<'h> {
    /// Payload of a packet, in octets.
    pub payload: u32,
    /// Cycle of headers, with at least one packet.
    pub headers: &'h [HeaderRun],
}

impl PacketFlow<'_> {
    /// Returns the mean length of the headers of a packet, in octets: equation 5.
    pub fn mean_headers(&self) -> f64 {
        let octets: u64 = self.headers.iter().map(|run| u64::from(run.packets) * u64::from(run.octets)).sum();
        octets as f64 / self.cycle() as f64
    }

    /// Returns the number of packets until the headers repeat, at least 1.
    fn cycle(&self) -> u64 {
        self.headers.iter().map(|run| u64::from(run.packets)).sum::<u64>().max(1)
    }

    /// Iterates over the lengths of the PDUs of one cycle, in octets.
    fn pdus(&self) -> impl Iterator<Item = u32> {
        let pdus = |run: &HeaderRun| {
            core::iter::repeat_n(self.payload.saturating_add(run.octets), run.packets as usize)
        };
        self.headers.iter().flat_map(pdus)
    }
}

/// Exact cost of a flow: the share of TS packets for each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// TS payload in octets, used or not.
    octets: u64,
    /// Packets of the flow in it.
    packets: u64,
    payload: u32,
}

impl Cost {
    /// Returns the mean number of TS packets for a packet of the flow.
    pub fn ts_packets(&self) -> f64 {
        self.octets as f64 / (self.packets as f64 * f64::from(TS_PAYLOAD))
    }

    /// Returns the packets a second at `bitrate`, in bit/s of whole TS packets (equation 1).
    pub fn packets_per_second(&self, bitrate: u64) -> f64 {
        bitrate as f64 / (TS_PACKET * 8) as f64 / self.ts_packets()
    }

    /// Returns the bits of payload a second at `bitrate`.
    pub fn throughput(&self, bitrate: u64) -> f64 {
        self.packets_per_second(bitrate) * f64::from(self.payload) * 8.0
    }
}

/// Returns the cost of the packets of `flow`.
pub fn cost(encapsulation: Encapsulation, filling: Filling, flow: PacketFlow<'_>) -> Cost {
    let sharing = encapsulation.pdus.max(1);
    // After this number of cycles, an SNDU is complete.
    let cycles = u64::from(sharing);
    let mut stream = TsPackets::default();
    let one = |stream: &mut TsPackets| {
        let (mut sndu, mut inside) = (0, 0);
        for pdu in (0..cycles).flat_map(|_| flow.pdus()) {
            sndu += u64::from(pdu) + u64::from(encapsulation.before_each);
            inside += 1;
            if inside == sharing {
                stream.push(filling, sndu + u64::from(encapsulation.around));
                (sndu, inside) = (0, 0);
            }
        }
    };
    if filling == Filling::Packing {
        // The continuation depends only on where the last SNDU has ended. There are a few hundred such places, so they
        // repeat after at most that many cycles.
        for _ in 0..2 * TS_PAYLOAD {
            one(&mut stream);
        }
    }
    let (begin, mut turns) = (stream, 0);
    while turns == 0 || (filling == Filling::Packing && !stream.is_where(&begin)) {
        one(&mut stream);
        turns += 1;
    }
    let octets = stream.octets(filling) - begin.octets(filling);
    Cost { octets, packets: flow.cycle() * cycles * turns, payload: flow.payload }
}

/// Returns the TS packets that an SNDU of `octets` fills in padding mode.
pub const fn padded(octets: u64) -> u64 {
    let first = (TS_PAYLOAD - PAYLOAD_POINTER) as u64;
    if octets <= first { 1 } else { 1 + (octets - first).div_ceil(TS_PAYLOAD as u64) }
}

/// Returns the length of the longest SNDU that fits into `ts_packets` in padding mode, in octets.
pub const fn most_padded(ts_packets: u64) -> u64 {
    ((TS_PAYLOAD as u64) * ts_packets).saturating_sub(PAYLOAD_POINTER as u64)
}

/// State of an encapsulator that always has a next SNDU.
#[derive(Clone, Copy, Debug, Default)]
struct TsPackets {
    /// TS packets begun.
    begun: u64,
    /// Octets of SNDUs so far.
    sndus: u64,
    /// Used octets of the last TS payload; 0 if there is none.
    used: u32,
    /// True if an SNDU begins in the last TS packet, so that it has a Payload Pointer.
    pusi: bool,
}

impl TsPackets {
    fn push(&mut self, filling: Filling, sndu: u64) {
        self.sndus += sndu;
        match filling {
            Filling::Ideal => {}
            Filling::Padding => self.begun += padded(sndu),
            Filling::Packing => self.pack(sndu),
        }
    }

    /// RFC 4326, section 6.2.
    fn pack(&mut self, sndu: u64) {
        let free = TS_PAYLOAD - self.used;
        // The Length field is not split, and a Payload Pointer needs room as well.
        let fits = self.used > 0 && free >= if self.pusi { 2 } else { 2 + PAYLOAD_POINTER };
        if !fits {
            *self = Self { begun: self.begun + 1, used: 0, pusi: false, ..*self };
        }
        if !self.pusi {
            (self.used, self.pusi) = (self.used + PAYLOAD_POINTER, true);
        }
        let free = u64::from(TS_PAYLOAD - self.used);
        if sndu <= free {
            self.used += sndu as u32;
            return;
        }
        let rest = sndu - free;
        self.begun += rest.div_ceil(u64::from(TS_PAYLOAD));
        self.used = ((rest - 1) % u64::from(TS_PAYLOAD)) as u32 + 1;
        self.pusi = false;
    }

    fn is_where(&self, other: &Self) -> bool {
        (self.used, self.pusi) == (other.used, other.pusi)
    }

    fn octets(&self, filling: Filling) -> u64 {
        match filling {
            Filling::Ideal => self.sndus,
            // Between two equal positions in a TS packet lie whole TS packets.
            Filling::Packing | Filling::Padding => self.begun * u64::from(TS_PAYLOAD),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BITRATE: u64 = 3_507_000;
    const PLAIN: [HeaderRun; 1] = [HeaderRun { packets: 1, octets: 48 }];
    /// IR packets, and packets in SO state: equation 5.
    const PAPER: [HeaderRun; 2] =
        [HeaderRun { packets: 3, octets: 50 }, HeaderRun { packets: 50, octets: 3 }];
    const PAYLOADS: [u32; 8] = [40, 80, 120, 160, 200, 300, 512, 1_024];

    fn kbps(encapsulation: Encapsulation, filling: Filling, payload: u32, headers: &[HeaderRun]) -> f64 {
        cost(encapsulation, filling, PacketFlow { payload, headers }).throughput(BITRATE) / 1e3
    }

    fn close(ours: f64, expected: f64, within: f64) {
        assert!((ours - expected).abs() <= within, "{ours} is not {expected}");
    }

    /// Worked by hand from the equations: 429,047.87 octets a second.
    #[test]
    fn equations_2_to_7() {
        close(PacketFlow { payload: 40, headers: &PAPER }.mean_headers(), 300.0 / 53.0, 1e-12);
        let plain = [1430.16, 2019.05, 2340.26, 2542.51, 2681.55, 2892.46, 3093.98, 3254.41];
        let compressed = [2558.60, 2931.77, 3081.59, 3162.39, 3212.93, 3282.90, 3343.19, 3387.20];
        for (payload, (plain, compressed)) in PAYLOADS.into_iter().zip(plain.into_iter().zip(compressed)) {
            close(kbps(Encapsulation::ULE, Filling::Ideal, payload, &PLAIN), plain, 0.006);
            close(kbps(Encapsulation::ULE, Filling::Ideal, payload, &PAPER), compressed, 0.006);
        }
        let flow = PacketFlow { payload: 40, headers: &PLAIN };
        close(cost(Encapsulation::ULE, Filling::Ideal, flow).packets_per_second(BITRATE), 4469.25, 0.005);
        close(kbps(Encapsulation::MPE, Filling::Ideal, 40, &PLAIN), 1320.15, 0.01);
        close(kbps(Encapsulation::ULE_NPA, Filling::Ideal, 40, &PAPER), 2301.3, 0.1);
    }

    /// Compared with another program that filled TS packets with 200,000 SNDUs by the same rules.
    #[test]
    fn packing_as_another_program_counts_it() {
        let plain = [1422.39, 2007.88, 2327.46, 2530.49, 2670.95, 2884.23, 3088.34, 3251.40];
        let compressed = [2544.65, 2911.43, 3064.52, 3145.19, 3197.67, 3272.37, 3336.71, 3383.87];
        for (payload, (plain, compressed)) in PAYLOADS.into_iter().zip(plain.into_iter().zip(compressed)) {
            close(kbps(Encapsulation::ULE, Filling::Packing, payload, &PLAIN), plain, plain * 1e-4);
            close(kbps(Encapsulation::ULE, Filling::Packing, payload, &PAPER), compressed, compressed * 1e-4);
        }
    }

    #[test]
    fn padding_takes_whole_ts_packets() {
        for (octets, ts_packets) in [(8, 1), (183, 1), (184, 2), (367, 2), (368, 3), (1_103, 6), (1_104, 7)] {
            assert_eq!(padded(octets), ts_packets, "{octets}");
            assert!(octets <= most_padded(ts_packets) && octets > most_padded(ts_packets - 1));
        }
        close(kbps(Encapsulation::ULE, Filling::Padding, 160, &PLAIN), 1492.3, 0.05);
        close(kbps(Encapsulation::ULE, Filling::Padding, 160, &PAPER), 2824.8, 0.05);
        close(kbps(Encapsulation::ULE, Filling::Padding, 512, &PAPER), 3124.7, 0.05);
    }

    /// The SNDUs of RFC 4326, appendix A: 200 and 200 octets take 3 TS packets, the Payload Pointers included.
    #[test]
    fn packing_follows_the_figures_of_the_rfc() {
        let used = |sndus: &[u64]| {
            let mut stream = TsPackets::default();
            sndus.iter().for_each(|sndu| stream.push(Filling::Packing, *sndu));
            (stream.begun, stream.used, stream.pusi)
        };
        assert_eq!(used(&[200, 200]), (3, 34, false));
        assert_eq!(used(&[183]), (1, 184, true));
        assert_eq!(used(&[183, 182]), (2, 183, true));
        assert_eq!(used(&[183, 182, 181, 185]), (4, 183, false));
        assert_eq!(used(&[732, 284]), (6, 98, false));
        assert_eq!(used(&[200, 60, 60]), (2, 138, true));
        assert_eq!(used(&[52, 52, 52]), (1, 157, true));
        // Two octets remain without a Payload Pointer: the next SNDU begins in another TS packet.
        assert_eq!(used(&[365, 8]), (3, 9, true));
        assert_eq!(used(&[364, 8]), (3, 6, false));
    }

    #[test]
    fn pdu_concat_shares_what_is_around() {
        const SO: [HeaderRun; 1] = [HeaderRun { packets: 1, octets: 3 }];
        let eight = Encapsulation::ULE.concat(8);
        for (payload, expected) in [(40, 2969.0), (80, 3184.0), (160, 3303.0)] {
            close(kbps(eight, Filling::Ideal, payload, &SO), expected, 0.6);
            close(kbps(eight, Filling::Packing, payload, &SO), expected, expected * 0.01);
        }
        close(kbps(eight, Filling::Ideal, 40, &PAPER), 2807.0, 0.6);
        assert_eq!(Encapsulation::ULE.concat(1), Encapsulation::ULE);
    }

    #[test]
    fn odd_flows_are_counted_too() {
        let ends = [(0, 8), (1, 1), (u32::MAX, 65_535)];
        for (payload, octets) in ends {
            let headers = [HeaderRun { packets: 1, octets }];
            for filling in [Filling::Ideal, Filling::Packing, Filling::Padding] {
                let cost = cost(Encapsulation::ULE, filling, PacketFlow { payload, headers: &headers });
                assert!(cost.ts_packets() > 0.0 && cost.ts_packets().is_finite());
            }
        }
    }
}
