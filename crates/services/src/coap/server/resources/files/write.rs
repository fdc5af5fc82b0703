//! PUT, POST and DELETE of files.

use std::io::ErrorKind;
use std::path::Path;

use thinair_coap::{Code, Received, Response, code, number};
use thinair_os::folder::Before;

use super::{FileResource, etag, format, refused};
use crate::name::Name;

/// Number of names that a POST tries.
const TRIES: u64 = 10_000;

impl FileResource {
    /// Creates or replaces a file.
    pub(super) fn put(&mut self, name: &Name, request: &Received<'_>) -> Response<'static> {
        if name.is_folder() {
            return Response::new(code::METHOD_NOT_ALLOWED);
        }
        let known = format::of_name(name.last());
        let given = request.options.content_format();
        if known.is_some() && given.is_some() && known != given {
            let text = format!("`{}` is of Content-Format {}", name.last(), known.unwrap_or_default());
            return Response::new(code::UNSUPPORTED_CONTENT_FORMAT).payload(text.into_bytes());
        }
        if let Some(too_large) = self.too_large(request) {
            return too_large;
        }
        let before = self.etag_of(name);
        if !request.options.permits(before.is_some(), before.as_ref().map(|etag| &etag[..])) {
            return Response::new(code::PRECONDITION_FAILED);
        }
        let is_new = request.options.first(number::IF_NONE_MATCH).is_some();
        let how = if is_new { Before::Nothing } else { Before::Any };
        let temporary = self.temporary();
        let folder = self.folder.folder(name.above());
        let written = folder.and_then(|folder| folder.write(name.last(), &temporary, &request.payload, how));
        match written {
            Ok(()) => {
                let response = Response::new(if before.is_some() { Code::CHANGED } else { code::CREATED });
                self.with_etag(name, response)
            }
            Err(why) => match why.kind() {
                ErrorKind::AlreadyExists => Response::new(code::PRECONDITION_FAILED),
                ErrorKind::IsADirectory => Response::new(code::METHOD_NOT_ALLOWED),
                _ => refused(&why),
            },
        }
    }

    /// Creates a file with a new name in a folder.
    pub(super) fn post(&mut self, name: &Name, request: &Received<'_>) -> Response<'static> {
        if let Some(too_large) = self.too_large(request) {
            return too_large;
        }
        let folder = match self.folder.folder(name.path()) {
            Ok(folder) => folder,
            // It exists, and is not a folder.
            Err(why) if why.kind() == ErrorKind::NotADirectory && self.etag_of(name).is_some() => {
                return Response::new(code::METHOD_NOT_ALLOWED);
            }
            Err(why) => return refused(&why),
        };
        let extension = format::extension(request.options.content_format());
        for _ in 0..TRIES {
            let temporary = self.temporary();
            let made = format!("{}.{extension}", self.written);
            match folder.write(&made, &temporary, &request.payload, Before::Nothing) {
                Ok(()) => {
                    let segments = name.segments().iter().chain([&made]);
                    return segments.fold(Response::new(code::CREATED), |response, segment| {
                        response.option(number::LOCATION_PATH, segment.as_bytes())
                    });
                }
                Err(why) if why.kind() == ErrorKind::AlreadyExists => {}
                Err(why) => return refused(&why),
            }
        }
        Response::new(code::INTERNAL_SERVER_ERROR)
    }

    /// Removes a file. If it does not exist, that is a success: RFC 7252, section 5.8.4.
    pub(super) fn delete(&mut self, name: &Name, request: &Received<'_>) -> Response<'static> {
        let before = self.etag_of(name);
        if !request.options.permits(before.is_some(), before.as_ref().map(|etag| &etag[..])) {
            return Response::new(code::PRECONDITION_FAILED);
        }
        if name.is_folder() {
            return Response::new(code::METHOD_NOT_ALLOWED);
        }
        match self.folder.folder(name.above()).and_then(|folder| folder.remove(name.last())) {
            Ok(()) => Response::new(code::DELETED),
            Err(why) => match why.kind() {
                ErrorKind::NotFound => Response::new(code::DELETED),
                ErrorKind::IsADirectory => Response::new(code::METHOD_NOT_ALLOWED),
                _ => refused(&why),
            },
        }
    }

    /// Returns a name that no served file has.
    fn temporary(&mut self) -> String {
        self.written += 1;
        format!(".thinair-{}-{}", std::process::id(), self.written)
    }

    fn with_etag(&self, name: &Name, response: Response<'static>) -> Response<'static> {
        let file = self.folder.file(Path::new(name.path())).and_then(|file| file.metadata());
        match file {
            Ok(metadata) => response.etag(&etag(&metadata)),
            Err(_) => response,
        }
    }

    fn too_large(&self, request: &Received<'_>) -> Option<Response<'static>> {
        let limit = u32::try_from(self.most).unwrap_or(u32::MAX);
        let response = || Response::new(code::REQUEST_ENTITY_TOO_LARGE).uint(number::SIZE1, limit);
        (request.payload.len() > self.most).then(response)
    }
}
