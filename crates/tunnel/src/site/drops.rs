//! Reasons under which packets and datagrams count that a channel or a seal rejects.

use thinair_session::Refused;

use crate::channel::NotSent;
use crate::status::Drop;

pub(super) fn reason_not_sent(error: &NotSent) -> Drop {
    use thinair_rohc::CompressError;
    match error {
        NotSent::Compress(CompressError::NotIp(_)) | NotSent::ShortFrame(_) | NotSent::RohcFrame => {
            Drop::NotIp
        }
        NotSent::Compress(CompressError::NoContexts) => Drop::NotCompressed,
        NotSent::Compress(CompressError::OutputTooSmall { .. }) | NotSent::TooLong { .. } => Drop::TooLong,
        NotSent::OnlyHears => Drop::NoRoute,
    }
}

pub(super) fn reason_refused(refused: Refused) -> Drop {
    match refused {
        Refused::Malformed => Drop::MalformedDatagram,
        Refused::Unknown | Refused::Ambiguous | Refused::NotAnnounced(_) => Drop::UnknownSession,
        Refused::Forged | Refused::WornOut => Drop::Forged,
        Refused::Replayed | Refused::TooOld => Drop::Replayed,
        Refused::Reflected => Drop::Reflected,
        Refused::UnknownKey { .. }
        | Refused::UnknownPublicKey(_)
        | Refused::OtherMode { .. }
        | Refused::Unasked
        | Refused::OtherSuite(_) => Drop::Handshake,
        Refused::OtherParameters(_) => Drop::OtherChannel,
        Refused::StaleEpoch(_) | Refused::OtherSalt(_) => Drop::StaleEpoch,
        Refused::NotKept(_) => Drop::NotKept,
    }
}
