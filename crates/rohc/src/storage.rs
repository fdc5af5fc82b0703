//! Memory of both ends with sizes fixed at start: lent by the caller, or owned with the feature `alloc`.
//!
//! An end has a place for each context, and for its profiles the rooms that they declare in `profile.rs`.
//! Sizes are constants of a [`Storage`] and its [`Rooms`], or [`Sizes`] at run time.

use core::ops::{Deref, DerefMut};

#[cfg(feature = "alloc")]
use alloc::{vec, vec::Vec};

use crate::channel::Channel;
use crate::compressor::{CompressorContext, FlowLink};
use crate::decompressor::DecompressorContext;
use crate::id::ProfileId;
#[cfg(feature = "rfc3095")]
pub use crate::profile::ExtensionBlock;
pub(crate) use crate::profile::SharedMemory;
#[cfg(feature = "tcp")]
pub use crate::profile::TcpRoom;
#[cfg(feature = "coap")]
pub use crate::profile::Template;
#[cfg(feature = "v2")]
pub use crate::profile::V2Room;
pub use crate::profile::{DefaultRooms, RoomMemory, Sizes};

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

impl<'m, T, const N: usize> From<&'m mut [T; N]> for Slots<'m, T> {
    fn from(places: &'m mut [T; N]) -> Self {
        Self::Lent(places)
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

/// Element of the memory that a profile has beside its contexts.
pub(crate) trait Room: Copy + 'static {
    /// Room without content.
    const EMPTY: Self;
    /// Profiles that use it.
    const PROFILES: &'static [ProfileId];
    /// Number for each context in [`DefaultRooms`].
    const PER_CONTEXT: usize = 1;
    /// Memory that the contexts of an end share.
    type Shared<'m>;

    /// Default number for a channel of `contexts` contexts with one of the profiles.
    fn count(contexts: usize) -> usize {
        contexts
    }

    /// Creates the memory that the contexts of an end share.
    fn share(rooms: Slots<'_, Self>) -> Self::Shared<'_>;
}

/// Memory of a profile beside its contexts, at one end.
pub(crate) type Shared<'m, R> = <R as SharedRoom>::Memory<'m>;

/// Kind of the memory that a profile has beside its contexts: its [`Room`], or `()` for none.
pub(crate) trait SharedRoom {
    /// What the contexts of an end share.
    type Memory<'m>;

    /// Returns the part of this profile.
    fn of<'a, 'm>(all: &'a SharedMemory<'m>) -> &'a Self::Memory<'m>;

    /// Returns the part of this profile for changes.
    fn of_mut<'a, 'm>(all: &'a mut SharedMemory<'m>) -> &'a mut Self::Memory<'m>;
}

/// Declares the rooms of profiles. A line has the name of what contexts share, of the number of rooms, and of
/// the room.
macro_rules! rooms {
    ($(
        #[cfg(feature = $feature:literal)]
        $(#[$doc:meta])+
        $shared:ident, $count:ident: $module:ident::$room:ident;
    )+) => {
        $(#[cfg(feature = $feature)] pub use $module::$room;)+

        /// Sizes of the memory of an end: [`Channel::sizes`], changed by name.
        ///
        /// ```
        /// use thinair_rohc::{Channel, CidSpace, CompressorMemory, ProfileSet};
        ///
        /// let channel = Channel::new(CidSpace::Small, 15, ProfileSet::v1())?;
        /// let memory = CompressorMemory::owned(channel.sizes().blocks(4));
        /// # Ok::<(), thinair_rohc::ChannelError>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Sizes {
            pub(crate) contexts: usize,
            pub(crate) unit: usize,
            $($count: usize,)+
        }

        impl Sizes {
            /// Default sizes for a channel.
            pub(crate) fn of(channel: &Channel) -> Self {
                Self {
                    contexts: channel.contexts(),
                    unit: channel.mrru(),
                    $($count: {
                        #[cfg(feature = $feature)]
                        {
                            let has_one = <$room as Room>::PROFILES.iter().any(|profile| channel.profiles().has(*profile));
                            if has_one { <$room as Room>::count(channel.contexts()) } else { 0 }
                        }
                        #[cfg(not(feature = $feature))]
                        {
                            0
                        }
                    },)+
                }
            }

            $($(#[$doc])+
            pub const fn $count(self, $count: usize) -> Self {
                Self { $count, ..self }
            })+
        }

        /// Rooms of the profiles at one end.
        #[derive(Debug)]
        pub struct RoomMemory<'m> {
            $(#[cfg(feature = $feature)] $count: Slots<'m, $room>,)+
            none: PhantomData<&'m ()>,
        }

        impl<'m> RoomMemory<'m> {
            pub(crate) fn none() -> Self {
                Self { $(#[cfg(feature = $feature)] $count: Slots::Lent(&mut []),)+ none: PhantomData }
            }

            pub(crate) fn of(sizes: &Sizes, source: &mut impl Places<'m>) -> Self {
                let _ = (sizes, &source);
                Self {
                    $(#[cfg(feature = $feature)] $count: source.places(<$room as Room>::EMPTY, sizes.$count),)+
                    none: PhantomData,
                }
            }

            pub(crate) fn octets(&self) -> usize {
                0 $(+ { #[cfg(feature = $feature)] { self.$count.octets() } #[cfg(not(feature = $feature))] { 0 } })+
            }
        }

        /// Memory that the contexts of a compressor or decompressor share.
        #[derive(Debug)]
        pub(crate) struct SharedMemory<'m> {
            $(#[cfg(feature = $feature)] pub(crate) $shared: <$room as Room>::Shared<'m>,)+
            pub(crate) none: PhantomData<&'m ()>,
        }

        $(#[cfg(feature = $feature)] impl SharedRoom for $room {
            type Memory<'m> = <$room as Room>::Shared<'m>;

            fn of<'a, 'm>(all: &'a SharedMemory<'m>) -> &'a Self::Memory<'m> {
                &all.$shared
            }

            #[inline]
            fn of_mut<'a, 'm>(all: &'a mut SharedMemory<'m>) -> &'a mut Self::Memory<'m> {
                &mut all.$shared
            }
        })+

        impl SharedRoom for () {
            type Memory<'m> = PhantomData<&'m ()>;

            fn of<'a, 'm>(all: &'a SharedMemory<'m>) -> &'a Self::Memory<'m> {
                &all.none
            }

            #[inline]
            fn of_mut<'a, 'm>(all: &'a mut SharedMemory<'m>) -> &'a mut Self::Memory<'m> {
                &mut all.none
            }
        }

        impl<'m> From<RoomMemory<'m>> for SharedMemory<'m> {
            fn from(memory: RoomMemory<'m>) -> Self {
                Self {
                    $(#[cfg(feature = $feature)] $shared: <$room as Room>::share(memory.$count),)+
                    none: memory.none,
                }
            }
        }

        /// Rooms for `CONTEXTS` flows of each profile in the build.
        #[derive(Debug)]
        pub struct DefaultRooms<const CONTEXTS: usize> {
            $(#[cfg(feature = $feature)] $count: [[$room; <$room as Room>::PER_CONTEXT]; CONTEXTS],)+
        }

        impl<const C: usize> Rooms for DefaultRooms<C> {
            const EMPTY: Self = Self {
                $(#[cfg(feature = $feature)] $count: [[<$room as Room>::EMPTY; <$room as Room>::PER_CONTEXT]; C],)+
            };

            fn lend<'m>(&'m mut self, memory: &mut RoomMemory<'m>) {
                let _ = memory;
                $(#[cfg(feature = $feature)] { memory.$count = Slots::Lent(self.$count.as_flattened_mut()); })+
            }
        }

        $(#[cfg(feature = $feature)] impl<const N: usize> Rooms for [$room; N] {
            const EMPTY: Self = [<$room as Room>::EMPTY; N];

            fn lend<'m>(&'m mut self, memory: &mut RoomMemory<'m>) {
                memory.$count = Slots::from(self);
            }
        })+
    };
}
pub(crate) use rooms;

impl Channel {
    /// Default sizes of the memory of an end.
    pub fn sizes(&self) -> Sizes {
        Sizes::of(self)
    }
}

impl From<&Channel> for Sizes {
    fn from(channel: &Channel) -> Self {
        channel.sizes()
    }
}

/// Rooms of profiles at one end, of constant number: [`DefaultRooms`], an array of rooms, or a tuple of
/// arrays. A profile whose rooms are left out has none.
pub trait Rooms {
    /// Rooms without content.
    const EMPTY: Self;

    /// Lends all rooms to an end.
    fn lend<'m>(&'m mut self, memory: &mut RoomMemory<'m>);
}

/// Implements [`Rooms`] for tuples.
macro_rules! tuples {
    ($(($($rooms:ident $at:tt)*))+) => {
        $(impl<$($rooms: Rooms),*> Rooms for ($($rooms,)*) {
            const EMPTY: Self = ($($rooms::EMPTY,)*);

            fn lend<'m>(&'m mut self, memory: &mut RoomMemory<'m>) {
                let _ = &memory;
                $(self.$at.lend(memory);)*
            }
        })+
    };
}

tuples! { () (A 0 B 1) (A 0 B 1 C 2) (A 0 B 1 C 2 D 3) }

/// Memory of a compressor for `CONTEXTS` flows, with constant sizes.
///
/// [`new`](Self::new) has the rooms that the profiles of the build need for these flows.
/// [`sized`](Self::sized) has those of `R`: arrays of [`ExtensionBlock`] (one or more for each flow with
/// extension headers), [`Template`] (CoAP messages of one kind; recommended: four for each flow, which takes
/// at most 16), [`TcpRoom`] (flows of profile 0x0006) or [`V2Room`] (flows of RFC 5225). A flow for which
/// there is no room uses another profile.
///
/// ```
/// use thinair_rohc::storage::Template;
/// use thinair_rohc::{Channel, CidSpace, Compressor, CompressorConfig, CompressorStorage, ProfileSet};
///
/// let channel = Channel::new(CidSpace::Small, 3, ProfileSet::default())?;
/// let mut storage = CompressorStorage::<4>::new();
/// let mut compressor = Compressor::new(CompressorConfig::new(channel), &mut storage);
/// // For CoAP alone.
/// let mut storage = CompressorStorage::<4, [Template; 16]>::sized();
/// let mut compressor = Compressor::new(CompressorConfig::new(channel), &mut storage);
/// # Ok::<(), thinair_rohc::ChannelError>(())
/// ```
#[derive(Debug)]
pub struct CompressorStorage<const CONTEXTS: usize, R = DefaultRooms<CONTEXTS>> {
    contexts: [CompressorContext; CONTEXTS],
    links: [FlowLink; CONTEXTS],
    buckets: [[u16; 2]; CONTEXTS],
    rooms: R,
}

impl<const C: usize, R: Rooms> CompressorStorage<C, R> {
    /// Memory without a flow, with rooms of its own.
    pub const fn sized() -> Self {
        Self {
            contexts: [CompressorContext::EMPTY; C],
            links: [FlowLink::EMPTY; C],
            buckets: [[0; 2]; C],
            rooms: R::EMPTY,
        }
    }
}

/// Memory of a decompressor for `CONTEXTS` flows, with constant sizes: those of [`CompressorStorage`].
#[derive(Debug)]
pub struct DecompressorStorage<const CONTEXTS: usize, R = DefaultRooms<CONTEXTS>> {
    contexts: [DecompressorContext; CONTEXTS],
    rooms: R,
}

impl<const C: usize, R: Rooms> DecompressorStorage<C, R> {
    /// Memory without a context, with rooms of its own.
    pub const fn sized() -> Self {
        Self { contexts: [DecompressorContext::EMPTY; C], rooms: R::EMPTY }
    }
}

/// Memory of both ends of a device with constant sizes: those of [`CompressorStorage`] for either end.
#[derive(Debug)]
pub struct Storage<const CONTEXTS: usize, R = DefaultRooms<CONTEXTS>> {
    /// Memory of the compressor.
    pub compressor: CompressorStorage<CONTEXTS, R>,
    /// Memory of the decompressor.
    pub decompressor: DecompressorStorage<CONTEXTS, R>,
}

impl<const C: usize, R: Rooms> Storage<C, R> {
    /// Memory without a flow, with rooms of its own.
    pub const fn sized() -> Self {
        Self { compressor: CompressorStorage::sized(), decompressor: DecompressorStorage::sized() }
    }
}

/// Constructors of memory with default rooms.
macro_rules! new_storage {
    ($($storage:ident)+) => {
        $(impl<const C: usize> $storage<C> {
            /// Memory without a flow, with [`DefaultRooms`].
            pub const fn new() -> Self {
                Self::sized()
            }
        }

        impl<const C: usize, R: Rooms> Default for $storage<C, R> {
            fn default() -> Self {
                Self::sized()
            }
        })+
    };
}

new_storage! { CompressorStorage DecompressorStorage Storage }

/// Memory of a compressor: a lent [`CompressorStorage`], or [`owned`](Self::owned) memory.
#[derive(Debug)]
pub struct CompressorMemory<'m> {
    pub(crate) contexts: Slots<'m, CompressorContext>,
    pub(crate) links: Slots<'m, FlowLink>,
    pub(crate) buckets: Slots<'m, u16>,
    rooms: RoomMemory<'m>,
}

impl<'m, const C: usize, R: Rooms> From<&'m mut CompressorStorage<C, R>> for CompressorMemory<'m> {
    fn from(storage: &'m mut CompressorStorage<C, R>) -> Self {
        let mut rooms = RoomMemory::none();
        storage.rooms.lend(&mut rooms);
        Self {
            contexts: Slots::Lent(&mut storage.contexts),
            links: Slots::Lent(&mut storage.links),
            buckets: Slots::Lent(storage.buckets.as_flattened_mut()),
            rooms,
        }
    }
}

impl<'m> CompressorMemory<'m> {
    /// Memory for a channel or of given sizes from a source.
    pub fn of(sizes: impl Into<Sizes>, source: &mut impl Places<'m>) -> Self {
        let sizes = sizes.into();
        Self {
            contexts: source.places(CompressorContext::EMPTY, sizes.contexts),
            links: source.places(FlowLink::EMPTY, sizes.contexts),
            buckets: source.places(0, (sizes.contexts * 2).next_power_of_two()),
            rooms: RoomMemory::of(&sizes, source),
        }
    }

    /// Creates memory for a channel or of given sizes.
    #[cfg(feature = "alloc")]
    pub fn owned(sizes: impl Into<Sizes>) -> Self {
        Self::of(sizes, &mut Heap)
    }

    /// Octets of all of it.
    pub fn octets(&self) -> usize {
        self.contexts.octets() + self.links.octets() + self.buckets.octets() + self.rooms.octets()
    }

    /// Splits it into contexts, links and buckets, and the memory that contexts share.
    #[allow(clippy::type_complexity)]
    pub(crate) fn split(
        self,
    ) -> (Slots<'m, CompressorContext>, Slots<'m, FlowLink>, Slots<'m, u16>, SharedMemory<'m>) {
        (self.contexts, self.links, self.buckets, self.rooms.into())
    }
}

/// Memory of a decompressor: a lent [`DecompressorStorage`], or [`owned`](Self::owned) memory.
#[derive(Debug)]
pub struct DecompressorMemory<'m> {
    pub(crate) contexts: Slots<'m, DecompressorContext>,
    pub(crate) unit: Slots<'m, u8>,
    rooms: RoomMemory<'m>,
}

impl<'m, const C: usize, R: Rooms> From<&'m mut DecompressorStorage<C, R>> for DecompressorMemory<'m> {
    fn from(storage: &'m mut DecompressorStorage<C, R>) -> Self {
        let mut rooms = RoomMemory::none();
        storage.rooms.lend(&mut rooms);
        Self { contexts: Slots::Lent(&mut storage.contexts), unit: Slots::Lent(&mut []), rooms }
    }
}

impl<'m> DecompressorMemory<'m> {
    /// Memory for a channel or of given sizes from a source.
    pub fn of(sizes: impl Into<Sizes>, source: &mut impl Places<'m>) -> Self {
        let sizes = sizes.into();
        Self {
            contexts: source.places(DecompressorContext::EMPTY, sizes.contexts),
            unit: source.places(0, sizes.unit),
            rooms: RoomMemory::of(&sizes, source),
        }
    }

    /// Creates memory for a channel or of given sizes.
    #[cfg(feature = "alloc")]
    pub fn owned(sizes: impl Into<Sizes>) -> Self {
        Self::of(sizes, &mut Heap)
    }

    /// Sets the memory of a reconstructed unit ([`Channel::mrru`]), which a lent storage does not have.
    pub fn with_unit(self, unit: impl Into<Slots<'m, u8>>) -> Self {
        Self { unit: unit.into(), ..self }
    }

    /// Octets of all of it.
    pub fn octets(&self) -> usize {
        self.contexts.octets() + self.unit.octets() + self.rooms.octets()
    }

    /// Splits it into contexts, the reconstructed unit, and the memory that contexts share.
    pub(crate) fn split(self) -> (Slots<'m, DecompressorContext>, Slots<'m, u8>, SharedMemory<'m>) {
        (self.contexts, self.unit, self.rooms.into())
    }
}
