//! Handles, the objects behind pointers of C: one call at a time. A callback that calls a function with the handle of the call that it is in
//! gets an error.

#![allow(unsafe_code, reason = "pointers of C become references here")]

use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};

/// A side, and whether a call is in it.
#[derive(Debug)]
pub struct Handle<T> {
    is_in_call: Cell<bool>,
    side: UnsafeCell<T>,
}

impl<T> Handle<T> {
    /// Returns a pointer for C.
    pub(crate) fn give(side: T) -> *mut Self {
        Box::into_raw(Box::new(Self { is_in_call: Cell::new(false), side: UnsafeCell::new(side) }))
    }

    /// Frees what [`give`](Self::give) has returned. Within a call, nothing happens.
    ///
    /// # Safety
    ///
    /// `this` is null or such a pointer, which is not used any more.
    pub(crate) unsafe fn free(this: *mut Self) {
        // SAFETY: as the caller promises.
        if unsafe { Self::enter(this) }.is_some() {
            // SAFETY: as the caller promises, and no call is in it.
            drop(unsafe { Box::from_raw(this) });
        }
    }

    /// Begins a call. `None`: the handle is null, or a call is in it.
    ///
    /// # Safety
    ///
    /// `this` is null or a handle, which is used by one thread at a time.
    #[inline(always)]
    pub(crate) unsafe fn enter<'h>(this: *mut Self) -> Option<Call<'h, T>> {
        // SAFETY: as the caller promises; others have only shared references to it.
        let handle = unsafe { this.as_ref() }?;
        (!handle.is_in_call.replace(true)).then(|| Call(handle))
    }
}

/// A call of a function with a handle.
pub(crate) struct Call<'h, T>(&'h Handle<T>);

impl<T> Deref for Call<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this call is the only one.
        unsafe { &*self.0.side.get() }
    }
}

impl<T> DerefMut for Call<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this call is the only one.
        unsafe { &mut *self.0.side.get() }
    }
}

impl<T> Drop for Call<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.is_in_call.set(false);
    }
}
