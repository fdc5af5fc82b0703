//! A progress bar on standard error, where somebody may be waiting.

/// Text of a bar that counts octets.
pub const OCTETS: &str = "{wide_bar} {decimal_bytes} of {decimal_total_bytes}, {eta} left";

/// Text of a bar that counts what is done.
pub const COUNT: &str = "{wide_bar} {pos} of {len}, {eta} left";

pub use bar::{ProgressBar, bar};

#[cfg(feature = "progress")]
mod bar {
    use std::io::{IsTerminal as _, stderr};

    pub use indicatif::ProgressBar;
    use indicatif::ProgressStyle;

    /// A bar up to `len` with this text; it is hidden where standard error is no terminal.
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

/// A build without `progress` has no bar.
#[cfg(not(feature = "progress"))]
mod bar {
    /// Nothing that could be seen.
    pub struct ProgressBar;

    impl ProgressBar {
        pub(crate) fn set_position(&self, _: u64) {}
        pub(crate) fn finish_and_clear(&self) {}
    }

    /// No bar.
    pub fn bar(_: u64, _: &str) -> ProgressBar {
        ProgressBar
    }
}
