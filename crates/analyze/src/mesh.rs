//! Reassembly of packets in frames of IEEE 802.15.4, which are compressed with LOWPAN_IPHC and fragmented. A
//! packet counts with the frame that completes it. A capture does not contain the contexts of LOWPAN_IPHC:
//! packets with addresses that need a context which was not given are skipped and counted.

use std::time::Duration;

use thinair_capture::{MacFrame, Skip, Timestamp};
use thinair_lowpan::frame::{AuxSecurityHeader, FrameType, WpanFrame, WpanFrameError};
use thinair_lowpan::reassembly::{
    DatagramKind, FragmentOutcome, Reassembler, ReassemblyError, ReassemblySlot, TIMEOUT, WhenFull,
};
use thinair_lowpan::stack::{HeaderStack, StackContent, StackError};
use thinair_lowpan::{
    Contexts, DecompressError, LowpanSettings, UdpChecksum, decompress, dispatch, fcs, fragment::MAX_DATAGRAM,
};
use thinair_wire::time::Instant;

/// Maximum number of packets reassembled at a time.
const SLOTS: usize = 16;

/// Maximum size of an IPv6 packet in one frame, in octets; no frame expands to more.
const ROOM: usize = 4_096;

/// Reassembles packets as the nodes of a mesh do.
pub(crate) struct MeshReassembly {
    /// A capture contains the fragments of both directions and of all nodes. A packet with an elided checksum
    /// is accepted.
    settings: LowpanSettings,
    reassembler: Reassembler<Vec<u8>, SLOTS>,
    packet: Vec<u8>,
    latest: Instant,
    iphc_frames: u64,
}

impl MeshReassembly {
    /// `contexts`: those of LOWPAN_IPHC in the captured network.
    pub(crate) fn new(contexts: Contexts) -> Self {
        let slots = [(); SLOTS].map(|()| ReassemblySlot::new(vec![0; MAX_DATAGRAM]));
        let reassembler = Reassembler::new(slots, TIMEOUT, WhenFull::ReplaceOldest);
        let settings = LowpanSettings { contexts, udp_checksum: UdpChecksum::Elided };
        Self { settings, reassembler, packet: vec![0; ROOM], latest: Instant::ZERO, iphc_frames: 0 }
    }

    /// Number of frames so far whose headers were compressed with LOWPAN_IPHC.
    pub(crate) fn iphc_frames(&self) -> u64 {
        self.iphc_frames
    }

    /// Returns the packet that a frame contains or completes, or a stable name of the reason why there is
    /// none.
    pub(crate) fn packet(&mut self, time: Timestamp, captured: MacFrame<'_>) -> Result<&[u8], &'static str> {
        // Times in captures can go backwards; engines need monotonic time.
        self.latest = self.latest.max(Instant::ZERO + Duration::from_nanos(time.as_nanos()));
        // Check sequences of 4 octets are not verified.
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
        let is_iphc =
            matches!(stack.content, StackContent::Ipv6([first, ..]) if dispatch::is_lowpan_iphc(*first));
        let Some(header) = stack.fragment else {
            return match stack.content {
                StackContent::Rohc(_) | StackContent::Part(_) => Err(Skip::NotIp.name()),
                StackContent::Ipv6(octets) => {
                    let done = decompress(&self.settings, stack.links, octets, &mut self.packet);
                    let len = done.map_err(not_decompressed)?.len;
                    self.iphc_frames += u64::from(is_iphc);
                    Ok(self.packet.get(..len).unwrap_or_default())
                }
            };
        };
        let content = stack.content.octets();
        let received = self.reassembler.receive(self.latest, &self.settings, stack.links, header, content);
        self.iphc_frames += u64::from(is_iphc && received.is_ok());
        match received {
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
