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
        Kind::Coap(context) => {
            let (state, two_way, msn) = context.shown();
            let mode = with_feedback(two_way);
            Some(ContextState { cid, profile: ProfileId::Coap, state, mode, sn: Some(msn) })
        }
    }
}
