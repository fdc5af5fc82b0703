//! Record of every (key, nonce) used for encryption by all ciphers of this thread.

use std::cell::RefCell;
use std::collections::BTreeSet;

type Used = BTreeSet<([u8; 32], u64)>;

thread_local! {
    static USED: RefCell<Option<Used>> = const { RefCell::new(None) };
}

/// Records the use of a counter.
pub(crate) fn used(key: [u8; 32], counter: u64) {
    USED.with_borrow_mut(|used| {
        if let Some(used) = used {
            assert!(used.insert((key, counter)), "a key and a nonce were used twice");
        }
    });
}

/// Starts recording.
pub(super) fn watch() {
    USED.set(Some(BTreeSet::new()));
}

/// Number of recorded nonces.
pub(super) fn count() -> usize {
    USED.with_borrow(|used| used.as_ref().map_or(0, BTreeSet::len))
}
