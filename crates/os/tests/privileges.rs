//! Giving up privileges, in a process of its own: there must be no other thread, and there is no way back.
//!
//! So this is a program: without arguments it starts itself, once for each scene.

#[cfg(target_os = "linux")]
#[path = "privileges/scenes.rs"]
mod scenes;

fn main() {
    #[cfg(target_os = "linux")]
    scenes::main();
}
