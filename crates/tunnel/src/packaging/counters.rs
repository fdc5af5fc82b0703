//! What is told of packagings. Counters of what a packaging does not have stay 0.

use super::UnpackError;

/// What a [`Packager`](super::Packager) has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PackagerCounters {
    /// Units that were taken.
    pub units: u64,
    /// Octets of them.
    pub octets: u64,
    /// Units that were refused.
    pub refused: u64,
    /// Bodies.
    pub bodies: u64,
    /// Octets of them.
    pub body_octets: u64,
    /// Octets of padding in them, null packets not counted.
    pub padding: u64,
    /// TS Packets, of all PIDs.
    pub ts_packets: u64,
    /// Those with PAT and PMT.
    pub psi: u64,
    /// Null packets.
    pub nulls: u64,
    /// Units that went in several GSE Packets.
    pub fragmented: u64,
}

/// What an [`Unpackager`](super::Unpackager) has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct UnpackagerCounters {
    /// Bodies that came.
    pub bodies: u64,
    /// Octets of them, and of streams.
    pub body_octets: u64,
    /// Bodies that were refused as a whole.
    pub bad_bodies: u64,
    /// Units that were delivered.
    pub units: u64,
    /// Octets of them.
    pub octets: u64,
    /// Units that were dropped as they are of no known Type, or longer than units may be.
    pub unknown: u64,
    /// TS Packets and their SNDUs.
    pub ts: TsCounters,
    /// GSE Packets.
    pub gse: GseCounters,
    /// RTP headers.
    pub rtp: RtpCounters,
}

impl UnpackagerCounters {
    /// Notes how a body was taken.
    pub(super) fn note(&mut self, octets: usize, result: Result<(), UnpackError>) -> Result<(), UnpackError> {
        self.bodies += 1;
        self.body_octets += octets as u64;
        self.bad_bodies += u64::from(result.is_err());
        result
    }
}

/// TS Packets and SNDUs, of all PIDs that are received together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct TsCounters {
    /// TS Packets of any PID.
    pub packets: u64,
    /// Null packets.
    pub nulls: u64,
    /// TS Packets of PIDs below 0x0020, where tables are.
    pub psi: u64,
    /// TS Packets of other PIDs that nobody receives.
    pub others: u64,
    /// TS Packets that do not begin with 0x47.
    pub sync_errors: u64,
    /// TS Packets that their receiver knows to be damaged.
    pub transport_errors: u64,
    /// TS Packets that came twice.
    pub duplicates: u64,
    /// Gaps in Continuity Counters.
    pub continuity_errors: u64,
    /// Payload Pointers and SNDUs that do not agree, and other headers that cannot be.
    pub delimiting_errors: u64,
    /// SNDUs with a right CRC.
    pub sndus: u64,
    /// SNDUs with a wrong CRC.
    pub crc_errors: u64,
    /// SNDUs to other sites.
    pub filtered: u64,
    /// SNDUs that are longer than units may be.
    pub too_long: u64,
    /// SNDUs with headers that are not known, or are cut short.
    pub type_errors: u64,
    /// SNDUs of which a part had arrived, and then came a loss or an error.
    pub cut_short: u64,
    /// Octets of streams that were skipped while TS Packets were looked for.
    pub skipped: u64,
}

/// GSE Packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct GseCounters {
    /// GSE Packets.
    pub packets: u64,
    /// PDUs that came whole.
    pub whole: u64,
    /// PDUs that were put together.
    pub reassembled: u64,
    /// Octets of padding.
    pub padding: u64,
    /// PDUs to other sites.
    pub filtered: u64,
    /// Headers and labels that cannot be.
    pub header_errors: u64,
    /// Fragments of which the first one did not come, and PDUs that were not complete in time.
    pub incomplete: u64,
    /// PDUs that are longer than units may be.
    pub too_long: u64,
    /// PDUs with a wrong Total_Length or CRC-32.
    pub crc_errors: u64,
}

/// RTP headers in front of TS Packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RtpCounters {
    /// Datagrams with an RTP header.
    pub packets: u64,
    /// Sequence numbers that were left out: datagrams that were lost, or came late.
    pub lost: u64,
    /// Datagrams that came twice, or behind a later one; dropped.
    pub late: u64,
    /// Sources that began, or began anew.
    pub sources: u64,
}
