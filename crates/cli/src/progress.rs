//! A progress bar on standard error, if that is a terminal.

/// Template of a bar that counts octets.
pub const OCTETS: &str = "{wide_bar} {decimal_bytes} of {decimal_total_bytes}, {eta} left";

/// Template of a bar that counts items.
pub const COUNT: &str = "{wide_bar} {pos} of {len}, {eta} left";

pub use bar::{ProgressBar, bar};

#[cfg(feature = "progress")]
mod bar {
    use std::io::{IsTerminal as _, stderr};

    pub use indicatif::ProgressBar;
    use indicatif::ProgressStyle;

    /// Returns a bar up to `len` with this template. It is hidden if standard error is not a terminal.
    pub fn bar(len: u64, text: &str) -> ProgressBar {
        if !stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(len);
        match ProgressStyle::with_template(text) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }
}

/// Placeholder for builds without the feature `progress`.
#[cfg(not(feature = "progress"))]
mod bar {
    /// A bar that is never visible.
    pub struct ProgressBar;

    impl ProgressBar {
        pub(crate) fn set_position(&self, _: u64) {}
        pub(crate) fn inc(&self, _: u64) {}
        pub(crate) fn finish_and_clear(&self) {}
    }

    /// Returns the invisible bar.
    pub fn bar(_: u64, _: &str) -> ProgressBar {
        ProgressBar
    }
}
