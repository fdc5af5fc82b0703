//! What is served: resources, and the list in which they stand. Nothing here knows a socket.

use std::time::Duration;

use thinair_coap::link_format::{LinkList, WELL_KNOWN_CORE};
use thinair_coap::{Code, Received, Response, code};
use thinair_wire::time::Instant;

/// What time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// By the clock that never goes back.
    pub now: Instant,
    /// By the calendar: seconds since 1970.
    pub calendar: u64,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The response.
    Now(Response<'a>),
    /// The response, when so much time has passed: the request is acknowledged before that.
    After(Duration, Response<'static>),
    /// The response; and every observer of the resource is forgotten, without a word.
    Forget(Response<'a>),
    /// The response; and every observer of this path is told the last one, which is no success and ends its observation.
    End(Response<'a>, Response<'static>),
}

/// Something that can be observed is in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Another number: another state.
    pub version: u64,
    /// Whether notifications of it are confirmable.
    pub confirmable: bool,
}

/// One resource, or several below one path. Requests go in, responses come out, and time is what the caller says.
pub trait Resource: Send {
    /// What [`WELL_KNOWN_CORE`] tells of it.
    fn links(&self, list: &mut LinkList);

    /// Does what is asked. Nothing if it is about another resource.
    fn handle<'a>(&'a mut self, at: Moment, request: &Received<'_>) -> Option<Answer<'a>>;

    /// The state of what a GET asks for; nothing if it cannot be observed, or is of another resource. When it has changed,
    /// the request of each observer is [handled](Self::handle) once more, and the response is its notification.
    fn state(&mut self, at: Moment, request: &Received<'_>) -> Option<State> {
        let _ = (at, request);
        None
    }
}

/// All resources of a server; the first one whose path it is answers.
#[derive(Default)]
pub struct Site(Vec<Box<dyn Resource>>);

impl Site {
    /// Nothing but the list of what is there.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more resource, behind those that are there.
    pub fn add(&mut self, resource: impl Resource + 'static) {
        self.0.push(Box::new(resource));
    }

    /// Does what is asked; and the number of the resource that has, if it is not the list of all.
    pub fn handle<'a>(&'a mut self, at: Moment, request: &Received<'_>) -> (Option<usize>, Answer<'a>) {
        if request.options.is_path(WELL_KNOWN_CORE) {
            return (None, Answer::Now(self.core(request)));
        }
        let mut resources = self.0.iter_mut().enumerate();
        let answer =
            resources.find_map(|(number, resource)| Some((Some(number), resource.handle(at, request)?)));
        answer.unwrap_or((None, Answer::Now(Response::new(code::NOT_FOUND))))
    }

    /// The state of what a GET asks for, and which resource it is of.
    pub fn state(&mut self, at: Moment, request: &Received<'_>) -> Option<(usize, State)> {
        let mut resources = self.0.iter_mut().enumerate();
        resources.find_map(|(number, resource)| Some((number, resource.state(at, request)?)))
    }

    /// RFC 6690, section 4.
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

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("resources", &self.0.len()).finish()
    }
}

/// The response, unless the client wants another Content-Format than this one: then 4.06. RFC 7252, section 5.10.4.
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
