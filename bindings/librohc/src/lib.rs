//! The engine of `thinair-rohc` with the binary interface of rohc-lib: `librohc.so.3`.
//!
//! Programs that are linked with rohc-lib 2.3 run with this library instead. The headers in `include/rohc/` are for those that are
//! compiled anew. `docs/c.md` lists where the two differ; what cannot be done is answered by an error.
//!
//! - [`abi`]: structures and numbers as C sees them.
//! - [`comp`] and [`decomp`]: the functions of the two sides.
//! - [`text`]: the functions that turn numbers to text.
//! - [`handle`]: a pointer of C, with one call at a time.
//! - `side`: what the two sides have in common; `profiles`, `clock`, `trace`: what each has of its own.

pub mod abi;
mod clock;
pub mod comp;
pub mod decomp;
pub mod handle;
mod profiles;
mod side;
pub mod text;
mod trace;
