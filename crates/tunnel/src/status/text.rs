//! The status as text, for people.
