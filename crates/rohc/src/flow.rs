//! Rules of robust compression that all profiles share, without formats: what both ends know of a flow, and conclude from time, losses
//! and feedback. The page `docs/engine.md` has them in the order of the life of a context.

pub(crate) mod arrival;
pub(crate) mod brief;
pub(crate) mod caution;
pub(crate) mod churn;
pub(crate) mod establish;
pub(crate) mod health;
pub(crate) mod pace;
pub(crate) mod pending;
pub(crate) mod receiver;
pub mod refresh;
pub(crate) mod search;
pub(crate) mod sender;
pub(crate) mod table;
pub(crate) mod worth;
