//! Names the shared library: `libthinair-rohc.so.0`.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libthinair-rohc.so.0");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
