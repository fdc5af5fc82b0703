//! Analysis of a capture in progress: records one by one, and sums at any time.

use std::sync::Arc;

use thinair_capture::Record;

use super::lane::{self, Batch};
use super::{Analysis, InputLink};
use crate::outcome::InputSummary;
use crate::unpack::Unpack;

/// A link that receives its records one by one.
///
/// **Create it with [`Analysis::begin`], and pass it to [`Analysis::observe`] of the same analysis.**
pub struct Live {
    input: InputSummary,
    link: InputLink,
    unpack: Unpack,
    batch: Batch,
}

impl Live {
    /// Counts of records and packets so far.
    pub fn input(&self) -> &InputSummary {
        &self.input
    }
}

impl Analysis {
    /// Begins a link whose packets are not known in advance. Schemes with provisioning (SCHC, 6LoWPAN) get
    /// none: analyze the finished capture for them.
    pub fn begin(&mut self, path: &str) -> Live {
        let link = self.link(Arc::default());
        self.flows.start(self.inputs.len(), &[], &self.settings);
        let input = InputSummary { path: path.to_owned(), ..InputSummary::default() };
        Live { input, link, unpack: self.unpack(), batch: Batch::default() }
    }

    /// Sends the packet of a record through every scheme. [`totals`](Self::totals) includes it.
    pub fn observe(&mut self, live: &mut Live, record: &Record<'_>) {
        let Live { input, link, unpack, batch } = live;
        batch.clear();
        self.record(input, link, unpack, record, batch);
        lane::carry(&mut link.lanes, &self.settings, batch, 1, || ());
        self.add(batch);
    }
}
