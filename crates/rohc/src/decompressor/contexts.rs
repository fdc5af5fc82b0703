//! The contexts of a decompressor, to be looked at.

use super::{Decompressor, Kind};
use crate::cid::Cid;
use crate::contexts::ContextState;
use crate::profile::ProfileId;
use crate::state::DecompressorState;

impl Decompressor<'_> {
    /// The contexts that are in use, by CID.
    pub fn contexts(&self) -> impl Iterator<Item = ContextState> + '_ {
        let cids = (0..).map_while(Cid::new);
        cids.zip(self.contexts.iter()).filter_map(|(cid, place)| {
            let (profile, state, mode, sn) = match &place.kind {
                Kind::Empty => return None,
                Kind::Uncompressed => {
                    (ProfileId::Uncompressed, DecompressorState::Fc, self.config.mode, None)
                }
                Kind::Rfc3095(context) => {
                    (context.profile, context.state, context.mode.mode(), Some(context.sn()))
                }
                Kind::Tcp(context) => {
                    (ProfileId::Tcp, context.state, self.config.mode, Some(u32::from(context.msn())))
                }
                Kind::Coap(context) => {
                    (ProfileId::Coap, context.state, self.config.mode, Some(u32::from(context.msn())))
                }
            };
            let state = match state {
                DecompressorState::Nc => "NC",
                DecompressorState::Sc => "SC",
                DecompressorState::Fc => "FC",
            };
            Some(ContextState { cid, profile, state, mode, sn })
        })
    }
}
