//! Names the shared library: `librohc.so.3`.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librohc.so.3");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
