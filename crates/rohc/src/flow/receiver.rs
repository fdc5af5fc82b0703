//! The life of a context at the decompressor: an IR packet creates it, continues it, or replaces that of another profile; other packets are
//! the predicted one, or are read, searched for and verified. Profiles decide what octets mean.

use thinair_wire::coder::Traced;

use crate::cid::Cid;
use crate::decompressor::{
    Decompressed, DecompressorConfig, DecompressorContext, Failure, IncomingPacket, Problem, ReceiverContext,
    Verified,
};
use crate::flow::arrival::Moment;
use crate::id::{Format, ProfileId};
use crate::packet::PacketHeader;
use crate::profile::{Held, ReceiverPlace};
use crate::state::DecompressorState;
use crate::storage::{Shared, SharedMemory, SharedRoom};

/// A profile, or the profiles of one RFC, at the decompressor: how its contexts decompress packets.
///
/// **A failed packet changes neither the fields of a context nor its memory**: a context changes once a packet is verified, and no step
/// behind that fails. Two failures are those of a verified packet. One that is [held back](Failure::OnTrial) has updated the context; one
/// for which there is [no memory](Failure::NoMemory) ends it.
pub(crate) trait Receiver: ReceiverContext + Held<ReceiverPlace> {
    /// Memory beside contexts.
    type Room: SharedRoom;

    /// Creates a context for a CID without one.
    fn new(profile: ProfileId) -> Self;

    /// Returns the CID of the base that an IR-CR packet names (RFC 4164).
    fn base_of(_packet: &IncomingPacket<'_, '_, '_>) -> Option<Cid> {
        None
    }

    /// Decompresses an IR or IR-CR packet of its profile. `base` is the context that it [names](Self::base_of), if that is in Full Context.
    fn ir<'m>(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, 'm>,
        base: Option<&Self>,
        memory: &mut Shared<'m, Self::Room>,
        out: &mut [u8],
    ) -> Result<Verified, Failure>;

    /// Adds to a new context what is left of the context before, of another profile of the RFC.
    fn succeed(&mut self, _before: Option<&Self>) {}

    /// Returns the context for an IR-DYN packet of another profile of the RFC; `None` if that profile cannot take it over.
    fn taken_over(&self, _profile: ProfileId) -> Option<Self> {
        None
    }

    /// Decompresses an IR-DYN packet of its profile.
    fn ir_dyn<'m>(
        &mut self,
        _packet: &IncomingPacket<'_, '_, 'm>,
        _memory: &mut Shared<'m, Self::Room>,
        _out: &mut [u8],
    ) -> Result<Verified, Failure> {
        Err(Failure::Malformed)
    }

    /// Decompresses the predicted packet, if nothing is in doubt. `None`, without a change, for another one.
    #[inline(always)]
    fn predicted<'m>(
        &mut self,
        _packet: &mut IncomingPacket<'_, '_, 'm>,
        _memory: &mut Shared<'m, Self::Room>,
        _out: &mut [u8],
    ) -> Option<Verified> {
        None
    }

    /// Decompresses any other packet.
    fn compressed<'m>(
        &mut self,
        packet: &mut IncomingPacket<'_, '_, 'm>,
        memory: &mut Shared<'m, Self::Room>,
        out: &mut [u8],
    ) -> Result<Verified, Failure>;

    /// Records that a packet has failed, for the search for the next ones.
    fn note_failure(&mut self, _at: Moment) {}

    /// Returns its memory to the channel.
    fn release(&mut self, _memory: &mut Shared<'_, Self::Room>) {}

    /// Passes the fields of a packet to `on_field`, as far as the context allows, and returns its format.
    fn dissect<'p>(
        &self,
        packet: &PacketHeader<'p>,
        config: &DecompressorConfig,
        memory: &Shared<'_, Self::Room>,
        on_field: &mut dyn FnMut(Traced<'p>),
    ) -> Option<Format>;
}

/// Decompresses an IR or IR-CR packet. Once it is verified, the context of the CID continues, or is replaced by one of the packet's profile
/// (RFC 5795, section 5.1.1).
#[inline(never)]
pub(crate) fn initialize<'m>(
    contexts: &mut [DecompressorContext],
    shared: &mut SharedMemory<'m>,
    profile: ProfileId,
    packet: &mut IncomingPacket<'_, '_, 'm>,
    out: &mut [u8],
) -> Result<Verified, Problem> {
    let named = ReceiverPlace::base_of(profile, packet).and_then(|cid| contexts.get_mut(cid.index()));
    let base = named.and_then(|slot| is_full(&mut slot.place).then_some(slot.place));
    let slot = contexts.get_mut(packet.header.cid.index()).ok_or(Problem::NoContext)?;
    if slot.place.profile() == Some(profile) {
        return slot.place.ir(base.as_ref(), shared, packet, out);
    }
    let mut new = ReceiverPlace::new(profile);
    let mut verified = new.ir(base.as_ref(), shared, packet, out);
    if verified == Err(Problem::Failure(Failure::NoMemory)) {
        // The compressor has released the memory of the flow before.
        new.release(shared);
        slot.release(shared);
        new = ReceiverPlace::new(profile);
        verified = new.ir(base.as_ref(), shared, packet, out);
        if verified.is_err() {
            new.release(shared);
            new = ReceiverPlace::Free;
        }
    } else if verified.is_err() {
        return verified;
    }
    new.succeed(&slot.place);
    slot.release(shared);
    slot.place = new;
    verified
}

/// True if a context is in Full Context.
fn is_full(place: &mut ReceiverPlace) -> bool {
    let health = place.context_mut().and_then(ReceiverContext::health_mut);
    health.is_some_and(|health| health.state == DecompressorState::Fc)
}

/// Decompresses an IR-DYN packet, which may be that of another profile.
pub(crate) fn ir_dyn<'m, R: Receiver>(
    context: &mut R,
    shared: &mut SharedMemory<'m>,
    profile: ProfileId,
    packet: &IncomingPacket<'_, '_, 'm>,
    out: &mut [u8],
) -> Result<Verified, Failure> {
    let memory = R::Room::of_mut(shared);
    if context.profile() == profile {
        return context.ir_dyn(packet, memory, out);
    }
    let mut next = context.taken_over(profile).ok_or(Failure::Malformed)?;
    let verified = next.ir_dyn(packet, memory, out);
    if let Ok(_) | Err(Failure::NoMemory) = verified {
        *context = next;
    }
    verified
}

/// Decompresses any other packet. Returns whether it is to be acknowledged, too.
#[inline(never)]
pub(crate) fn decompress<'m, R: Receiver>(
    context: &mut R,
    shared: &mut SharedMemory<'m>,
    packet: &mut IncomingPacket<'_, '_, 'm>,
    out: &mut [u8],
) -> Result<(Decompressed, bool), Problem> {
    let memory = R::Room::of_mut(shared);
    let verified = match context.predicted(packet, memory, out) {
        Some(verified) => verified,
        None => match context.compressed(packet, memory, out) {
            Ok(verified) => verified,
            Err(failure) => {
                context.note_failure(packet.at);
                return Err(failure.into());
            }
        },
    };
    Ok(delivered(context, packet, verified))
}

/// Counts a verified packet at its context. Returns whether it is to be acknowledged, too.
#[inline]
pub(crate) fn delivered<R: ReceiverContext + ?Sized>(
    context: &mut R,
    packet: &IncomingPacket<'_, '_, '_>,
    verified: Verified,
) -> (Decompressed, bool) {
    let Verified { format, header_in, header_out, len } = verified;
    let (cid, profile) = (packet.header.cid, context.profile());
    let is_due = context.note_success(packet.header.first, format, packet.config.mode);
    (Decompressed { cid, profile, format, header_in, header_out, len }, is_due)
}
