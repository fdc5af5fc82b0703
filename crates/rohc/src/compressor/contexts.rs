//! The contexts of a compressor, to be looked at.

use super::{Compressor, Kind};
use crate::cid::Cid;
use crate::contexts::ContextState;
use crate::mode::Mode;
use crate::profile::ProfileId;
use crate::state::CompressorState;

impl Compressor<'_> {
    /// The contexts that are in use, by CID.
    pub fn contexts(&self) -> impl Iterator<Item = ContextState> + '_ {
        let cids = (0..).map_while(Cid::new);
        cids.zip(self.flows.kinds()).filter_map(|(cid, kind)| of(cid, kind))
    }

    /// Flows that have lost their context to another flow since the start, modulo 2^32: there were more flows than contexts.
    pub fn displaced_flows(&self) -> u32 {
        self.flows.displaced()
    }

    /// The context of a CID, if it is in use.
    pub fn context(&self, cid: Cid) -> Option<ContextState> {
        self.flows.look(cid).and_then(|kind| of(cid, kind))
    }
}

fn of(cid: Cid, kind: &Kind) -> Option<ContextState> {
    let with_feedback = |two_way| if two_way { Mode::Optimistic } else { Mode::Unidirectional };
    match kind {
        Kind::Free | Kind::Rejected { .. } => None,
        Kind::Uncompressed(context) => Some(ContextState {
            cid,
            profile: ProfileId::Uncompressed,
            state: if context.ir_left > 0 { "IR" } else { "SO" },
            mode: with_feedback(context.two_way),
            sn: None,
        }),
        Kind::Rfc3095(context) => {
            let (state, sn) = context.shown();
            let state = match state {
                CompressorState::Ir => "IR",
                CompressorState::Fo => "FO",
                CompressorState::So => "SO",
            };
            let mode = context.mode.mode();
            Some(ContextState { cid, profile: context.profile, state, mode, sn: Some(sn) })
        }
        Kind::Tcp(context) => {
            let (state, two_way, msn) = context.shown();
            let mode = with_feedback(two_way);
            Some(ContextState { cid, profile: ProfileId::Tcp, state, mode, sn: Some(u32::from(msn)) })
        }
        Kind::Coap(context) => {
            let (state, two_way, msn) = context.shown();
            let mode = with_feedback(two_way);
            Some(ContextState { cid, profile: ProfileId::Coap, state, mode, sn: Some(msn) })
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use alloc::vec::Vec;
    use thinair_wire::time::Instant;

    use super::*;
    use crate::channel::{Channel, ProfileSet};
    use crate::cid::CidSpace;
    use crate::compressor::{CompressorConfig, CompressorMemory};
    use crate::decompressor::{Decompressor, DecompressorConfig, DecompressorMemory};

    #[test]
    fn contexts_of_both_ends_are_seen() {
        let channel = Channel::new(CidSpace::Small, 3, ProfileSet::v1()).unwrap();
        let mut compressor =
            Compressor::new(CompressorConfig::new(channel), CompressorMemory::owned(&channel, 0));
        let memory = DecompressorMemory::owned(&channel, 0);
        let mut decompressor = Decompressor::new(DecompressorConfig::new(channel), memory);
        let mut udp = *b"\x60\0\0\0\0\x0C\x11\x40\xFD00000000000000A\xFD00000000000000B\x10\0\x20\0\0\x0C\x12\x34\0\0\0\0";
        let fragment = *b"\x45\0\0\x18\0\x07\x20\0\x40\x11\0\0\x0A\0\0\x01\x0A\0\0\x02abcd";
        let (mut rohc, mut back) = ([0; 128], [0; 128]);
        assert_eq!((compressor.contexts().count(), decompressor.contexts().count()), (0, 0));
        for i in 0..9 {
            udp[41] = i / 4;
            let packet = if i == 8 { &fragment[..] } else { &udp[..] };
            let done = compressor.compress(Instant::ZERO, packet, &mut rohc).unwrap();
            decompressor.decompress(Instant::ZERO, &rohc[..done.len], &mut back).unwrap();
        }
        let seen = |context: ContextState| (context.cid.value(), context.profile, context.state);
        let (udp, none) = (ProfileId::Udp, ProfileId::Uncompressed);
        let sent: Vec<_> = compressor.contexts().map(seen).collect();
        assert_eq!(sent, [(0, udp, "SO"), (1, udp, "SO"), (2, none, "IR")]);
        let received: Vec<_> = decompressor.contexts().map(seen).collect();
        assert_eq!(received, [(0, udp, "FC"), (1, udp, "FC"), (2, none, "FC")]);
        let one = Cid::new(1).unwrap();
        let context = compressor.context(one).unwrap();
        assert_eq!(Some(context), compressor.contexts().nth(1));
        let sn = decompressor.contexts().nth(1).unwrap().sn;
        assert!(sn.is_some() && sn.map(|sn| sn & 0xFFFF) == context.sn.map(|sn| sn & 0xFFFF));
        assert_eq!((compressor.context(Cid::new(3).unwrap()), context.mode), (None, Mode::Unidirectional));
    }
}
