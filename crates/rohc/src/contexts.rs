//! Current state of the contexts of a channel, for monitoring, and for combining the feedback of several
//! decompressors.

use crate::cid::Cid;
use crate::id::ProfileId;
use crate::mode::Mode;

/// State of one context of a compressor or decompressor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextState {
    /// Its CID.
    pub cid: Cid,
    /// Its profile.
    pub profile: ProfileId,
    /// Name of the state in RFC 3095, section 4.3: `IR`, `FO` or `SO` at a compressor, `NC`, `SC` or `FC` at a
    /// decompressor. Contexts of profile 0x0000 are in `IR` or `SO`, and in `FC`.
    pub state: &'static str,
    /// Current mode. Profiles 0x0000 and 0x0181 have none: U-mode without feedback, O-mode with it.
    pub mode: Mode,
    /// SN or MSN of the newest packet; `None` in profile 0x0000, which has none.
    pub sn: Option<u32>,
}
