//! A compressor or a decompressor, as functions of both name it.

#![allow(unsafe_code, reason = "pointers of C become references here")]

use std::ffi::{c_int, c_uint};

use thinair_rohc::{Channel, CidSpace, ProfileSet};

use crate::abi::{LARGE_CID, SMALL_CID, listed};
use crate::handle::Handle;
use crate::profiles::Profiles;

/// A channel of these parameters, without profiles.
pub(crate) fn channel(cid_type: c_uint, max_cid: u16) -> Option<Channel> {
    let cids = match cid_type {
        SMALL_CID => CidSpace::Small,
        LARGE_CID => CidSpace::Large,
        _ => return None,
    };
    Channel::new(cids, max_cid, ProfileSet::UNCOMPRESSED).ok()
}

/// The type of CIDs of a channel.
pub(crate) fn cid_type(channel: &Channel) -> c_uint {
    match channel.cids() {
        CidSpace::Small => SMALL_CID,
        CidSpace::Large => LARGE_CID,
    }
}

/// One of the two sides.
pub(crate) trait Side {
    /// Largest unit that is cut into segments, in octets; 0 if none is.
    fn mrru(&self) -> usize;

    /// Profiles that are on.
    fn profiles(&mut self) -> &mut Profiles;

    /// Hands the profiles that are on to the engine, if there is one.
    fn set_profiles(&mut self);

    /// Turns a profile on. False if that cannot be: segments and ROHCv2 exclude each other.
    fn enable(&mut self, profile: c_uint) -> bool {
        let is_second_version = profile >> 8 == 1;
        let done = !(is_second_version && self.mrru() > 0) && self.profiles().enable(profile);
        self.set_profiles();
        done
    }

    /// Turns a profile off.
    fn disable(&mut self, profile: c_uint) -> bool {
        let done = self.profiles().disable(profile);
        self.set_profiles();
        done
    }
}

/// Turns all profiles of a list on or off, as [`variadic`](crate::abi::variadic) hands it over. False if that fails for one of them.
///
/// # Safety
///
/// `side` is null or a handle, and lists are as for [`listed`].
pub(crate) unsafe extern "C" fn turn_all<S: Side, const ON: bool>(
    side: *mut Handle<S>,
    registers: *const u64,
    count: usize,
    stack: *const u64,
) -> bool {
    // SAFETY: the caller of the variadic function promises it.
    let (Some(mut side), numbers) =
        (unsafe { Handle::enter(side) }, unsafe { listed(registers, count, stack) })
    else {
        return false;
    };
    let mut turn =
        |number: c_int| if ON { side.enable(number as c_uint) } else { side.disable(number as c_uint) };
    numbers.fold(true, |all, number| all & turn(number))
}

/// Declares functions that set or read something of a side: false without one.
macro_rules! functions {
    ($side:ty: $($(#[$doc:meta])* $name:ident($this:ident $(, $argument:ident: $type:ty)*) $body:block)+) => {
        $($(#[$doc])*
        ///
        /// # Safety
        ///
        /// The first argument is null or a handle, and pointers are null or can be written.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(this: *mut $side $(, $argument: $type)*) -> bool {
            // SAFETY: as the caller promises.
            let Some(mut call) = (unsafe { $crate::handle::Handle::enter(this) }) else { return false };
            let $this = &mut *call;
            $body
        })+
    };
}
pub(crate) use functions;
