#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;
use thinair_coap::{Request, number};

use super::*;
use crate::coap::server::resources::support::{ask, at, get, state};

/// Largest file, in octets.
const MOST: usize = 4_000;

fn served(writable: bool) -> (TempDir, FileResource) {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("below")).unwrap();
    fs::write(folder.path().join("secret"), b"secret").unwrap();
    fs::write(root.join("note.txt"), b"a note").unwrap();
    fs::write(root.join("below/data.cbor"), b"\xA0").unwrap();
    fs::write(root.join(".hidden"), b"hidden").unwrap();
    fs::write(root.join("page.html"), b"<p>").unwrap();
    let files = FileResource::open(&root, MOST, writable).unwrap();
    (folder, files)
}

fn asked(files: &mut FileResource, request: &Request<'_>) -> Response<'static> {
    ask(files, at(0), request).unwrap()
}

fn etag_of(files: &mut FileResource, path: &str) -> Vec<u8> {
    asked(files, &get(path)).options.as_options().etag().unwrap().to_vec()
}

#[test]
fn files_have_their_format_and_an_etag() {
    let (_folder, mut files) = served(false);
    let note = asked(&mut files, &get("/note.txt"));
    assert_eq!((note.code, &*note.payload), (Code::CONTENT, &b"a note"[..]));
    assert_eq!(note.options.as_options().content_format(), Some(0));
    let etag = etag_of(&mut files, "/note.txt");
    assert_eq!(asked(&mut files, &get("/note.txt").etag(&etag)), Response::valid(&etag));
    assert_eq!(asked(&mut files, &get("/note.txt").accept(60)).code, code::NOT_ACCEPTABLE);
    let data = asked(&mut files, &get("/below/data.cbor").accept(60));
    assert_eq!(data.options.as_options().content_format(), Some(60));
    assert_eq!(asked(&mut files, &get("/page.html")).options.as_options().content_format(), None);
}

#[test]
fn another_content_has_another_etag_and_another_state() {
    let (folder, mut files) = served(false);
    let (before, was) = (etag_of(&mut files, "/note.txt"), state(&mut files, at(0), "/note.txt"));
    assert_eq!(state(&mut files, at(1), "/note.txt"), was);
    fs::write(folder.path().join("root/note.txt"), b"another note").unwrap();
    assert_ne!(etag_of(&mut files, "/note.txt"), before);
    assert_ne!(state(&mut files, at(1), "/note.txt"), was);
    fs::remove_file(folder.path().join("root/note.txt")).unwrap();
    assert_eq!(state(&mut files, at(1), "/note.txt").unwrap().version, 0);
    assert_eq!(asked(&mut files, &get("/note.txt")).code, code::NOT_FOUND);
}

#[test]
fn nothing_outside_of_the_folder_is_served() {
    let (folder, mut files) = served(true);
    let root = folder.path().join("root");
    symlink("../secret", root.join("relative")).unwrap();
    symlink(folder.path().join("secret"), root.join("absolute")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("note.txt", root.join("same")).unwrap();
    let paths = ["/../secret", "/below/../../secret", "/%2E%2E/secret", "/..%2Fsecret", "/relative"];
    for path in paths.into_iter().chain(["/absolute", "/up/secret", "/loop", "/.hidden", "//etc/passwd"]) {
        let response = asked(&mut files, &get(path));
        assert_eq!((response.code, response.payload.len()), (code::NOT_FOUND, 0), "{path}");
    }
    for path in ["/up/written", "/../written", "/.written", "/up/", "/below/../../written"] {
        let response = asked(&mut files, &Request::put(path, &b"x"[..]));
        assert_ne!(response.code.class(), 2, "{path}");
        assert_ne!(asked(&mut files, &Request::post(path, &b"x"[..])).code.class(), 2, "{path}");
    }
    assert_eq!(asked(&mut files, &Request::put("/relative", &b"x"[..])).code, code::CREATED);
    assert_ne!(asked(&mut files, &Request::delete("/up/secret")).code, code::DELETED);
    assert_eq!(fs::read(folder.path().join("secret")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    assert_eq!(&*asked(&mut files, &get("/same")).payload, b"a note");
}

#[test]
fn folders_are_lists_of_links() {
    let (folder, mut files) = served(false);
    fs::write(folder.path().join("root/a b.json"), b"{}").unwrap();
    let list = asked(&mut files, &get("/"));
    assert_eq!(list.options.as_options().content_format(), Some(40));
    let text = String::from_utf8(list.payload.into_owned()).unwrap();
    let expected = concat!(
        "</a%20b.json>;ct=50;sz=2;obs,</below/>;ct=40,</note.txt>;ct=0;sz=6;obs,",
        "</page.html>;sz=3;obs"
    );
    assert_eq!(text, expected);
    for path in ["/below", "/below/"] {
        assert_eq!(&*asked(&mut files, &get(path)).payload, b"</below/data.cbor>;ct=60;sz=1;obs");
    }
    assert_eq!(asked(&mut files, &get("/note.txt/")).code, code::NOT_FOUND);
    let etag = etag_of(&mut files, "/below");
    assert_eq!(asked(&mut files, &get("/below").etag(&etag)).code, code::VALID);
}

#[test]
fn what_may_not_be_written_is_not() {
    let (_folder, mut files) = served(false);
    for request in [
        Request::put("/note.txt", &b"x"[..]),
        Request::post("/", &b"x"[..]),
        Request::delete("/note.txt"),
        Request::new(code::PATCH, "/note.txt", &b"x"[..]),
    ] {
        assert_eq!(asked(&mut files, &request).code, code::METHOD_NOT_ALLOWED);
    }
    assert_eq!(&*asked(&mut files, &get("/note.txt")).payload, b"a note");
}

#[test]
fn preconditions_hold() {
    let (_folder, mut files) = served(true);
    let etag = etag_of(&mut files, "/note.txt");
    let put = |octets: &'static [u8]| Request::put("/note.txt", octets);
    let none = put(b"none").option(number::IF_NONE_MATCH, &[]);
    assert_eq!(asked(&mut files, &none).code, code::PRECONDITION_FAILED);
    let wrong = put(b"wrong").option(number::IF_MATCH, b"wrong");
    assert_eq!(asked(&mut files, &wrong).code, code::PRECONDITION_FAILED);
    let right = put(b"right").option(number::IF_MATCH, &etag);
    let changed = asked(&mut files, &right);
    assert_eq!(changed.code, Code::CHANGED);
    assert_eq!(changed.options.as_options().etag(), Some(&*etag_of(&mut files, "/note.txt")));
    assert_eq!(asked(&mut files, &right).code, code::PRECONDITION_FAILED, "it has another one now");
    let delete = Request::delete("/note.txt").option(number::IF_MATCH, &etag);
    assert_eq!(asked(&mut files, &delete).code, code::PRECONDITION_FAILED);
    assert_eq!(&*asked(&mut files, &get("/note.txt")).payload, b"right");
    let new = Request::put("/new", &b"new"[..]).option(number::IF_NONE_MATCH, &[]);
    assert_eq!(asked(&mut files, &new).code, code::CREATED);
    let any = Request::put("/other", &b"new"[..]).option(number::IF_MATCH, &[]);
    assert_eq!(asked(&mut files, &any).code, code::PRECONDITION_FAILED);
}

#[test]
fn files_are_made_replaced_and_removed() {
    let (folder, mut files) = served(true);
    let put = Request::put("/below/new.json", &b"{}"[..]);
    assert_eq!(asked(&mut files, &put).code, code::CREATED);
    assert_eq!(asked(&mut files, &put).code, Code::CHANGED);
    let wrong = Request::put("/below/new.json", &b"x"[..]).format(0);
    assert_eq!(asked(&mut files, &wrong).code, code::UNSUPPORTED_CONTENT_FORMAT);
    assert_eq!(asked(&mut files, &Request::put("/missing/new", &b"x"[..])).code, code::NOT_FOUND);
    assert_eq!(asked(&mut files, &Request::put("/below", &b"x"[..])).code, code::METHOD_NOT_ALLOWED);
    assert_eq!(asked(&mut files, &Request::put("/", &b"x"[..])).code, code::METHOD_NOT_ALLOWED);
    let post = Request::post("/below", &b"posted"[..]).format(0);
    let created = asked(&mut files, &post);
    let location: Vec<_> =
        created.options.as_options().all(number::LOCATION_PATH).map(<[u8]>::to_vec).collect();
    assert_eq!((created.code, location.len(), &location[0]), (code::CREATED, 2, &b"below".to_vec()));
    let path = format!("/below/{}", String::from_utf8_lossy(&location[1]));
    assert_eq!(&*asked(&mut files, &get(&path)).payload, b"posted");
    assert_eq!(asked(&mut files, &Request::post("/note.txt", &b"x"[..])).code, code::METHOD_NOT_ALLOWED);
    for _ in 0..2 {
        assert_eq!(asked(&mut files, &Request::delete(&path)).code, code::DELETED);
    }
    assert_eq!(asked(&mut files, &Request::delete("/below")).code, code::METHOD_NOT_ALLOWED);
    let left: Vec<_> = fs::read_dir(folder.path().join("root/below")).unwrap().collect();
    assert_eq!(left.len(), 2, "no temporary files are left: {left:?}");
}

#[test]
fn what_is_too_large_is_neither_read_nor_written() {
    let (folder, mut files) = served(true);
    fs::write(folder.path().join("root/large"), vec![0; MOST + 1]).unwrap();
    assert_eq!(asked(&mut files, &get("/large")).code, code::INTERNAL_SERVER_ERROR);
    let put = Request::put("/put", vec![0; MOST + 1]);
    // An endpoint would have reassembled it from blocks.
    let mut request = crate::coap::server::resources::support::received(&Request::put("/put", &b"x"[..]));
    request.payload = put.payload.into_owned().into();
    let Some(ResourceAnswer::Now(response)) = files.handle(at(0), &request) else { panic!() };
    assert_eq!(response.code, code::REQUEST_ENTITY_TOO_LARGE);
    assert!(!folder.path().join("root/put").exists());
}
