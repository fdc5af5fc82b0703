//! Tests of the endpoint, by subject.

mod reliability;
mod support;
