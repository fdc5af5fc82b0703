//! A capture that still goes on: records one by one, and sums at any time.

use std::rc::Rc;

use thinair_capture::Record;

use super::{Analysis, Link};
use crate::outcome::Input;
use crate::survey::Provision;
use crate::unpack::Unpack;

/// A link whose records are handed over as they come.
///
/// **Get it from [`Analysis::begin`], and give it to [`Analysis::observe`] of the same analysis.**
pub struct Live {
    input: Input,
    link: Link,
    unpack: Unpack,
}

impl Live {
    /// Records and packets so far.
    pub fn input(&self) -> &Input {
        &self.input
    }
}

impl Analysis {
    /// Begins a link whose packets are not known yet. Schemes that must be given something of them beforehand (SCHC, 6LoWPAN)
    /// get nothing: they belong in a reading of what was kept.
    pub fn begin(&mut self, path: &str) -> Live {
        let link = Link::new(&self.settings, self.begins, &Rc::new(Provision::default()));
        self.flows.start(self.inputs.len());
        let input = Input { path: path.to_owned(), ..Input::default() };
        Live { input, link, unpack: self.unpack() }
    }

    /// Lets every scheme carry the packet of a record. [`totals`](Self::totals) counts it.
    pub fn observe(&mut self, live: &mut Live, record: &Record<'_>) {
        let Live { input, link, unpack } = live;
        self.record(input, link, unpack, record);
    }
}
