//! Packets in frames of IEEE 802.15.4: compressed by LOWPAN_IPHC and in fragments. A packet is put together here, and
//! counts with the frame that completes it. Contexts of LOWPAN_IPHC are not in a capture: packets whose addresses need one
//! that was not given are counted and skipped.

use std::time::Duration;

use thinair_capture::{MacFrame, Skip, Timestamp};
use thinair_lowpan::frame::{AuxSecurityHeader, FrameType, WpanFrame, WpanFrameError};
use thinair_lowpan::reassembly::{
    DatagramKind, FragmentOutcome, Reassembler, ReassemblyError, ReassemblySlot, TIMEOUT, WhenFull,
};
use thinair_lowpan::stack::{HeaderStack, StackContent, StackError};
use thinair_lowpan::{
    Contexts, DecompressError, LowpanSettings, UdpChecksum, decompress, fcs, fragment::MAX_DATAGRAM,
};
use thinair_wire::time::Instant;

/// Packets that are put together at the same time.
const SLOTS: usize = 16;

/// Octets of an IPv6 packet in one frame: no frame makes more of its headers.
const ROOM: usize = 4_096;

/// Packets that the nodes of a mesh would make of the frames.
pub(crate) struct Mesh {
    /// A capture hears the fragments of both directions and of all nodes; one that has a checksum elided is taken as sent.
    settings: LowpanSettings,
    reassembler: Reassembler<Vec<u8>, SLOTS>,
    packet: Vec<u8>,
    latest: Instant,
}

impl Mesh {
    /// `contexts` are those of LOWPAN_IPHC that the nodes of a captured network have.
    pub(crate) fn new(contexts: Contexts) -> Self {
        let slots = [(); SLOTS].map(|()| ReassemblySlot::new(vec![0; MAX_DATAGRAM]));
        let reassembler = Reassembler::new(slots, TIMEOUT, WhenFull::ReplaceOldest);
        let settings = LowpanSettings { contexts, udp_checksum: UdpChecksum::Elided };
        Self { settings, reassembler, packet: vec![0; ROOM], latest: Instant::ZERO }
    }

    /// The packet that a frame has or completes, or a stable name of the reason why there is none.
    pub(crate) fn packet(&mut self, time: Timestamp, captured: MacFrame<'_>) -> Result<&[u8], &'static str> {
        // Captures jump back now and then; engines must not.
        self.latest = self.latest.max(Instant::ZERO + Duration::from_nanos(time.as_nanos()));
        // Check sequences of 4 octets are not computed here.
        if captured.fcs.len() == fcs::LEN && captured.fcs != fcs::fcs(captured.octets) {
            return Err("wrong_fcs");
        }
        let frame = WpanFrame::read(captured.octets).map_err(|error| match error {
            WpanFrameError::Type { .. } => Skip::NotIp.name(),
            WpanFrameError::Malformed { .. } => MALFORMED,
            WpanFrameError::Security2003 => ENCRYPTED,
        })?;
        if frame.frame_type != FrameType::Data {
            return Err(Skip::NotIp.name());
        }
        if frame.security.is_some_and(AuxSecurityHeader::is_encrypted) {
            return Err(ENCRYPTED);
        }
        let stack = HeaderStack::read(frame.links(), frame.payload).map_err(|error| match error {
            StackError::Truncated { .. } => MALFORMED,
            StackError::Dispatch { .. } => Skip::NotIp.name(),
        })?;
        let Some(header) = stack.fragment else {
            return match stack.content {
                StackContent::Rohc(_) | StackContent::Part(_) => Err(Skip::NotIp.name()),
                StackContent::Ipv6(octets) => {
                    let done = decompress(&self.settings, stack.links, octets, &mut self.packet);
                    let len = done.map_err(not_decompressed)?.len;
                    Ok(self.packet.get(..len).unwrap_or_default())
                }
            };
        };
        let content = stack.content.octets();
        match self.reassembler.receive(self.latest, &self.settings, stack.links, header, content) {
            Ok(FragmentOutcome::Complete(datagram)) => match datagram.kind {
                DatagramKind::Ipv6 => Ok(datagram.octets),
                DatagramKind::Rohc => Err(Skip::NotIp.name()),
            },
            Ok(FragmentOutcome::Waiting | FragmentOutcome::Duplicate | FragmentOutcome::BegunAnew) => {
                Err("fragment")
            }
            Err(ReassemblyError::Header(error)) => Err(not_decompressed(error)),
            Err(ReassemblyError::Malformed | ReassemblyError::TooLong { .. } | ReassemblyError::Full) => {
                Err(MALFORMED)
            }
        }
    }
}

const MALFORMED: &str = "malformed_frame";
const ENCRYPTED: &str = "encrypted";

const fn not_decompressed(error: DecompressError) -> &'static str {
    match error {
        DecompressError::NoContext { .. } => "no_context",
        DecompressError::Dispatch { .. } => Skip::NotIp.name(),
        DecompressError::Malformed { .. }
        | DecompressError::UnknownNhc { .. }
        | DecompressError::TooDeep { .. }
        | DecompressError::NoLinkAddress { .. }
        | DecompressError::ChecksumElided { .. }
        | DecompressError::TooLong
        | DecompressError::OutputTooSmall { .. } => MALFORMED,
    }
}
