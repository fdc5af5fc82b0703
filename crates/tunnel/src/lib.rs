//! A tunnel for IP packets over links where octets are dear: headers compressed by ROHC, datagrams sealed.

#![deny(missing_docs)]

pub mod plan;
pub mod unit;
