//! Sets `cfg(small)` if the crate is built for size (`opt-level` s or z). The fields of a format are then read and written by calls,
//! which saves flash (`make sizes`); otherwise this code is inlined, which saves instructions (`scripts/instructions`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(small)");
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    if level == "s" || level == "z" {
        println!("cargo::rustc-cfg=small");
    }
}
