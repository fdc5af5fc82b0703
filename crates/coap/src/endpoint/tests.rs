//! Tests of the endpoint, by subject.

mod blocks;
mod memory;
mod observing;
mod protection;
mod reliability;
mod streams;
mod support;
