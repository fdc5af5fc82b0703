//! What the contexts of a channel are at the moment, to be looked at: a status shows it, and who combines feedback of
//! several decompressors has to know it.

use crate::cid::Cid;
use crate::mode::Mode;
use crate::profile::ProfileId;

/// One context of a compressor or decompressor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextState {
    /// Its CID.
    pub cid: Cid,
    /// Its profile.
    pub profile: ProfileId,
    /// The state, by its name in RFC 3095, section 4.3: `IR`, `FO` or `SO` at a compressor, `NC`, `SC` or `FC` at a
    /// decompressor. Contexts of profile 0x0000 are in `IR` or `SO`, and in `FC`.
    pub state: &'static str,
    /// The mode that it is in. Profiles 0x0000 and 0x0081 have none: U-mode without feedback, O-mode with it.
    pub mode: Mode,
    /// The SN or MSN of the newest packet; `None` in profile 0x0000, which has none.
    pub sn: Option<u32>,
}
