//! Memory that is sized at start: lent by the caller, or owned with the feature `alloc`.

use core::ops::{Deref, DerefMut};

#[cfg(feature = "alloc")]
use alloc::vec::Vec;

/// A fixed number of places.
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
    /// Places that are owned.
    pub fn owned(places: Vec<T>) -> Self {
        Self::Owned(places)
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
