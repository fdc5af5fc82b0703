//! The library as programs for rohc-lib see it.

#![allow(clippy::unwrap_used)]

#[path = "../../tests/mod.rs"]
mod common;

use std::path::PathBuf;

use common::{Library, root};

fn library(test: &str) -> Option<Library> {
    Library::for_test("librohc.so", "librohc.so.3", test)
}

fn source(name: &str) -> PathBuf {
    root().join("bindings/librohc/tests").join(name)
}

#[test]
fn the_headers_declare_what_the_library_exports() {
    let Some(library) = library("symbols") else { return };
    // C++ takes them, too.
    library.compile_text(
        "plain.cpp",
        "#include <rohc/rohc_comp.h>\n#include <rohc/rohc_decomp.h>\n\
         int main() {\n    uint8_t octets[9];\n    struct rohc_buf buf = rohc_buf_init_empty(octets, 9);\n\
         buf = rohc_buf_init_empty(octets, 9);\n    return rohc_buf_is_empty(buf) && rohc_version() ? 0 : 1;\n}\n",
    );
    if let Some(symbols) = library.symbols() {
        assert_eq!(symbols.len(), 63, "{symbols:?}");
        let inline = |name: &String| name.starts_with("rohc_buf_");
        let declared = library.declared("rohc", "rohc_").into_iter().filter(|name| !inline(name)).collect();
        assert_eq!(symbols, declared);
    }
}

#[test]
fn the_functions_do_what_callers_of_rohc_lib_expect() {
    let Some(library) = library("interface") else { return };
    let program = library.compile(&source("interface.c"));
    print!("{}", library.run(&program, &[], &[]));
    library.run(&program, &[], &[("THINAIR_ROHC_RTP", "guess"), ("THINAIR_ROHC_PEER", "thinair")]);
}

#[test]
fn a_pdcp_entity_gets_what_it_demands() {
    let Some(library) = library("bearer") else { return };
    print!("{}", library.run(&library.compile(&source("bearer.c")), &[], &[]));
}

#[test]
fn captures_come_back_octet_for_octet() {
    let Some(library) = library("captures") else { return };
    let captures = Library::captures();
    let paths: Vec<_> = captures.iter().map(String::as_str).collect();
    let program = library.compile(&source("captures.c"));
    print!("{}", library.run(&program, &paths, &[]));
    library.run(&program, &paths, &[("THINAIR_ROHC_PEER", "thinair")]);
}

#[test]
fn garbage_calls_harm_nobody() {
    let Some(library) = library("garbage") else { return };
    print!("{}", library.run(&library.compile(&source("garbage.c")), &["100000"], &[]));
}

#[test]
fn sequences_of_calls_harm_nobody() {
    let Some(library) = library("sequence") else { return };
    let captures = Library::captures();
    let arguments: Vec<_> =
        ["/dev/null", "10"].into_iter().chain(captures.iter().map(String::as_str)).collect();
    print!("{}", library.run(&library.compile(&source("sequence.c")), &arguments, &[]));
}
