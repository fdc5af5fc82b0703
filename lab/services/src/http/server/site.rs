//! Files of a folder, by path.

use std::path::Path;

use thinair_http::{HttpRequest, HttpResponse, status};
use thinair_os::folder::Folder;

use thinair_services::file::{self, FileRefusal};
use thinair_services::name::Name;

/// Folder whose files are served.
#[derive(Debug)]
pub(crate) struct ServedFolder {
    folder: Folder,
    /// Maximum size of a file, in octets.
    most: usize,
}

impl ServedFolder {
    pub(crate) fn open(path: &Path, most: usize) -> Result<Self, thinair_os::Error> {
        Ok(Self { folder: Folder::open(path)?, most })
    }

    /// Responds with a whole file; 404 for a folder.
    pub(crate) fn respond(&self, request: &HttpRequest) -> HttpResponse {
        match self.content(&request.target) {
            Ok(body) => HttpResponse { status: status::OK, body },
            Err(status) => HttpResponse::empty(status),
        }
    }

    fn content(&self, target: &str) -> Result<Vec<u8>, u16> {
        let path =
            target.split('?').next().and_then(|path| path.strip_prefix('/')).ok_or(status::BAD_REQUEST)?;
        let segments: Option<Vec<_>> = path.split('/').map(decoded).collect();
        let segments = segments.ok_or(status::BAD_REQUEST)?;
        let name = Name::of(segments.iter().map(Vec::as_slice)).ok_or(status::NOT_FOUND)?;
        let file = self.folder.file(name.path()).map_err(|why| refused(FileRefusal::from(&why)))?;
        let metadata = file.metadata().map_err(|why| refused(FileRefusal::from(&why)))?;
        if !metadata.is_file() || name.is_folder() {
            return Err(status::NOT_FOUND);
        }
        file::read(file, &metadata, self.most).map_err(refused)
    }
}

fn refused(why: FileRefusal) -> u16 {
    match why {
        FileRefusal::Forbidden => status::FORBIDDEN,
        FileRefusal::Missing => status::NOT_FOUND,
        FileRefusal::Full | FileRefusal::TooLarge | FileRefusal::Failed => status::INTERNAL_SERVER_ERROR,
    }
}

/// Removes the percent-encoding of a segment; `None` if it is invalid. RFC 3986, section 2.1.
fn decoded(segment: &str) -> Option<Vec<u8>> {
    let mut octets = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(octet) = rest.next() {
        octets.push(match octet {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            octet => octet,
        });
    }
    Some(octets)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;
    use thinair_http::Method;

    #[test]
    fn no_path_leads_out_of_the_folder() {
        let folder = tempfile::TempDir::new().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("below")).unwrap();
        fs::write(folder.path().join("secret"), b"secret").unwrap();
        fs::write(root.join("below/a file"), b"content").unwrap();
        fs::write(root.join(".hidden"), b"hidden").unwrap();
        fs::write(root.join("long"), [0; 101]).unwrap();
        std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
        let site = ServedFolder::open(&root, 100).unwrap();
        let ask = |target: &str| {
            let request = HttpRequest { stream: 0, method: Method::Get, target: target.to_owned() };
            site.respond(&request)
        };
        for target in ["/below/a%20file", "/below/a%20file?x=/../y"] {
            assert_eq!(ask(target), HttpResponse { status: 200, body: b"content".to_vec() }, "{target}");
        }
        for (target, status) in [
            ("/../secret", 404),
            ("/%2e%2e/secret", 404),
            ("/..%2fsecret", 404),
            ("/below/../../secret", 404),
            ("//etc/passwd", 404),
            ("/link", 404),
            ("/.hidden", 404),
            ("/", 404),
            ("/below", 404),
            ("/below/", 404),
            ("/missing", 404),
            ("/a%00b", 404),
            ("/a%2", 400),
            ("/a%zz", 400),
            ("/a%+1", 400),
            ("/long", 500),
        ] {
            assert_eq!(ask(target), HttpResponse::empty(status), "{target}");
        }
    }
}
