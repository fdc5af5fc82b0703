//! Resources, and their list. Nothing here depends on sockets.

use std::time::Duration;

use thinair_coap::link_format::{LinkList, WELL_KNOWN_CORE};
use thinair_coap::{Code, Received, Response, code};
use thinair_wire::time::Instant;

/// A point in time by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Monotonic time.
    pub now: Instant,
    /// Calendar time: seconds since 1970.
    pub calendar: u64,
}

/// Action for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceAnswer<'a> {
    /// Respond immediately.
    Now(Response<'a>),
    /// Respond after this time; the request is acknowledged before.
    After(Duration, Response<'static>),
    /// Respond, and remove every observer of the resource without a message.
    Forget(Response<'a>),
    /// Respond; every observer of this path gets the second response, which is not a success and ends its observation.
    End(Response<'a>, Response<'static>),
}

/// State of an observable resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceState {
    /// Version: a new number for each new state.
    pub version: u64,
    /// True if its notifications are confirmable.
    pub confirmable: bool,
}

/// One resource, or several below one path. Requests go in, responses come out, and the caller supplies the time.
pub trait Resource: Send {
    /// Adds the links of the resource to the list of [`WELL_KNOWN_CORE`].
    fn links(&self, list: &mut LinkList);

    /// Processes a request. `None` if it is for another resource.
    fn handle<'a>(&'a mut self, at: Moment, request: &Received<'_>) -> Option<ResourceAnswer<'a>>;

    /// Returns the state of the resource of a GET; `None` if it cannot be observed, or is another one's. When it has
    /// changed, the request of each observer is [handled](Self::handle) again, and the response is its notification.
    fn state(&mut self, at: Moment, request: &Received<'_>) -> Option<ResourceState> {
        let _ = (at, request);
        None
    }
}

/// All resources of a server; the first one with the path of a request answers.
#[derive(Default)]
pub struct Resources(Vec<Box<dyn Resource>>);

impl Resources {
    /// Creates a site whose only resource is the list of resources.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a resource after the present ones.
    pub fn add(&mut self, resource: impl Resource + 'static) {
        self.0.push(Box::new(resource));
    }

    /// Processes a request; returns the number of the resource, if it is not the list.
    pub fn handle<'a>(
        &'a mut self,
        at: Moment,
        request: &Received<'_>,
    ) -> (Option<usize>, ResourceAnswer<'a>) {
        if request.options.is_path(WELL_KNOWN_CORE) {
            return (None, ResourceAnswer::Now(self.core(request)));
        }
        let mut resources = self.0.iter_mut().enumerate();
        let answer =
            resources.find_map(|(number, resource)| Some((Some(number), resource.handle(at, request)?)));
        answer.unwrap_or((None, ResourceAnswer::Now(Response::new(code::NOT_FOUND))))
    }

    /// Returns the number and state of the resource of a GET.
    pub fn state(&mut self, at: Moment, request: &Received<'_>) -> Option<(usize, ResourceState)> {
        let mut resources = self.0.iter_mut().enumerate();
        resources.find_map(|(number, resource)| Some((number, resource.state(at, request)?)))
    }

    /// Returns the list of resources. RFC 6690, section 4.
    fn core(&self, request: &Received<'_>) -> Response<'static> {
        match request.code {
            Code::GET => {
                let mut list = LinkList::new();
                self.0.iter().for_each(|resource| resource.links(&mut list));
                accepted(request, thinair_coap::number::LINK_FORMAT, || list.response(&request.options))
            }
            _ => Response::new(code::METHOD_NOT_ALLOWED),
        }
    }
}

impl std::fmt::Debug for Resources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("resources", &self.0.len()).finish()
    }
}

/// Returns the response, unless the client accepts only another Content-Format: then 4.06. RFC 7252, section 5.10.4.
pub fn accepted<'a>(
    request: &Received<'_>,
    format: u16,
    response: impl FnOnce() -> Response<'a>,
) -> Response<'a> {
    match request.options.accept() {
        Some(wanted) if wanted != format => Response::new(code::NOT_ACCEPTABLE),
        _ => response(),
    }
}
