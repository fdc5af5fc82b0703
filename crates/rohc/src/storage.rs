//! Memory of both ends with sizes fixed at start: lent by the caller, or owned with the feature `alloc`.

use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

#[cfg(feature = "alloc")]
use alloc::{vec, vec::Vec};

use crate::channel::Channel;
use crate::compressor::{CompressorContext, FlowLink};
use crate::decompressor::DecompressorContext;
#[cfg(feature = "coap")]
use crate::exchange::CoapExchange;
#[cfg(any(feature = "rfc3095", feature = "v2"))]
use crate::field::timer::FarClock;
#[cfg(any(feature = "tcp", feature = "v2"))]
use crate::id::ProfileId;
#[cfg(feature = "coap")]
use crate::profile::coap::{Base, Template, Templates, templates_for};
#[cfg(feature = "rfc3095")]
use crate::profile::rfc3095::table::{ExtensionBlock, Pool};
#[cfg(feature = "v2")]
use crate::profile::rfc5225::V2Room;
#[cfg(feature = "tcp")]
use crate::profile::rfc6846::TcpRoom;

/// Octets of a block for extension headers.
pub(crate) const BLOCK_OCTETS: usize = {
    #[cfg(feature = "rfc3095")]
    let octets = size_of::<ExtensionBlock>();
    #[cfg(not(feature = "rfc3095"))]
    let octets = 0;
    octets
};

/// A fixed number of places in memory.
#[derive(Debug)]
pub enum Slots<'m, T> {
    /// Lent by the caller.
    Lent(&'m mut [T]),
    /// Owned.
    #[cfg(feature = "alloc")]
    Owned(Vec<T>),
}

impl<T> Slots<'_, T> {
    /// Octets of all places.
    pub fn octets(&self) -> usize {
        size_of_val::<[T]>(self)
    }
}

#[cfg(feature = "alloc")]
impl<T> Slots<'_, T> {
    /// Creates owned places.
    pub fn owned(places: Vec<T>) -> Self {
        Self::Owned(places)
    }
}

/// Source of memory for places whose number is known only at run time.
pub trait Places<'m> {
    /// `count` places, each of which holds `empty`.
    fn places<T: Copy + 'static>(&mut self, empty: T, count: usize) -> Slots<'m, T>;
}

/// The allocator as a source of memory.
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug)]
pub struct Heap;

#[cfg(feature = "alloc")]
impl<'m> Places<'m> for Heap {
    fn places<T: Copy + 'static>(&mut self, empty: T, count: usize) -> Slots<'m, T> {
        Slots::owned(vec![empty; count])
    }
}

impl<T> Deref for Slots<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Lent(places) => places,
            #[cfg(feature = "alloc")]
            Self::Owned(places) => places,
        }
    }
}

impl<T> DerefMut for Slots<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Lent(places) => places,
            #[cfg(feature = "alloc")]
            Self::Owned(places) => places,
        }
    }
}

/// Pools from which contexts allocate: blocks for extension headers, templates of CoAP messages, and rooms for flows of profile
/// 0x0006.
#[derive(Debug)]
struct PoolStorage<const BLOCKS: usize, const TEMPLATES: usize, const ROOMS: usize, const V2: usize> {
    #[cfg(feature = "rfc3095")]
    blocks: [ExtensionBlock; BLOCKS],
    #[cfg(feature = "coap")]
    templates: [Template; TEMPLATES],
    #[cfg(feature = "tcp")]
    rooms: [TcpRoom; ROOMS],
    #[cfg(feature = "v2")]
    v2_rooms: [V2Room; V2],
}

impl<const BLOCKS: usize, const TEMPLATES: usize, const ROOMS: usize, const V2: usize>
    PoolStorage<BLOCKS, TEMPLATES, ROOMS, V2>
{
    const EMPTY: Self = Self {
        #[cfg(feature = "rfc3095")]
        blocks: [ExtensionBlock::EMPTY; BLOCKS],
        #[cfg(feature = "coap")]
        templates: [Template::EMPTY; TEMPLATES],
        #[cfg(feature = "tcp")]
        rooms: [TcpRoom::EMPTY; ROOMS],
        #[cfg(feature = "v2")]
        v2_rooms: [V2Room::EMPTY; V2],
    };

    fn lend(&mut self) -> PoolMemory<'_> {
        PoolMemory {
            #[cfg(feature = "rfc3095")]
            blocks: Slots::Lent(&mut self.blocks),
            #[cfg(feature = "coap")]
            templates: Slots::Lent(&mut self.templates),
            #[cfg(feature = "tcp")]
            rooms: Slots::Lent(&mut self.rooms),
            #[cfg(feature = "v2")]
            v2_rooms: Slots::Lent(&mut self.v2_rooms),
            none: PhantomData,
        }
    }
}

/// [`PoolStorage`] that is lent or owned.
#[derive(Debug)]
struct PoolMemory<'m> {
    #[cfg(feature = "rfc3095")]
    blocks: Slots<'m, ExtensionBlock>,
    #[cfg(feature = "coap")]
    templates: Slots<'m, Template>,
    #[cfg(feature = "tcp")]
    rooms: Slots<'m, TcpRoom>,
    #[cfg(feature = "v2")]
    v2_rooms: Slots<'m, V2Room>,
    none: PhantomData<&'m ()>,
}

impl PoolMemory<'_> {
    fn octets(&self) -> usize {
        let octets = 0;
        #[cfg(feature = "rfc3095")]
        let octets = octets + self.blocks.octets();
        #[cfg(feature = "coap")]
        let octets = octets + self.templates.octets();
        #[cfg(feature = "tcp")]
        let octets = octets + self.rooms.octets();
        #[cfg(feature = "v2")]
        let octets = octets + self.v2_rooms.octets();
        octets
    }
}

impl<'m> PoolMemory<'m> {
    #[cfg_attr(not(all(feature = "rfc3095", feature = "coap", feature = "tcp")), allow(unused_variables))]
    fn of(channel: &Channel, blocks: usize, source: &mut impl Places<'m>) -> Self {
        Self {
            #[cfg(feature = "rfc3095")]
            blocks: source.places(ExtensionBlock::EMPTY, blocks),
            #[cfg(feature = "coap")]
            templates: source.places(Template::EMPTY, templates_for(channel)),
            #[cfg(feature = "tcp")]
            rooms: source.places(TcpRoom::EMPTY, rooms_for(channel, &[ProfileId::Tcp])),
            #[cfg(feature = "v2")]
            v2_rooms: source.places(V2Room::EMPTY, rooms_for(channel, &V2Room::PROFILES)),
            none: PhantomData,
        }
    }
}

/// Number of rooms for flows of some profiles: one for each context if the channel has one of them.
#[cfg(any(feature = "tcp", feature = "v2"))]
fn rooms_for(channel: &Channel, profiles: &[ProfileId]) -> usize {
    let has_one = profiles.iter().any(|profile| channel.profiles().has(*profile));
    if has_one { channel.contexts() } else { 0 }
}

/// Memory that the contexts of a compressor or decompressor share, separate for each profile.
#[derive(Debug)]
pub(crate) struct SharedMemory<'m> {
    #[cfg(feature = "rfc3095")]
    pub(crate) pool: Pool<'m>,
    #[cfg(any(feature = "rfc3095", feature = "v2"))]
    pub(crate) clock: FarClock,
    #[cfg(feature = "coap")]
    pub(crate) templates: Templates<'m>,
    #[cfg(feature = "coap")]
    pub(crate) bases: Slots<'m, Base>,
    /// Number of flows since the start that count as CoAP by a parse alone.
    #[cfg(feature = "coap")]
    pub(crate) guessed: u32,
    #[cfg(feature = "tcp")]
    pub(crate) rooms: Slots<'m, TcpRoom>,
    #[cfg(feature = "v2")]
    pub(crate) v2_rooms: Slots<'m, V2Room>,
    none: PhantomData<&'m ()>,
}

impl<'m> SharedMemory<'m> {
    #[cfg_attr(
        not(any(feature = "rfc3095", feature = "coap", feature = "tcp", feature = "v2")),
        allow(unused_variables)
    )]
    fn new(memory: PoolMemory<'m>) -> Self {
        Self {
            #[cfg(feature = "rfc3095")]
            pool: Pool::new(memory.blocks),
            #[cfg(any(feature = "rfc3095", feature = "v2"))]
            clock: FarClock::default(),
            #[cfg(feature = "coap")]
            templates: Templates::new(memory.templates),
            #[cfg(feature = "coap")]
            bases: Slots::Lent(&mut []),
            #[cfg(feature = "coap")]
            guessed: 0,
            #[cfg(feature = "tcp")]
            rooms: memory.rooms,
            #[cfg(feature = "v2")]
            v2_rooms: memory.v2_rooms,
            none: PhantomData,
        }
    }
}

/// Memory of a compressor with constant sizes.
///
/// It has places for `CONTEXTS` flows, `BLOCKS` blocks for extension headers (one for each flow that has some), `TEMPLATES` kinds
/// of CoAP messages (recommended: four for each flow; a flow takes at most 16), for `TCP` flows of profile 0x0006, and for `V2` flows of RFC 5225: as many as
/// contexts, or none. A flow for which there is no room uses another profile.
///
/// ```
/// use thinair_rohc::{Channel, CidSpace, Compressor, CompressorConfig, CompressorStorage, ProfileSet};
///
/// let channel = Channel::new(CidSpace::Small, 3, ProfileSet::default())?;
/// let mut storage = CompressorStorage::<4, 4, 16>::new();
/// let mut compressor = Compressor::new(CompressorConfig::new(channel), &mut storage);
/// # Ok::<(), thinair_rohc::ChannelError>(())
/// ```
#[derive(Debug)]
pub struct CompressorStorage<
    const CONTEXTS: usize,
    const BLOCKS: usize = 0,
    const TEMPLATES: usize = 0,
    const TCP: usize = 0,
    const V2: usize = 0,
> {
    contexts: [CompressorContext; CONTEXTS],
    links: [FlowLink; CONTEXTS],
    buckets: [[u16; 2]; CONTEXTS],
    pools: PoolStorage<BLOCKS, TEMPLATES, TCP, V2>,
}

impl<const C: usize, const B: usize, const T: usize, const R: usize, const V: usize>
    CompressorStorage<C, B, T, R, V>
{
    /// Memory without a flow.
    pub const fn new() -> Self {
        Self {
            contexts: [CompressorContext::EMPTY; C],
            links: [FlowLink::EMPTY; C],
            buckets: [[0; 2]; C],
            pools: PoolStorage::EMPTY,
        }
    }
}

impl<const C: usize, const B: usize, const T: usize, const R: usize, const V: usize> Default
    for CompressorStorage<C, B, T, R, V>
{
    fn default() -> Self {
        Self::new()
    }
}

/// Memory of an end from the heap.
#[cfg(feature = "alloc")]
macro_rules! owned_memory {
    ($memory:ident) => {
        impl $memory<'static> {
            /// Sets the number of templates of CoAP messages, for all flows together.
            #[cfg(feature = "coap")]
            pub fn with_templates(mut self, templates: usize) -> Self {
                self.pools.templates = Slots::owned(vec![Template::EMPTY; templates]);
                self
            }

            /// Sets the number of flows of profile 0x0006.
            #[cfg(feature = "tcp")]
            pub fn with_tcp_flows(mut self, flows: usize) -> Self {
                self.pools.rooms = Slots::owned(vec![TcpRoom::EMPTY; flows]);
                self
            }

            /// The memory with room for so many flows of the profiles of RFC 5225.
            #[cfg(feature = "v2")]
            pub fn with_v2_flows(mut self, flows: usize) -> Self {
                self.pools.v2_rooms = Slots::owned(vec![V2Room::EMPTY; flows]);
                self
            }

            /// Creates memory for a channel, with `blocks` blocks for extension headers.
            pub fn owned(channel: &Channel, blocks: usize) -> Self {
                Self::of(channel, blocks, &mut Heap)
            }
        }
    };
}

#[cfg(feature = "alloc")]
owned_memory!(CompressorMemory);
#[cfg(feature = "alloc")]
owned_memory!(DecompressorMemory);

/// Memory of a compressor: a lent [`CompressorStorage`], or [`owned`](Self::owned) memory.
#[derive(Debug)]
pub struct CompressorMemory<'m> {
    pub(crate) contexts: Slots<'m, CompressorContext>,
    pub(crate) links: Slots<'m, FlowLink>,
    pub(crate) buckets: Slots<'m, u16>,
    pools: PoolMemory<'m>,
}

impl<'m, const C: usize, const B: usize, const T: usize, const R: usize, const V: usize>
    From<&'m mut CompressorStorage<C, B, T, R, V>> for CompressorMemory<'m>
{
    fn from(storage: &'m mut CompressorStorage<C, B, T, R, V>) -> Self {
        Self {
            contexts: Slots::Lent(&mut storage.contexts),
            links: Slots::Lent(&mut storage.links),
            buckets: Slots::Lent(storage.buckets.as_flattened_mut()),
            pools: storage.pools.lend(),
        }
    }
}

impl<'m> CompressorMemory<'m> {
    /// Memory for a channel from a source, with `blocks` blocks for extension headers.
    pub fn of(channel: &Channel, blocks: usize, source: &mut impl Places<'m>) -> Self {
        let contexts = channel.contexts();
        Self {
            contexts: source.places(CompressorContext::EMPTY, contexts),
            links: source.places(FlowLink::EMPTY, contexts),
            buckets: source.places(0, (contexts * 2).next_power_of_two()),
            pools: PoolMemory::of(channel, blocks, source),
        }
    }

    /// Octets of all of it.
    pub fn octets(&self) -> usize {
        self.contexts.octets() + self.links.octets() + self.buckets.octets() + self.pools.octets()
    }

    /// Splits it into contexts, links and buckets, and the memory that contexts share.
    #[allow(clippy::type_complexity)]
    pub(crate) fn split(
        self,
    ) -> ((Slots<'m, CompressorContext>, Slots<'m, FlowLink>, Slots<'m, u16>), SharedMemory<'m>) {
        ((self.contexts, self.links, self.buckets), SharedMemory::new(self.pools))
    }
}

/// Memory of a decompressor with constant sizes: those of [`CompressorStorage`], and `UNIT` octets for a reconstructed unit
/// ([`Channel::mrru`](crate::Channel::mrru); 0 without segments).
#[derive(Debug)]
pub struct DecompressorStorage<
    const CONTEXTS: usize,
    const BLOCKS: usize = 0,
    const TEMPLATES: usize = 0,
    const TCP: usize = 0,
    const UNIT: usize = 0,
    const V2: usize = 0,
> {
    contexts: [DecompressorContext; CONTEXTS],
    pools: PoolStorage<BLOCKS, TEMPLATES, TCP, V2>,
    unit: [u8; UNIT],
}

impl<const C: usize, const B: usize, const T: usize, const R: usize, const U: usize, const V: usize>
    DecompressorStorage<C, B, T, R, U, V>
{
    /// Memory without a context.
    pub const fn new() -> Self {
        Self { contexts: [DecompressorContext::EMPTY; C], pools: PoolStorage::EMPTY, unit: [0; U] }
    }
}

impl<const C: usize, const B: usize, const T: usize, const R: usize, const U: usize, const V: usize> Default
    for DecompressorStorage<C, B, T, R, U, V>
{
    fn default() -> Self {
        Self::new()
    }
}

/// Memory of a decompressor: a lent [`DecompressorStorage`], or [`owned`](Self::owned) memory.
#[derive(Debug)]
pub struct DecompressorMemory<'m> {
    pub(crate) contexts: Slots<'m, DecompressorContext>,
    pub(crate) unit: Slots<'m, u8>,
    pools: PoolMemory<'m>,
}

impl<'m, const C: usize, const B: usize, const T: usize, const R: usize, const U: usize, const V: usize>
    From<&'m mut DecompressorStorage<C, B, T, R, U, V>> for DecompressorMemory<'m>
{
    fn from(storage: &'m mut DecompressorStorage<C, B, T, R, U, V>) -> Self {
        Self {
            contexts: Slots::Lent(&mut storage.contexts),
            unit: Slots::Lent(&mut storage.unit),
            pools: storage.pools.lend(),
        }
    }
}

impl<'m> DecompressorMemory<'m> {
    /// Memory for a channel from a source, with `blocks` blocks for extension headers.
    pub fn of(channel: &Channel, blocks: usize, source: &mut impl Places<'m>) -> Self {
        Self {
            contexts: source.places(DecompressorContext::EMPTY, channel.contexts()),
            unit: source.places(0, channel.mrru()),
            pools: PoolMemory::of(channel, blocks, source),
        }
    }

    /// Octets of all of it.
    pub fn octets(&self) -> usize {
        self.contexts.octets() + self.unit.octets() + self.pools.octets()
    }

    /// Splits it into contexts, the reconstructed unit, and the memory that contexts share.
    pub(crate) fn split(self) -> (Slots<'m, DecompressorContext>, Slots<'m, u8>, SharedMemory<'m>) {
        (self.contexts, self.unit, SharedMemory::new(self.pools))
    }
}

/// Memory of both ends of a device with constant sizes: those of [`CompressorStorage`] for either end, and `EXCHANGES` CoAP
/// messages of each direction that responses can refer to, half of which may be lost. `EXCHANGES` is a power of two, and equal at
/// the other device.
#[derive(Debug)]
pub struct Storage<
    const CONTEXTS: usize,
    const BLOCKS: usize = 0,
    const TEMPLATES: usize = 0,
    const TCP: usize = 0,
    const UNIT: usize = 0,
    const EXCHANGES: usize = 0,
    const V2: usize = 0,
> {
    pub(crate) compressor: CompressorStorage<CONTEXTS, BLOCKS, TEMPLATES, TCP, V2>,
    pub(crate) decompressor: DecompressorStorage<CONTEXTS, BLOCKS, TEMPLATES, TCP, UNIT, V2>,
    #[cfg(feature = "coap")]
    pub(crate) exchanges: [[CoapExchange; EXCHANGES]; 2],
}

impl<
    const C: usize,
    const B: usize,
    const T: usize,
    const R: usize,
    const U: usize,
    const E: usize,
    const V: usize,
> Storage<C, B, T, R, U, E, V>
{
    /// Memory without a flow.
    pub const fn new() -> Self {
        Self {
            compressor: CompressorStorage::new(),
            decompressor: DecompressorStorage::new(),
            #[cfg(feature = "coap")]
            exchanges: [[CoapExchange::EMPTY; E]; 2],
        }
    }
}

impl<
    const C: usize,
    const B: usize,
    const T: usize,
    const R: usize,
    const U: usize,
    const E: usize,
    const V: usize,
> Default for Storage<C, B, T, R, U, E, V>
{
    fn default() -> Self {
        Self::new()
    }
}
