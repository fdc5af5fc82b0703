//! A handle with all that it needs in one block of memory, lent by the caller or taken from the allocator once.

#![allow(unsafe_code, reason = "places of many types are carved from one block of octets")]

use core::mem::{align_of, size_of};
use core::ptr::NonNull;

#[cfg(feature = "coap")]
use thinair_rohc::exchange::Exchanges;
use thinair_rohc::storage::{Places, Slots};
use thinair_rohc::{Compressor, CompressorMemory, Decompressor, DecompressorMemory, Endpoint};

use crate::abi::{Error, Statistics};
use crate::config::Checked;

/// Alignment of a block, in octets.
pub(crate) const ALIGNMENT: usize = 16;

/// A `thinair_rohc` of C. The places of its contexts lie behind it, in the same block.
#[derive(Debug)]
pub struct Handle {
    pub(crate) endpoint: Endpoint<'static>,
    pub(crate) config: Checked,
    pub(crate) statistics: Statistics,
    /// The block, which begins with the handle.
    block: NonNull<u8>,
    /// Octets that the allocator has given; 0 if the block is lent.
    #[cfg_attr(not(feature = "std"), allow(dead_code))]
    allocated: usize,
}

impl Handle {
    /// Octets of a handle with that configuration, from an aligned address on.
    pub(crate) fn size(config: &Checked) -> usize {
        let mut carver = Carver { block: None, at: size_of::<Self>() };
        let _ = endpoint(config, &mut carver);
        carver.at
    }

    /// Makes a handle at the start of a block, for as long as the block is lent.
    ///
    /// # Safety
    ///
    /// `block` is aligned to [`ALIGNMENT`], [`size`](Self::size) octets from it on can be written, and nobody else uses them until
    /// the handle is destroyed.
    pub(crate) unsafe fn place(config: Checked, block: NonNull<u8>, allocated: usize) -> NonNull<Self> {
        let mut carver = Carver { block: Some(block), at: size_of::<Self>() };
        let handle = Self {
            endpoint: endpoint(&config, &mut carver),
            config,
            statistics: Statistics::ZERO,
            block,
            allocated,
        };
        let place = block.cast::<Self>();
        // SAFETY: the block is aligned for a handle and has room for it, before the first place that was carved.
        unsafe { place.write(handle) };
        place
    }

    /// Makes a handle in a block of the allocator.
    #[cfg(feature = "std")]
    pub(crate) fn allocate(config: Checked) -> Result<NonNull<Self>, Error> {
        let size = Self::size(&config);
        let layout = std::alloc::Layout::from_size_align(size, ALIGNMENT).map_err(|_| Error::MEMORY)?;
        // SAFETY: the size is not zero, for a handle has one.
        let block = NonNull::new(unsafe { std::alloc::alloc(layout) }).ok_or(Error::MEMORY)?;
        // SAFETY: the allocator has just given the block, aligned and of that size.
        Ok(unsafe { Self::place(config, block, size) })
    }

    #[cfg(not(feature = "std"))]
    pub(crate) fn allocate(_: Checked) -> Result<NonNull<Self>, Error> {
        Err(Error::MEMORY)
    }

    /// Ends a handle, and gives its block back if it was allocated.
    ///
    /// # Safety
    ///
    /// The handle comes from [`place`](Self::place) or [`allocate`](Self::allocate), and is not used any more.
    pub(crate) unsafe fn destroy(handle: NonNull<Self>) {
        #[cfg(feature = "std")]
        {
            // SAFETY: as the caller promises, the handle is there.
            let (block, allocated) = unsafe { (handle.as_ref().block, handle.as_ref().allocated) };
            // Nothing in a handle has to be dropped: its memory is all lent.
            if allocated > 0 {
                // SAFETY: `allocate` has this block from the allocator, in that layout.
                unsafe {
                    let layout = std::alloc::Layout::from_size_align_unchecked(allocated, ALIGNMENT);
                    std::alloc::dealloc(block.as_ptr(), layout);
                }
            }
        }
        let _ = handle;
    }

    /// Forgets every context: IR and NC, U-mode.
    pub(crate) fn reset(&mut self) {
        // The places of the endpoint before are given up first.
        self.endpoint = endpoint(&self.config, &mut Carver { block: None, at: 0 });
        let mut carver = Carver { block: Some(self.block), at: size_of::<Self>() };
        self.endpoint = endpoint(&self.config, &mut carver);
    }
}

impl Statistics {
    const ZERO: Self = Self {
        compressed_packets: 0,
        compressed_octets_in: 0,
        compressed_octets_out: 0,
        compressed_header_in: 0,
        compressed_header_out: 0,
        compress_errors: 0,
        decompressed_packets: 0,
        decompressed_octets_in: 0,
        decompressed_octets_out: 0,
        decompress_errors: 0,
        feedback_in: 0,
        feedback_in_refused: 0,
        feedback_out: 0,
        displaced_flows: 0,
    };
}

/// Both ends, in memory of a source. An end that the handle does not have has no context.
fn endpoint(config: &Checked, source: &mut Carver) -> Endpoint<'static> {
    let channel = &config.compressor.channel;
    let sizes = channel.sizes().blocks(config.extension_flows);
    let compressor = match config.has_compressor {
        true => CompressorMemory::of(sizes, source),
        false => CompressorMemory::of(sizes, &mut Nothing),
    };
    let decompressor = match config.has_decompressor {
        true => DecompressorMemory::of(sizes, source),
        false => DecompressorMemory::of(sizes, &mut Nothing),
    };
    let endpoint = Endpoint::new(
        Compressor::new(config.compressor, compressor),
        Decompressor::new(config.decompressor, decompressor),
    );
    #[cfg(feature = "coap")]
    let endpoint = if config.has_compressor && config.has_decompressor {
        let sent = Exchanges::of(channel, source);
        endpoint.with_exchanges(sent, Exchanges::of(channel, source))
    } else {
        endpoint
    };
    endpoint
}

/// Source without memory.
struct Nothing;

impl Places<'static> for Nothing {
    fn places<T: Copy + 'static>(&mut self, _: T, _: usize) -> Slots<'static, T> {
        Slots::Lent(&mut [])
    }
}

/// Takes places from a block one behind the other; without a block it only counts octets.
struct Carver {
    block: Option<NonNull<u8>>,
    /// Octets that are taken.
    at: usize,
}

impl Places<'static> for Carver {
    fn places<T: Copy + 'static>(&mut self, empty: T, count: usize) -> Slots<'static, T> {
        const { assert!(align_of::<T>() <= ALIGNMENT) };
        let start = self.at.next_multiple_of(align_of::<T>());
        self.at = start + count * size_of::<T>();
        let Some(block) = self.block else { return Slots::Lent(&mut []) };
        // SAFETY: whoever gives a block has counted its octets with the same calls, so that these places are within it. They
        // begin behind all that were taken before, and `start` is a multiple of their alignment, as the block is.
        let places = unsafe {
            let first = block.add(start).cast::<T>();
            for i in 0..count {
                first.add(i).write(empty);
            }
            core::slice::from_raw_parts_mut(first.as_ptr(), count)
        };
        Slots::Lent(places)
    }
}
