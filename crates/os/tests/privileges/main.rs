//! Giving up privileges, in a separate process: there must be no other thread, and they cannot be
//! regained.
//!
//! Therefore this is a program: without arguments it starts itself, once for each scene.

#[cfg(target_os = "linux")]
mod scenes;

fn main() {
    #[cfg(target_os = "linux")]
    scenes::main();
}
