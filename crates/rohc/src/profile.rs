//! The profiles: the registry of this crate, the memory that profiles have beside contexts, and a folder per
//! RFC.

#[cfg(feature = "coap")]
pub mod coap;
#[cfg(feature = "dtls")]
pub(crate) mod dtls;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod notation;
#[cfg(feature = "rfc3095")]
pub(crate) mod rfc3095;
#[cfg(feature = "v2")]
pub(crate) mod rfc5225;
#[cfg(feature = "tcp")]
pub(crate) mod rfc6846;
pub(crate) mod uncompressed;
#[cfg(all(test, any(feature = "coap", feature = "rfc3095")))]
mod xor_shift;

use core::marker::PhantomData;

use thinair_wire::header::chain::HeaderChain;
use thinair_wire::time::Instant;

use crate::channel::{Channel, ProfileSet};
use crate::cid::Cid;
use crate::compressor::{AnySenderContext, CompressError, Compressed, Compressor, OutgoingPacket};
use crate::decompressor::{
    Decompressed, Decompressor, DecompressorConfig, IncomingPacket, Problem, ReceiverContext, Traced,
    Verified,
};
use crate::exchange::Linked;
use crate::flow::receiver::{self, Receiver};
use crate::flow::sender::Sender;
use crate::id::{Format, ProfileId};
use crate::packet::PacketHeader;
use crate::storage::{Places, Room, Rooms, SharedRoom, Slots, rooms};

/// Context of a profile that can be stored in a place.
pub(crate) trait Held<P>: Copy + Into<P> {
    /// Returns the context in a place, if it is of this profile.
    fn of(place: &P) -> Option<&Self>;

    /// Returns the context in a place for changes, if it is of this profile.
    fn of_mut(place: &mut P) -> Option<&mut Self>;
}

/// Declares the places of contexts at one end, with one variant per profile.
macro_rules! places {
    ($place:ident, $context:ident: $($(#[$attribute:meta])* $name:ident $type:ty;)+) => {
        /// Place of a context.
        #[derive(Clone, Copy, Debug)]
        #[allow(clippy::large_enum_variant, reason = "places are of one size, and nothing is allocated")]
        pub(crate) enum $place {
            Free,
            /// The decompressor has rejected the flow, which stays uncompressed until then.
            #[allow(dead_code, reason = "no place of a decompressor")]
            Rejected { until: Instant },
            $($(#[$attribute])* $name($type),)+
        }

        impl $place {
            /// The context, if there is one.
            #[inline]
            pub(crate) fn context(&self) -> Option<&dyn $context> {
                match self {
                    Self::Free | Self::Rejected { .. } => None,
                    $($(#[$attribute])* Self::$name(context) => Some(context),)+
                }
            }

            /// The context for changes, if there is one.
            #[inline]
            pub(crate) fn context_mut(&mut self) -> Option<&mut dyn $context> {
                match self {
                    Self::Free | Self::Rejected { .. } => None,
                    $($(#[$attribute])* Self::$name(context) => Some(context),)+
                }
            }
        }

        $($(#[$attribute])* impl From<$type> for $place {
            fn from(context: $type) -> Self {
                Self::$name(context)
            }
        }

        $(#[$attribute])* impl Held<$place> for $type {
            #[inline]
            fn of(place: &$place) -> Option<&Self> {
                if let $place::$name(context) = place { Some(context) } else { None }
            }

            #[inline]
            fn of_mut(place: &mut $place) -> Option<&mut Self> {
                if let $place::$name(context) = place { Some(context) } else { None }
            }
        })+
    };
}

/// Declares the profiles. A line has the contexts of one or more profiles at both ends, and their
/// identifiers. A packet is offered to them in this order, and goes uncompressed if none accepts it.
macro_rules! registry {
    (
        $($(#[$attribute:meta])* $name:ident: $sender:ty, $receiver:ty, $($id:ident)|+;)+
        _ => $last:ident: $last_sender:ty, $last_receiver:ty;
    ) => {
        places! { SenderPlace, AnySenderContext: $($(#[$attribute])* $name $sender;)+ $last $last_sender; }
        places! { ReceiverPlace, ReceiverContext: $($(#[$attribute])* $name $receiver;)+ $last $last_receiver; }

        #[allow(unused_mut, unused_variables, reason = "profiles may be left out")]
        impl SenderPlace {
            /// Compresses a packet with the first profile that accepts it.
            #[inline]
            pub(crate) fn compress_packet<'m>(
                compressor: &mut Compressor<'m>,
                packet: &mut OutgoingPacket<'_, '_, 'm>,
                out: &mut [u8],
            ) -> Result<Compressed, CompressError> {
                $($(#[$attribute])* if let Some(done) = compressor.compress_by::<$sender>(packet, out) {
                    return done;
                })+
                compressor.compress_by_none(packet, out)
            }

            /// True if a profile of the channel predicts packets.
            #[inline]
            pub(crate) fn predicts(profiles: ProfileSet, shared: &mut SharedMemory<'_>) -> bool {
                $($(#[$attribute])* if !thinair_wire::IS_SMALL && is_predicting::<$sender>(profiles, shared) {
                    return true;
                })+
                false
            }

            /// Compresses the packet that the context used last predicts.
            #[inline]
            pub(crate) fn compress_predicted<'m>(
                compressor: &mut Compressor<'m>,
                now: Instant,
                packet: &[u8],
                mut linked: Option<Linked<'_, 'm>>,
                out: &mut [u8],
            ) -> Option<Compressed> {
                let profiles = compressor.config.channel.profiles();
                $($(#[$attribute])* if is_predicting::<$sender>(profiles, &mut compressor.shared) {
                    let linked = linked.as_mut().map(Linked::reborrow);
                    let done = compressor.compress_predicted::<$sender>(now, packet, linked, out);
                    if done.is_some() {
                        return done;
                    }
                })+
                None
            }

            /// True if the flow of a packet has a context of a profile that accepts its kind of packet.
            #[cold]
            pub(crate) fn has_flow(compressor: &mut Compressor<'_>, chain: &HeaderChain<'_>) -> bool {
                let profiles = compressor.config.channel.profiles();
                $($(#[$attribute])* {
                    let flows = compressor.flows_of::<$sender>();
                    if <$sender>::is_in_use(profiles, flows.memory) && <$sender>::has_flow(chain, &flows) {
                        return true;
                    }
                })+
                false
            }
        }

        #[allow(unused_variables, reason = "profiles may be left out")]
        impl ReceiverPlace {
            /// The profile of the context, if there is one.
            pub(crate) fn profile(&self) -> Option<ProfileId> {
                self.context().map(ReceiverContext::profile)
            }

            /// Passes the fields of a packet to `on_field`. Calls no trait object, so that it is not linked
            /// into programs that do not use it.
            pub(crate) fn dissect<'p>(
                &self,
                packet: &PacketHeader<'p>,
                config: &DecompressorConfig,
                shared: &SharedMemory<'_>,
                on_field: &mut dyn FnMut(Traced<'p>),
            ) -> Option<Format> {
                match self {
                    Self::Free | Self::Rejected { .. } => None,
                    $($(#[$attribute])* Self::$name(context) => {
                        Receiver::dissect(context, packet, config, <$receiver as Receiver>::Room::of(shared), on_field)
                    })+
                    Self::$last(context) => {
                        Receiver::dissect(context, packet, config, <$last_receiver as Receiver>::Room::of(shared), on_field)
                    }
                }
            }

            /// Creates a context of a profile.
            pub(crate) fn new(profile: ProfileId) -> Self {
                match profile {
                    $($(#[$attribute])* $(ProfileId::$id)|+ => Self::$name(<$receiver as Receiver>::new(profile)),)+
                    ProfileId::$last => Self::$last(<$last_receiver as Receiver>::new(profile)),
                    #[allow(unreachable_patterns, reason = "profiles may be left out")]
                    _ => Self::Free,
                }
            }

            /// Returns the CID of the base that an IR-CR packet of a profile names.
            pub(crate) fn base_of(profile: ProfileId, packet: &IncomingPacket<'_, '_, '_>) -> Option<Cid> {
                match profile {
                    $($(#[$attribute])* $(ProfileId::$id)|+ => <$receiver as Receiver>::base_of(packet),)+
                    _ => None,
                }
            }

            /// Decompresses an IR or IR-CR packet of the profile of the context.
            pub(crate) fn ir<'m>(
                &mut self,
                base: Option<&Self>,
                shared: &mut SharedMemory<'m>,
                packet: &mut IncomingPacket<'_, '_, 'm>,
                out: &mut [u8],
            ) -> Result<Verified, Problem> {
                let verified = match self {
                    Self::Free | Self::Rejected { .. } => return Err(Problem::NoContext),
                    $($(#[$attribute])* Self::$name(context) => {
                        let base = base.and_then(<$receiver>::of);
                        Receiver::ir(context, packet, base, <$receiver as Receiver>::Room::of_mut(shared), out)
                    })+
                    Self::$last(context) => {
                        let base = base.and_then(<$last_receiver>::of);
                        Receiver::ir(context, packet, base, <$last_receiver as Receiver>::Room::of_mut(shared), out)
                    }
                };
                Ok(verified?)
            }

            /// Adds to a new context what is left of the one before.
            pub(crate) fn succeed(&mut self, before: &Self) {
                match self {
                    Self::Free | Self::Rejected { .. } | Self::$last(_) => {}
                    $($(#[$attribute])* Self::$name(context) => context.succeed(<$receiver>::of(before)),)+
                }
            }

            /// Decompresses an IR-DYN packet of a profile with the context.
            pub(crate) fn ir_dyn<'m>(
                &mut self,
                shared: &mut SharedMemory<'m>,
                profile: ProfileId,
                packet: &IncomingPacket<'_, '_, 'm>,
                out: &mut [u8],
            ) -> Result<Verified, Problem> {
                let verified = match self {
                    Self::Free | Self::Rejected { .. } => return Err(Problem::NoContext),
                    $($(#[$attribute])* Self::$name(context) => {
                        receiver::ir_dyn(context, shared, profile, packet, out)
                    })+
                    Self::$last(context) => receiver::ir_dyn(context, shared, profile, packet, out),
                };
                Ok(verified?)
            }

            /// Decompresses any other packet with the context. Returns whether it is to be acknowledged, too.
            #[inline]
            pub(crate) fn decompress<'m>(
                &mut self,
                shared: &mut SharedMemory<'m>,
                packet: &mut IncomingPacket<'_, '_, 'm>,
                out: &mut [u8],
            ) -> Result<(Decompressed, bool), Problem> {
                match self {
                    Self::Free | Self::Rejected { .. } => Err(Problem::NoContext),
                    $($(#[$attribute])* Self::$name(context) => {
                        receiver::decompress(context, shared, packet, out)
                    })+
                    Self::$last(context) => receiver::decompress(context, shared, packet, out),
                }
            }

            /// Returns the memory of the context to the channel.
            pub(crate) fn release(&mut self, shared: &mut SharedMemory<'_>) {
                match self {
                    Self::Free | Self::Rejected { .. } => {}
                    $($(#[$attribute])* Self::$name(context) => {
                        context.release(<$receiver as Receiver>::Room::of_mut(shared))
                    })+
                    Self::$last(context) => context.release(<$last_receiver as Receiver>::Room::of_mut(shared)),
                }
            }
        }
    };
}

/// True if packets are worth a comparison with the one that a context of the profile predicts.
#[inline]
fn is_predicting<S: Sender>(profiles: ProfileSet, shared: &mut SharedMemory<'_>) -> bool {
    S::PREDICTS && S::is_in_use(profiles, S::Room::of_mut(shared))
}

registry! {
    #[cfg(feature = "coap")]
    Coap: coap::compress::CoapSenderContext, coap::decompress::CoapReceiverContext, Coap;
    #[cfg(feature = "dtls")]
    Dtls: dtls::compress::DtlsSenderContext, dtls::decompress::DtlsReceiverContext, Dtls;
    #[cfg(feature = "tcp")]
    Tcp: rfc6846::compress::TcpSenderContext, rfc6846::decompress::TcpReceiverContext, Tcp;
    #[cfg(feature = "v2")]
    Rfc5225: rfc5225::compress::V2SenderContext, rfc5225::decompress::V2ReceiverContext,
        RtpV2 | UdpV2 | EspV2 | IpV2 | RtpUdpLiteV2 | UdpLiteV2;
    #[cfg(feature = "rfc3095")]
    Rfc3095: rfc3095::compress::Rfc3095SenderContext, rfc3095::decompress::Rfc3095ReceiverContext,
        Rtp | Udp | Esp | Ip | RtpUdpLite | UdpLite;
    _ => Uncompressed: uncompressed::UncompressedSender, uncompressed::UncompressedReceiver;
}

#[cfg(feature = "coap")]
impl<'m> Decompressor<'m> {
    /// Sets the provisioned bases of profile 0x0181, which must be those of the compressor.
    pub fn with_bases(mut self, bases: Slots<'m, coap::Base>) -> Self {
        self.shared.coap.bases = bases;
        self
    }
}

rooms! {
    #[cfg(feature = "rfc3095")]
    /// Sets the number of blocks for extension headers. Default: 8 for each context, at most 256.
    pool, blocks: rfc3095::ExtensionBlock;
    #[cfg(feature = "coap")]
    /// Sets the number of templates of CoAP messages. Default: 16 for each context, 4 where these are more
    /// than 1,024.
    coap, templates: coap::Template;
    #[cfg(feature = "tcp")]
    /// Sets the number of flows of profile 0x0006. Default: one for each context.
    rooms, tcp_flows: rfc6846::TcpRoom;
    #[cfg(feature = "v2")]
    /// Sets the number of flows of the profiles of RFC 5225. Default: one for each context.
    v2_rooms, v2_flows: rfc5225::V2Room;
}

#[cfg(feature = "coap")]
impl<'m> Compressor<'m> {
    /// Sets the provisioned bases of profile 0x0181, of which at most 256 are used. They are a parameter of the
    /// channel: the decompressor must have the same, in the same order.
    pub fn with_bases(mut self, bases: Slots<'m, coap::Base>) -> Self {
        self.shared.coap.bases = bases;
        self
    }

    /// Iterates over the templates that the contexts of profile 0x0181 have learned, as bases for similar flows,
    /// by CID.
    pub fn learned_bases(&self) -> impl Iterator<Item = coap::Base> + '_ {
        let contexts =
            self.flows.places().filter_map(|(_, place)| coap::compress::CoapSenderContext::of(place));
        contexts.map(|context| context.learned(&self.shared.coap))
    }
}
