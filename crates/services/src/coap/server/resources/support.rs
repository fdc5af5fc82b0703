//! Requests to resources without sockets, for tests.

use thinair_coap::{Endpoint, Event, Received, Request, Response};
use thinair_wire::time::Instant;

use crate::coap::server::resource::{Moment, Resource, ResourceAnswer, ResourceState};

/// Returns the time `seconds` after zero of both clocks.
pub(crate) fn at(seconds: u64) -> Moment {
    Moment { now: Instant::from_millis(seconds * 1_000), calendar: seconds }
}

pub(crate) fn get(path: &str) -> Request<'static> {
    Request::get(path)
}

/// Returns the request as delivered by an endpoint.
pub(crate) fn received(request: &Request<'_>) -> Received<'static> {
    let config = thinair_coap::Config {
        limits: thinair_coap::Limits { max_message: 60_000, ..thinair_coap::Limits::default() },
        ..Default::default()
    };
    let mut client = Endpoint::<u8>::new(config, || 7);
    let mut server = Endpoint::<u8>::new(config, || 7);
    let mut buffer = [0; 60_000];
    client.request(Instant::ZERO, 1, request).expect("it can be asked");
    let transmit = client.poll_transmit(Instant::ZERO, &mut buffer).expect("it is asked");
    match server.handle_datagram(Instant::ZERO, 2, &buffer[..transmit.len]) {
        Some(Event::Request { message, .. }) => message.into_owned(),
        other => panic!("{other:?}"),
    }
}

/// Returns the immediate response of a resource.
pub(crate) fn ask(
    resource: &mut dyn Resource,
    at: Moment,
    request: &Request<'_>,
) -> Option<Response<'static>> {
    match answer(resource, at, request)? {
        ResourceAnswer::Now(response) => Some(response),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn answer(
    resource: &mut dyn Resource,
    at: Moment,
    request: &Request<'_>,
) -> Option<ResourceAnswer<'static>> {
    Some(match resource.handle(at, &received(request))? {
        ResourceAnswer::Now(response) => ResourceAnswer::Now(owned(response)),
        ResourceAnswer::After(delay, response) => ResourceAnswer::After(delay, response),
        ResourceAnswer::Forget(response) => ResourceAnswer::Forget(owned(response)),
        ResourceAnswer::End(response, last) => ResourceAnswer::End(owned(response), last),
    })
}

pub(crate) fn state(resource: &mut dyn Resource, at: Moment, path: &str) -> Option<ResourceState> {
    resource.state(at, &received(&get(path)))
}

fn owned(response: Response<'_>) -> Response<'static> {
    Response { code: response.code, options: response.options, payload: response.payload.into_owned().into() }
}
