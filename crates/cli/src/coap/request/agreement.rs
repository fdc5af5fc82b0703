//! Security context that is agreed on with a server before the first request to it (`--edhoc`).

use anyhow::Context as _;
use thinair_coap::Uri;
use thinair_coap::oscore::ContextId;
use thinair_services::coap::client::{Client, ClientTask, TaskReport};
use thinair_services::coap::edhoc::Identity;

/// Keys of this end, and the context with the latest server.
pub(super) struct Agreement {
    identity: Identity,
    latest: Option<(Uri, ContextId)>,
}

impl Agreement {
    pub(super) const fn new(identity: Identity) -> Self {
        Self { identity, latest: None }
    }

    /// Returns the context with the server of a task: that of the previous task, if it is the same server.
    pub(super) fn context(
        &mut self,
        client: &mut Client,
        task: &ClientTask<'_>,
        is_timed: bool,
    ) -> anyhow::Result<ContextId> {
        let server = Uri { path: Vec::new(), query: Vec::new(), ..task.uri.clone() };
        if let Some((_, context)) = self.latest.as_ref().filter(|(latest, _)| *latest == server) {
            return Ok(*context);
        }
        self.end(client);
        let mut report = TaskReport::default();
        let established = client.establish(task, &self.identity, &mut report);
        let (context, peer) = established.context("no key exchange")?;
        if is_timed {
            eprintln!(
                "keys agreed on with {peer:?} {:.1} ms; {} octets sent, {} received",
                report.total.as_secs_f64() * 1e3,
                report.sent_octets,
                report.received_octets,
            );
        }
        self.latest = Some((server, context));
        Ok(context)
    }

    /// Ends the context: the next task agrees on another one.
    pub(super) fn end(&mut self, client: &mut Client) {
        if let Some((_, context)) = self.latest.take() {
            client.remove_context(context);
        }
    }
}
