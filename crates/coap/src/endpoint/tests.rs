//! Tests of the endpoint, by subject.

mod blocks;
mod observing;
mod protection;
mod reliability;
mod streams;
mod support;
