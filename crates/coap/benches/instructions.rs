//! Instructions of ten exchanges, independent of the machine's speed and load.
//!
//! `cargo bench -p thinair-coap --bench instructions` has valgrind count the instructions of ten exchanges: the server
//! receives a Confirmable GET, finds no duplicate of it and stores it, the application answers with 23 octets, and the
//! piggybacked response is sent. It needs valgrind and `gungraun-runner` in the version of the `gungraun` crate; `make
//! bench` installs both.
//!
//! The limit is 15,000, 1,500 an exchange. `bare_coap_lite` is the crate coap-lite, which only decodes and encodes the
//! same messages.

// `main!` and the attributes of gungraun write modules and functions without documentation.
#![allow(missing_docs, unreachable_pub)]

use std::hint::black_box;
use std::net::{Ipv6Addr, SocketAddr};

use callgrind::instructions_alone;
use coap_lite::{CoapOption, CoapRequest, MessageClass, Packet, ResponseType};
use gungraun::{library_benchmark, library_benchmark_group, main};
use thinair_coap::{Builder, Code, Config, Endpoint, Event, Limits, Response, Token, Type, number};
use thinair_wire::time::Instant;

#[path = "../../rohc/benches/common/callgrind.rs"]
mod callgrind;

/// Number of exchanges measured, and number of exchanges before them.
const MEASURED: u16 = 10;
const BEFORE: u16 = 5_000;

const PAYLOAD: &[u8; 23] = b"2026-01-01 12:00:00.000";

#[library_benchmark]
#[bench::one_peer(BenchServer::ready(1))]
#[bench::peers_1000(BenchServer::ready(1_000))]
fn exchange(server: &'static mut BenchServer) {
    server.exchange();
}

#[library_benchmark]
#[bench::duplicates(BenchServer::with_duplicates())]
fn duplicate(server: &'static mut BenchServer) {
    server.receive();
}

#[library_benchmark]
#[bench::one_peer(BenchServer::ready(1))]
fn bare_coap_lite(server: &'static mut BenchServer) {
    server.coap_lite();
}

library_benchmark_group!(name = ten_exchanges, benchmarks = [exchange, duplicate, bare_coap_lite]);

main!(config = instructions_alone(), library_benchmark_groups = ten_exchanges);

struct BenchServer {
    endpoint: Endpoint<SocketAddr>,
    requests: Vec<(SocketAddr, Vec<u8>)>,
    buffer: Vec<u8>,
}

impl BenchServer {
    /// Leaks the server, so that the measurement does not free it.
    fn ready(peers: u16) -> &'static mut Self {
        let mut random = 0_u64;
        let config = Config { limits: Limits { max_peers: 2_000, ..Limits::default() }, ..Config::default() };
        let endpoint = Endpoint::new(config, move || {
            random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            random
        });
        let request = |i: u16| {
            let peer = SocketAddr::from((Ipv6Addr::LOCALHOST, 40_000 + i % peers));
            let mut octets = vec![0; 40];
            let token = Token::of(u64::from(i), 2);
            let mut builder =
                Builder::new(&mut octets, Type::Confirmable, Code::GET, i, &token).expect("there is room");
            builder.option(number::URI_PATH, b"time").expect("there is room");
            let len = builder.finish();
            octets.truncate(len);
            (peer, octets)
        };
        let requests = (0..BEFORE).map(request).collect();
        let mut server = Self { endpoint, requests, buffer: vec![0; 1_152] };
        server.exchange();
        server.requests = (BEFORE..BEFORE + MEASURED).map(request).collect();
        Box::leak(Box::new(server))
    }

    fn with_duplicates() -> &'static mut Self {
        let server = Self::ready(1);
        server.exchange();
        server
    }

    fn exchange(&mut self) {
        let now = Instant::from_millis(1);
        for (peer, request) in &self.requests {
            let event = self.endpoint.handle_datagram(now, *peer, black_box(request));
            let Some(Event::Request { id, message, .. }) = event else { panic!("it is a request") };
            assert!(message.options.is_path("/time"));
            self.endpoint.respond(now, id, &Response::content(&PAYLOAD[..]).format(0)).expect("it waits");
            let transmit = self.endpoint.poll_transmit(now, &mut self.buffer).expect("it was answered");
            black_box(&self.buffer[..transmit.len]);
        }
    }

    fn receive(&mut self) {
        let now = Instant::from_millis(2);
        for (peer, request) in &self.requests {
            assert!(self.endpoint.handle_datagram(now, *peer, black_box(request)).is_none());
            let transmit = self.endpoint.poll_transmit(now, &mut self.buffer).expect("it is remembered");
            black_box(&self.buffer[..transmit.len]);
        }
    }

    fn coap_lite(&mut self) {
        for (peer, request) in &self.requests {
            let packet = Packet::from_bytes(black_box(request)).expect("it is a message");
            let mut request = CoapRequest::from_packet(packet, *peer);
            assert_eq!(request.get_path(), "time");
            let response = request.response.as_mut().expect("it is a request");
            response.message.header.code = MessageClass::Response(ResponseType::Content);
            response.message.add_option(CoapOption::ContentFormat, Vec::new());
            response.message.payload = PAYLOAD.to_vec();
            black_box(response.message.to_bytes().expect("it can be written"));
        }
    }
}
