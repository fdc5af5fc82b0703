//! Resources that change every five seconds, and when a client puts something into them.

use thinair_coap::link_format::LinkList;
use thinair_coap::{Code, Received, Response, code};

use super::super::format::TEXT;
use crate::coap::server::resource::{Moment, ResourceState, accepted};

/// Interval of the changes in seconds; also their Max-Age.
const PERIOD: u32 = 5;

/// An observable resource.
#[derive(Debug)]
pub(super) struct Observed {
    path: &'static str,
    confirmable: bool,
    /// Text after the number.
    tail: String,
    /// Text that was put into it, and last period in which it is valid.
    put: Option<(Vec<u8>, u64)>,
    /// Number of PUTs.
    changes: u64,
}

/// Returns the period of a point in time.
fn period(at: Moment) -> u64 {
    at.now.as_nanos() / (u64::from(PERIOD) * 1_000_000_000)
}

impl Observed {
    pub(super) fn new(path: &'static str, confirmable: bool, tail: &str) -> Self {
        Self { path, confirmable, tail: tail.to_owned(), put: None, changes: 0 }
    }

    pub(super) fn path(&self) -> &'static str {
        self.path
    }

    pub(super) fn link(&self, list: &mut LinkList) {
        let title =
            if self.confirmable { "Changes every 5 s" } else { "Changes every 5 s; notifications are NON" };
        list.add(self.path, &[("ct", "0"), ("rt", "observe"), ("obs", ""), ("title", title)]);
    }

    /// Drops the text that was put into it.
    pub(super) fn reset(&mut self) {
        self.put = None;
    }

    pub(super) fn state(&self, at: Moment) -> ResourceState {
        ResourceState { version: period(at) << 24 | self.changes & 0xFF_FFFF, confirmable: self.confirmable }
    }

    pub(super) fn handle(&mut self, at: Moment, request: &Received<'_>) -> Response<'_> {
        let now = period(at);
        self.put.take_if(|(_, until)| *until < now);
        match request.code {
            Code::GET => self.get(now, request),
            Code::PUT => {
                self.put = Some((request.payload.to_vec(), now));
                self.changes += 1;
                Response::new(Code::CHANGED)
            }
            _ => Response::new(code::METHOD_NOT_ALLOWED),
        }
    }

    fn get(&self, now: u64, request: &Received<'_>) -> Response<'_> {
        accepted(request, TEXT, || {
            let content = match &self.put {
                Some((octets, _)) => Response::content(&octets[..]),
                None => Response::content(format!("{now}\n{}", self.tail).into_bytes()),
            };
            content.format(TEXT).max_age(PERIOD)
        })
    }
}
