//! Files of a folder, by path.
//!
//! A GET of a file is answered with the whole file, up to a limit; a GET of a folder with links to its content. If the
//! folder is writable, PUT creates or replaces a file atomically, POST to a folder creates one with a new name, DELETE
//! removes one. Names that begin with a dot are neither shown nor written, and no path leaves the folder
//! ([`thinair_os::folder`]).

mod write;

use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use thinair_coap::link_format::LinkList;
use thinair_coap::{Code, Received, Response, code};
use thinair_os::folder::Folder;

use super::format::{self, LINKS};
use crate::coap::server::resource::{Moment, Resource, ResourceAnswer, ResourceState, accepted};

use crate::file::{self, FileRefusal};
use crate::name::{Name, escaped};

/// Largest number of links of one folder.
const MOST_LINKS: usize = 1_000;

/// Error: the folder cannot be served.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct FilesError(#[from] thinair_os::Error);

/// A served folder.
#[derive(Debug)]
pub struct FileResource {
    folder: Folder,
    /// Largest file, in octets.
    most: usize,
    writable: bool,
    /// True if files are sent without metadata.
    bare: bool,
    /// Number of files written, for unique names.
    written: u64,
}

impl FileResource {
    /// Serves the folder at `path`: files of at most `most` octets. `writable`: clients may change its content.
    ///
    /// # Errors
    /// It is not a folder, or is not readable; the system has no openat2(2).
    pub fn open(path: &Path, most: usize, writable: bool) -> Result<Self, FilesError> {
        Ok(Self { folder: Folder::open(path)?, most, writable, bare: false, written: 0 })
    }

    /// Omits ETag and Content-Format of files, which take 9 to 12 octets of a response: for links on which those matter,
    /// and files that do not change while they are fetched block by block.
    #[must_use]
    pub fn bare(self) -> Self {
        Self { bare: true, ..self }
    }

    fn get(&self, name: &Name, request: &Received<'_>) -> Response<'static> {
        let file = match self.folder.file(name.path()) {
            Ok(file) => file,
            Err(why) => return refused(&why),
        };
        match file.metadata() {
            Ok(metadata) if metadata.is_dir() => self.list(name, request),
            Ok(metadata) if metadata.is_file() && !name.is_folder() => {
                self.content(name, file, &metadata, request)
            }
            Ok(_) => Response::new(code::NOT_FOUND),
            Err(why) => refused(&why),
        }
    }

    fn content(
        &self,
        name: &Name,
        file: File,
        metadata: &Metadata,
        request: &Received<'_>,
    ) -> Response<'static> {
        let etag = etag(metadata);
        if request.options.validates(&etag) {
            return Response::valid(&etag);
        }
        let format = format::of_name(name.last());
        if request.options.accept().is_some_and(|wanted| Some(wanted) != format) {
            return Response::new(code::NOT_ACCEPTABLE);
        }
        match file::read(file, metadata, self.most) {
            Ok(octets) if self.bare => Response::content(octets),
            Ok(octets) => {
                let response = Response::content(octets).etag(&etag);
                match format {
                    Some(format) => response.format(format),
                    None => response,
                }
            }
            Err(FileRefusal::TooLarge) => {
                let text = format!("a file of more than {} octets", self.most);
                Response::new(code::INTERNAL_SERVER_ERROR).payload(text.into_bytes())
            }
            Err(why) => refusal_response(why),
        }
    }

    fn list(&self, name: &Name, request: &Received<'_>) -> Response<'static> {
        let mut list = LinkList::new();
        match self.folder.folder(name.path()) {
            Ok(folder) => self.add_links(&folder, &name.target(), &mut list),
            Err(why) => return refused(&why),
        }
        let mut hasher = DefaultHasher::new();
        list.as_str().hash(&mut hasher);
        let etag = hasher.finish().to_be_bytes();
        if request.options.validates(&etag) {
            return Response::valid(&etag);
        }
        accepted(request, LINKS, || list.response(&request.options).etag(&etag))
    }

    /// Adds the content of a folder, whose target is `above`.
    fn add_links(&self, folder: &Folder, above: &str, list: &mut LinkList) {
        for entry in folder.entries(MOST_LINKS).unwrap_or_default() {
            let target = format!("{above}/{}", escaped(&entry.name));
            if entry.is_folder {
                list.add(&format!("{target}/"), &[("ct", "40")]);
                continue;
            }
            let len = entry.len.to_string();
            match format::of_name(&entry.name).map(|format| format.to_string()) {
                Some(format) => list.add(&target, &[("ct", &format), ("sz", &len), ("obs", "")]),
                None => list.add(&target, &[("sz", &len), ("obs", "")]),
            }
        }
    }

    /// Returns the ETag of the file with a name; `None` if there is no file.
    fn etag_of(&self, name: &Name) -> Option<[u8; 8]> {
        let metadata = self.folder.file(name.path()).ok()?.metadata().ok()?;
        metadata.is_file().then(|| etag(&metadata))
    }
}

impl Resource for FileResource {
    fn links(&self, list: &mut LinkList) {
        list.add("/", &[("ct", "40"), ("title", "Files")]);
        self.add_links(&self.folder, "", list);
    }

    fn handle<'a>(&'a mut self, _at: Moment, request: &Received<'_>) -> Option<ResourceAnswer<'a>> {
        let response = match Name::of(request.options.path()) {
            None => Response::new(code::NOT_FOUND),
            Some(name) => match request.code {
                Code::GET => self.get(&name, request),
                Code::PUT | Code::POST | Code::DELETE if !self.writable => {
                    Response::new(code::METHOD_NOT_ALLOWED)
                }
                Code::PUT => self.put(&name, request),
                Code::POST => self.post(&name, request),
                Code::DELETE => self.delete(&name, request),
                _ => Response::new(code::METHOD_NOT_ALLOWED),
            },
        };
        Some(ResourceAnswer::Now(response))
    }

    fn state(&mut self, _at: Moment, request: &Received<'_>) -> Option<ResourceState> {
        let name = Name::of(request.options.path())?;
        // Removal changes the state, too.
        let version = self.etag_of(&name).map_or(0, u64::from_be_bytes);
        Some(ResourceState { version, confirmable: true })
    }
}

/// Returns the response to an error of the system.
fn refused(why: &std::io::Error) -> Response<'static> {
    refusal_response(FileRefusal::from(why))
}

fn refusal_response(why: FileRefusal) -> Response<'static> {
    Response::new(match why {
        FileRefusal::Forbidden => code::FORBIDDEN,
        FileRefusal::Missing => code::NOT_FOUND,
        FileRefusal::Full => code::SERVICE_UNAVAILABLE,
        FileRefusal::TooLarge | FileRefusal::Failed => code::INTERNAL_SERVER_ERROR,
    })
}

/// Returns an ETag of file, length and time of change. A file that is overwritten in place, twice within a tick of the
/// file system's clock and with equal length, keeps its ETag.
fn etag(metadata: &Metadata) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    (metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec()).hash(&mut hasher);
    hasher.finish().to_be_bytes()
}

#[cfg(test)]
#[path = "files/check.rs"]
mod check;
