//! The newest status of a tunnel, for several readers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thinair_tunnel::status::Status;
use thinair_tunnel::status::socket::{AskError, ask};
use tokio::sync::Mutex;

/// Age below which a status is served again: readers cost the daemon a few statuses a second at most.
const FRESH: Duration = Duration::from_millis(200);

/// Requests the status from a daemon while there are readers, once for all of them. Clones are one source.
#[derive(Clone)]
pub(super) struct StatusSource(Arc<Source>);

struct Source {
    socket: PathBuf,
    newest: Mutex<Option<(Instant, Arc<Status>)>>,
}

impl StatusSource {
    pub(super) fn new(socket: &Path) -> Self {
        Self(Arc::new(Source { socket: socket.to_owned(), newest: Mutex::default() }))
    }

    /// Returns a status that is at most [`FRESH`] old.
    pub(super) async fn status(&self) -> Result<Arc<Status>, AskError> {
        let mut newest = self.0.newest.lock().await;
        if let Some((at, status)) = &*newest
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(status));
        }
        let source = Arc::clone(&self.0);
        let answer = tokio::task::spawn_blocking(move || ask(&source.socket)).await;
        let status = Arc::new(answer.expect("reading a status does not panic")?);
        *newest = Some((Instant::now(), Arc::clone(&status)));
        Ok(status)
    }
}
