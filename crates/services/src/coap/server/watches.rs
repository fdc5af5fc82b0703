//! Observations: the request of each observer, which is repeated when the state has changed. RFC 7641, section 4.

use std::collections::BTreeMap;

use thinair_coap::{Code, Endpoint, ObserverId, Received, RequestId, Response, code};

use super::resource::{Moment, ResourceAnswer, ResourceState, Resources};
use super::{CoapPeer, ServerStatistics};

/// Longest options of a stored request, in octets.
const LONGEST: usize = 1_024;

/// Observations by observer.
#[derive(Debug, Default)]
pub struct Watches(BTreeMap<ObserverId, Watch>);

#[derive(Debug)]
struct Watch {
    request: Received<'static>,
    /// Number of the resource.
    resource: usize,
    version: u64,
    /// Content-Format of its notifications, after the first.
    format: Option<Option<u16>>,
}

impl Watches {
    /// True if there is no observer.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Registers the client of a request, if the resource can be observed. Call it before the response is sent.
    pub fn register(
        &mut self,
        at: Moment,
        endpoint: &mut Endpoint<CoapPeer>,
        id: RequestId,
        request: &Received<'_>,
        (resource, state): (usize, ResourceState),
        response: &Response<'_>,
    ) {
        if response.code.class() != 2 || request.options.octets().len() > LONGEST || request.code != Code::GET
        {
            return;
        }
        let Some(observer) = endpoint.accept(at.now, id) else { return };
        let request = request.clone().into_owned();
        let format = format_of(response);
        self.0.insert(observer, Watch { request, resource, version: state.version, format });
    }

    /// Removes an observer.
    pub fn remove(&mut self, observer: ObserverId) {
        self.0.remove(&observer);
    }

    /// Removes all observers of a resource without a message.
    pub fn forget(&mut self, endpoint: &mut Endpoint<CoapPeer>, resource: usize) {
        self.0.retain(|observer, watch| {
            let is_it = watch.resource == resource;
            if is_it {
                endpoint.forget_observer(*observer);
            }
            !is_it
        });
    }

    /// Sends a last notification to all observers of the path of a request.
    pub fn end(
        &mut self,
        at: Moment,
        endpoint: &mut Endpoint<CoapPeer>,
        request: &Received<'_>,
        last: &Response<'_>,
    ) {
        self.0.retain(|observer, watch| {
            let is_it = watch.request.options.path().eq(request.options.path());
            // A failure means that the observer is gone.
            let _ = is_it && endpoint.notify(at.now, *observer, last, true).is_ok();
            !is_it
        });
    }

    /// Notifies the observers of resources whose state has changed.
    pub fn look(
        &mut self,
        at: Moment,
        endpoint: &mut Endpoint<CoapPeer>,
        site: &mut Resources,
        statistics: &mut ServerStatistics,
    ) {
        self.0.retain(|observer, watch| {
            let state = site.state(at, &watch.request);
            let confirmable = state.is_none_or(|(_, state)| state.confirmable);
            match state {
                Some((_, state)) if state.version == watch.version => return true,
                Some((_, state)) => watch.version = state.version,
                None => {}
            }
            let response = match site.handle(at, &watch.request).1 {
                ResourceAnswer::Now(response) => response,
                // A resource with a delayed response cannot be observed.
                ResourceAnswer::After(..) | ResourceAnswer::Forget(_) | ResourceAnswer::End(..) => {
                    Response::new(code::INTERNAL_SERVER_ERROR)
                }
            };
            let format = format_of(&response);
            let response = match (watch.format, format) {
                // "If the server is unable to continue sending notifications in this format": section 4.2.
                (Some(before), Some(now)) if before != now => Response::new(code::NOT_ACCEPTABLE),
                _ => response,
            };
            watch.format = watch.format.or(format);
            statistics.notifications += 1;
            let sent = endpoint.notify(at.now, *observer, &response, confirmable);
            // A response without success ends it; the endpoint then removes its entry.
            response.code.class() == 2 && sent.is_ok()
        });
    }
}

/// Returns the Content-Format of a representation; `None` if the response has none.
fn format_of(response: &Response<'_>) -> Option<Option<u16>> {
    (response.code == Code::CONTENT).then(|| response.options.as_options().content_format())
}
