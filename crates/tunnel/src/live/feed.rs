//! Exchange of statuses between the daemon and its readers: the newest one only, behind a lock that is held
//! briefly.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::status::Status;

/// Time after a request for which its reader counts as present: a page polls every half second, Prometheus
/// less often.
const LOOKED_WITHIN: Duration = Duration::from_secs(5);

/// Maximum age of a status that is served as the newest.
const FRESH: Duration = Duration::from_millis(1500);

/// Minimum interval between two statuses.
const EVERY: Duration = Duration::from_millis(500);

/// The daemon publishes on one instance; readers use its clones.
///
/// **The daemon calls [`is_due`](Self::is_due) in its event loop, and [`publish`](Self::publish) if it
/// returns true.** Without readers nothing is due. The first reader after a pause [wakes](Self::waking) the
/// daemon.
#[derive(Clone, Default)]
pub struct Feed {
    shared: Arc<SharedFeed>,
}

#[derive(Default)]
struct SharedFeed {
    state: Mutex<FeedState>,
    wake: Option<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct FeedState {
    newest: Option<(Instant, Arc<Status>)>,
    looked: Option<Instant>,
}

impl Feed {
    /// Returns an empty feed without readers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty feed with a function that wakes the daemon, which is called in another thread.
    pub fn waking(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self { shared: Arc::new(SharedFeed { state: Mutex::default(), wake: Some(Box::new(wake)) }) }
    }

    /// True if a status is requested now.
    pub fn is_due(&self) -> bool {
        self.next_in().is_some_and(|wait| wait.is_zero())
    }

    /// Time until a status is due. `None`: there are no readers.
    pub fn next_in(&self) -> Option<Duration> {
        let now = Instant::now();
        let state = self.state();
        let is_watched = state.looked.is_some_and(|at| now.duration_since(at) < LOOKED_WITHIN);
        let since = state.newest.as_ref().map_or(EVERY, |(at, _)| now.duration_since(*at));
        is_watched.then(|| EVERY.saturating_sub(since))
    }

    /// Publishes the newest status.
    pub fn publish(&self, status: Status) {
        let newest = Some((Instant::now(), Arc::new(status)));
        // The old status is dropped after the lock is released.
        let _before = std::mem::replace(&mut self.state().newest, newest);
    }

    /// Returns the newest status if it is recent, and records the reader.
    pub(super) fn look(&self) -> Option<Arc<Status>> {
        let now = Instant::now();
        let (fresh, is_first) = {
            let mut state = self.state();
            let before = state.looked.replace(now);
            let fresh = state.newest.as_ref().filter(|(at, _)| now.duration_since(*at) < FRESH);
            let is_first = before.is_none_or(|at| now.duration_since(at) >= LOOKED_WITHIN);
            (fresh.map(|(_, status)| Arc::clone(status)), is_first)
        };
        if let (true, Some(wake)) = (is_first || fresh.is_none(), &self.shared.wake) {
            wake();
        }
        fresh
    }

    fn state(&self) -> MutexGuard<'_, FeedState> {
        // A panic cannot leave partial changes behind.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("next_in", &self.next_in()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::tests::specimen;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn nothing_is_due_until_somebody_looks() {
        let feed = Feed::new();
        assert!(!feed.is_due());
        assert_eq!(feed.look(), None);
        assert!(feed.clone().is_due());
        feed.publish(specimen());
        assert!(!feed.is_due());
        assert!(feed.next_in().is_some_and(|wait| wait <= EVERY));
        assert_eq!(feed.look().as_deref(), Some(&specimen()));
    }

    #[test]
    fn who_finds_nothing_wakes_the_daemon() {
        let woken = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&woken);
        let feed = Feed::waking(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        feed.look();
        feed.publish(specimen());
        feed.look();
        assert_eq!(woken.load(Ordering::Relaxed), 1);
    }
}
