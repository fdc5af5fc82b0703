//! Stored content of clients: a representation with its format, and a list of representations.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use thinair_coap::link_format::LinkList;
use thinair_coap::{Code, Received, Response, code, number};

use super::super::format::LINKS;
use crate::coap::server::resource::accepted;

/// Largest number of representations of `/large-create`; a new one replaces the oldest.
const MOST_CREATED: usize = 8;

/// A representation that can be replaced.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    path: String,
    octets: Vec<u8>,
    format: u16,
}

impl Stored {
    pub(super) fn new(path: &str, octets: &[u8], format: u16) -> Self {
        Self { path: path.to_owned(), octets: octets.to_vec(), format }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns an ETag that differs for different representations.
    pub(super) fn etag(&self) -> [u8; 4] {
        let mut hasher = DefaultHasher::new();
        (&self.octets, self.format).hash(&mut hasher);
        (hasher.finish() as u32).to_be_bytes()
    }

    pub(super) fn link(&self, list: &mut LinkList, more: &[(&str, &str)]) {
        let (format, size) = (self.format.to_string(), self.octets.len().to_string());
        let attributes = [("ct", &*format), ("sz", &*size)];
        list.add(&self.path, &[&attributes, more].concat());
    }

    pub(super) fn handle(&mut self, request: &Received<'_>) -> Response<'_> {
        match request.code {
            Code::GET => self.get(request),
            Code::PUT => self.put(request),
            _ => Response::new(code::METHOD_NOT_ALLOWED),
        }
    }

    pub(super) fn get(&self, request: &Received<'_>) -> Response<'_> {
        let etag = self.etag();
        if request.options.validates(&etag) {
            return Response::valid(&etag);
        }
        accepted(request, self.format, || Response::content(&self.octets[..]).format(self.format).etag(&etag))
    }

    fn put(&mut self, request: &Received<'_>) -> Response<'static> {
        if !request.options.permits(true, Some(&self.etag())) {
            return Response::new(code::PRECONDITION_FAILED);
        }
        self.replace(request)
    }

    /// Replaces the representation without preconditions.
    pub(super) fn replace(&mut self, request: &Received<'_>) -> Response<'static> {
        self.octets = request.payload.to_vec();
        self.format = request.options.content_format().unwrap_or(super::TEXT);
        Response::new(Code::CHANGED).etag(&self.etag())
    }
}

/// `/large-create`, and the resources created by it.
#[derive(Debug, Default)]
pub(super) struct Created {
    stored: Vec<Stored>,
    /// Number of creations.
    number: u64,
}

impl Created {
    pub(super) fn links(&self, list: &mut LinkList) {
        list.add("/large-create", &[("ct", "40"), ("rt", "block"), ("title", "POST makes a resource below")]);
        self.stored.iter().for_each(|stored| stored.link(list, &[]));
    }

    pub(super) fn handle(&mut self, path: &str, request: &Received<'_>) -> Response<'_> {
        if path != "/large-create" {
            let Some(place) = self.stored.iter().position(|stored| stored.path == path) else {
                return Response::new(code::NOT_FOUND);
            };
            if request.code == Code::DELETE {
                self.stored.remove(place);
                return Response::new(code::DELETED);
            }
            return self.stored[place].handle(request);
        }
        match request.code {
            Code::GET => accepted(request, LINKS, || {
                let mut list = LinkList::new();
                self.stored.iter().for_each(|stored| stored.link(&mut list, &[]));
                Response::content(list.as_str().as_bytes().to_vec()).format(LINKS)
            }),
            Code::POST => self.create(request),
            _ => Response::new(code::METHOD_NOT_ALLOWED),
        }
    }

    fn create(&mut self, request: &Received<'_>) -> Response<'static> {
        self.number += 1;
        let name = self.number.to_string();
        let format = request.options.content_format().unwrap_or(super::TEXT);
        if self.stored.len() >= MOST_CREATED {
            self.stored.remove(0);
        }
        self.stored.push(Stored::new(&format!("/large-create/{name}"), &request.payload, format));
        Response::new(code::CREATED)
            .option(number::LOCATION_PATH, b"large-create")
            .option(number::LOCATION_PATH, name.as_bytes())
    }
}
