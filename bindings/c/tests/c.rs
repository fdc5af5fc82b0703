//! The library as C programs see it: the header agrees with the library, and every function does what the header promises.

#![allow(clippy::unwrap_used)]

#[path = "../../tests/mod.rs"]
mod common;

use std::fmt::Write as _;
use std::path::PathBuf;

use common::{Library, root};
use thinair_c::abi::{Config, Context, Error, PROFILES, Packet, Statistics};

fn library(test: &str) -> Option<Library> {
    Library::for_test("libthinair_c.so", "libthinair-rohc.so.0", test)
}

fn source(name: &str) -> PathBuf {
    root().join("bindings/c").join(name)
}

#[test]
fn the_header_agrees_with_the_library() {
    let Some(library) = library("layout") else { return };
    let mut text = "#include \"thinair_rohc.h\"\n".to_owned();
    for (name, size, fields) in [Config::LAYOUT, Packet::LAYOUT, Statistics::LAYOUT, Context::LAYOUT] {
        writeln!(text, "_Static_assert(sizeof({name}) == {size}, \"{name}\");").unwrap();
        for (field, offset) in fields {
            writeln!(text, "_Static_assert(offsetof({name}, {field}) == {offset}, \"{name} {field}\");")
                .unwrap();
        }
    }
    for (name, number) in Error::ALL {
        writeln!(text, "_Static_assert(THINAIR_ROHC_{name} == {number}, \"{name}\");").unwrap();
    }
    for (bit, number) in PROFILES.iter().enumerate() {
        writeln!(text, "_Static_assert(THINAIR_ROHC_PROFILE_{number:04X} == 1 << {bit}, \"profile\");")
            .unwrap();
    }
    let longest = thinair_rohc::feedback::MAX_ELEMENT;
    writeln!(text, "_Static_assert(THINAIR_ROHC_MAX_FEEDBACK >= {longest}, \"feedback\");").unwrap();
    text.push_str("int main(void) { return 0; }\n");
    library.compile_text("layout.c", &text);
    // C++ takes the header, too.
    library.compile_text(
        "plain.cpp",
        "#include \"thinair_rohc.h\"\nint main() { return thinair_rohc_size(nullptr); }\n",
    );
    if let Some(symbols) = library.symbols() {
        assert_eq!(library.declared("", "thinair_rohc_"), symbols);
    }
}

#[test]
fn the_functions_do_what_the_header_promises() {
    let Some(library) = library("verbs") else { return };
    library.run(&library.compile(&source("tests/verbs.c")), &[], &[]);
}

#[test]
fn the_example_runs() {
    let Some(library) = library("example") else { return };
    print!("{}", library.run(&library.compile(&source("example.c")), &[], &[]));
}

#[test]
fn a_bearer_with_losses_delivers_what_arrives() {
    let Some(library) = library("pdcp") else { return };
    let program = library.compile(&root().join("extras/c/pdcp-loop.c"));
    let printed = library.run(&program, &[], &[]);
    print!("{printed}");
    assert!(printed.contains(" 0 not decompressed, 0 wrong;"));
}

#[test]
fn python_calls_the_library() {
    let Some(library) = library("python") else { return };
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let script = root().join("extras/c/rohc.py");
    let printed = library.run("python3".as_ref(), &[&script.to_string_lossy()], &[]);
    assert!(printed.ends_with("57 -> 59\n57 -> 59\n57 -> 12\n57 -> 12\n"), "{printed}");
}

#[test]
fn captures_come_back_octet_for_octet() {
    let Some(library) = library("captures") else { return };
    let captures = Library::captures();
    let paths: Vec<_> = captures.iter().map(String::as_str).collect();
    print!("{}", library.run(&library.compile(&source("tests/captures.c")), &paths, &[]));
}

#[test]
fn garbage_calls_harm_nobody() {
    let Some(library) = library("garbage") else { return };
    print!("{}", library.run(&library.compile(&source("tests/garbage.c")), &["100000"], &[]));
}

#[test]
fn sequences_of_calls_harm_nobody() {
    let Some(library) = library("sequence") else { return };
    let captures = Library::captures();
    let arguments: Vec<_> =
        ["/dev/null", "10"].into_iter().chain(captures.iter().map(String::as_str)).collect();
    print!("{}", library.run(&library.compile(&source("tests/sequence.c")), &arguments, &[]));
}
