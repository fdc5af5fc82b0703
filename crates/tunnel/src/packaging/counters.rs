//! Counters of packagings. Those that do not apply to a packaging stay 0.

use super::UnpackError;

/// Counters of a [`Packager`](super::Packager).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PackagerCounters {
    /// Accepted units.
    pub units: u64,
    /// Octets of these units.
    pub octets: u64,
    /// Rejected units.
    pub refused: u64,
    /// Bodies.
    pub bodies: u64,
    /// Octets of bodies.
    pub body_octets: u64,
    /// Octets of padding, without null packets.
    pub padding: u64,
    /// TS Packets, of all PIDs.
    pub ts_packets: u64,
    /// TS Packets with PAT and PMT.
    pub psi: u64,
    /// Null packets.
    pub nulls: u64,
    /// Units sent in several GSE Packets.
    pub fragmented: u64,
}

/// Counters of an [`Unpackager`](super::Unpackager).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct UnpackagerCounters {
    /// Received bodies.
    pub bodies: u64,
    /// Octets of bodies and streams.
    pub body_octets: u64,
    /// Malformed bodies, dropped as a whole.
    pub bad_bodies: u64,
    /// Delivered units.
    pub units: u64,
    /// Octets of delivered units.
    pub octets: u64,
    /// Units dropped because of an unknown Type, or of their size.
    pub unknown: u64,
    /// TS Packets and their SNDUs.
    pub ts: TsCounters,
    /// GSE Packets.
    pub gse: GseCounters,
    /// RTP headers.
    pub rtp: RtpCounters,
}

impl UnpackagerCounters {
    /// Counts a body and its outcome.
    pub(super) fn note(&mut self, octets: usize, result: Result<(), UnpackError>) -> Result<(), UnpackError> {
        self.bodies += 1;
        self.body_octets += octets as u64;
        self.bad_bodies += u64::from(result.is_err());
        result
    }
}

/// Counters of TS Packets and SNDUs, of all PIDs received together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct TsCounters {
    /// TS Packets of any PID.
    pub packets: u64,
    /// Null packets.
    pub nulls: u64,
    /// TS Packets of PIDs below 0x0020, which are reserved for tables.
    pub psi: u64,
    /// TS Packets of other PIDs that are not received.
    pub others: u64,
    /// TS Packets without the sync byte 0x47.
    pub sync_errors: u64,
    /// TS Packets that the physical layer marked as damaged.
    pub transport_errors: u64,
    /// Duplicate TS Packets.
    pub duplicates: u64,
    /// Gaps in Continuity Counters.
    pub continuity_errors: u64,
    /// Payload Pointers that do not match SNDUs, and other invalid headers.
    pub delimiting_errors: u64,
    /// SNDUs with a correct CRC.
    pub sndus: u64,
    /// SNDUs with a wrong CRC.
    pub crc_errors: u64,
    /// SNDUs for other sites.
    pub filtered: u64,
    /// SNDUs that exceed the maximum size of units.
    pub too_long: u64,
    /// SNDUs with unknown or truncated headers.
    pub type_errors: u64,
    /// SNDUs that were interrupted by a loss or an error.
    pub cut_short: u64,
    /// Octets of streams skipped while searching for TS Packets.
    pub skipped: u64,
}

/// GSE Packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct GseCounters {
    /// GSE Packets.
    pub packets: u64,
    /// Unfragmented PDUs.
    pub whole: u64,
    /// Reassembled PDUs.
    pub reassembled: u64,
    /// Octets of padding.
    pub padding: u64,
    /// PDUs for other sites.
    pub filtered: u64,
    /// Invalid headers and labels.
    pub header_errors: u64,
    /// Fragments without a first one, PDUs that were not complete in time, and BBFrames of which datagrams are missing.
    pub incomplete: u64,
    /// PDUs that exceed the maximum size of units.
    pub too_long: u64,
    /// PDUs with a wrong Total_Length or CRC-32.
    pub crc_errors: u64,
}

/// Counters of RTP headers before TS Packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RtpCounters {
    /// Datagrams with an RTP header.
    pub packets: u64,
    /// Skipped sequence numbers: datagrams that were lost or late.
    pub lost: u64,
    /// Duplicate or reordered datagrams, which were dropped.
    pub late: u64,
    /// Sources that started or restarted.
    pub sources: u64,
}
