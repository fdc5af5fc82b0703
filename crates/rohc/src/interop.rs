//! Deviations from the RFCs for programs of others.

/// Deviations from the RFCs for other implementations and test benches, in
/// [`CompressorConfig`](crate::CompressorConfig) and [`DecompressorConfig`](crate::DecompressorConfig). An
/// end uses its own fields, and ignores those of the other end.
///
/// ```
/// use thinair_rohc::{Channel, CidSpace, DecompressorConfig, Interop, ProfileSet};
///
/// let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1())?;
/// let config = DecompressorConfig { interop: Interop::ROHC_LIB, ..DecompressorConfig::new(channel) };
/// # Ok::<(), thinair_rohc::ChannelError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interop {
    /// Compressor: count the last IR packet of a new context twice for the behavior of the IP-ID and for
    /// TS_STRIDE, which the second packet of a flow shows, and do not repeat them with the change to R-mode.
    /// The bench of 3GPP TS 25.323, Annex A, needs that. It saves 6 octets of a flow of RTP, 9 if its IPv4
    /// Identification begins with 0 and counts, and 3 or 4 octets of each packet that announces R-mode. The
    /// additional packet with both fields is worth these octets: with four repetitions, three packets lost
    /// after the first cost no other packet. With true, U-mode delivers nothing in that case until a refresh,
    /// O-mode until a NACK is answered.
    pub established_by_ir: bool,
    /// Compressor: send constant IP-IDs by SID in every profile, not only where it is defined (RFC 3843,
    /// section 3.3). This is not standard, but some decompressors support it.
    pub sid_everywhere: bool,
    /// Decompressor: deliver IR and IR-DYN packets without payload. RFC 3095, section 5.7.7, forbids it: such
    /// a packet only refreshes the context. Some compressors nevertheless send packets without payload that
    /// way.
    pub deliver_empty: bool,
    /// Decompressor: keep the fields in extension 3 of UO-1-ID. RFC 3095, section 5.7.3, and RFC 4815,
    /// section 6.2, forbid it: such packets update SN, TS and IP-ID alone. Some compressors nevertheless rely
    /// on it.
    pub uo_1_id_updates: bool,
    /// Decompressor: do not infer from a pause that packets may be missing: for compressors of other
    /// implementations, which send as few bits of the SN behind a pause as elsewhere. If more packets are
    /// lost in a row than these bits count, a header may then be wrong; the clock helps once a packet has
    /// failed.
    pub ignores_pauses: bool,
}

impl Interop {
    /// As the RFCs define it: the default.
    pub const STANDARD: Self = Self {
        established_by_ir: false,
        sid_everywhere: false,
        deliver_empty: false,
        uo_1_id_updates: false,
        ignores_pauses: false,
    };

    /// A decompressor for packets of rohc-lib and other compressors. A compressor for rohc-lib needs no
    /// deviation.
    pub const ROHC_LIB: Self =
        Self { deliver_empty: true, uo_1_id_updates: true, ignores_pauses: true, ..Self::STANDARD };

    /// A compressor at the test bench of 3GPP TS 25.323, Annex A.
    pub const TS_25_323: Self = Self { established_by_ir: true, ..Self::STANDARD };
}
