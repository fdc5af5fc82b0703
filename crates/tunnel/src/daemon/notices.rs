//! Log lines for notices of a site. A recurring notice is logged at most once a minute.

use std::collections::BTreeMap;
use std::time::Duration;

use thinair_wire::time::Instant;

use crate::site::SiteEvent;

/// Least time between two lines with the same reason and peer.
const AGAIN: Duration = Duration::from_secs(60);

/// Notices that were logged, by peer and reason: time of the last line, and whether their end must be logged.
/// The map stays small, as peers are those of the configuration and reasons are few.
#[derive(Debug, Default)]
pub(super) struct Notices(BTreeMap<(String, &'static str), (Instant, bool)>);

impl Notices {
    pub(super) fn log(&mut self, now: Instant, name: &str, event: SiteEvent) {
        match event {
            SiteEvent::Session { address, restarted } => {
                let address = address.map(|address| address.to_string());
                let address = address.as_deref().unwrap_or("the other end");
                tracing::info!(name, address, restarted, "new keys");
            }
            SiteEvent::PathMtu(octets) => tracing::info!(name, octets, "the path MTU is another one"),
            SiteEvent::Mapping { timeout: Some(timeout), keepalive } => tracing::info!(
                name,
                "the NAT keeps a mapping for at least {:.1} s: keepalives every {:.1} s",
                timeout.as_secs_f64(),
                keepalive.as_secs_f64()
            ),
            SiteEvent::Mapping { timeout: None, keepalive } => tracing::info!(
                name,
                "the other end does not answer probes of the NAT: keepalives every {:.0} s",
                keepalive.as_secs_f64()
            ),
            SiteEvent::Trouble(trouble) => {
                if self.begins(now, name, trouble.reason()) {
                    tracing::warn!(name, reason = trouble.reason(), "{trouble}");
                }
            }
            SiteEvent::Over(trouble) => {
                if self.ends(name, trouble.reason()) {
                    tracing::info!(name, reason = trouble.reason(), "works again");
                }
            }
        }
    }

    fn begins(&mut self, now: Instant, name: &str, reason: &'static str) -> bool {
        let key = (name.to_owned(), reason);
        let is_due = self.0.get(&key).is_none_or(|(at, _)| now.since(*at) >= AGAIN);
        if is_due {
            self.0.insert(key, (now, true));
        }
        is_due
    }

    fn ends(&mut self, name: &str, reason: &'static str) -> bool {
        let last = self.0.get_mut(&(name.to_owned(), reason));
        last.is_some_and(|(_, is_open)| std::mem::take(is_open))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_comes_and_goes_is_logged_once_a_minute() {
        let mut notices = Notices::default();
        let mut lines = 0;
        for second in 0..120 {
            let now = Instant::from_millis(1_000 * second);
            lines += u32::from(notices.begins(now, "hill", "unreachable"));
            lines += u32::from(notices.ends("hill", "unreachable"));
        }
        assert_eq!(lines, 4, "two beginnings, two ends");
        assert!(notices.begins(Instant::from_millis(119_000), "hill", "silent"), "another reason");
        assert!(notices.begins(Instant::from_millis(119_000), "dale", "unreachable"), "another peer");
    }
}
