//! A relay between clients and a server, for messages that are sent again.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::*;

/// Number of the OSCORE option.
const OSCORE: u8 = 9;

/// Relay, which keeps what clients have sent.
pub(crate) struct Relay {
    front: SocketAddr,
    requests: Arc<Mutex<Vec<Vec<u8>>>>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    pub(crate) fn new(server: SocketAddr) -> Self {
        let [front, back] = [(); 2].map(|()| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            Arc::new(socket)
        });
        back.connect(server).unwrap();
        let address = front.local_addr().unwrap();
        let (requests, client) =
            (Arc::<Mutex<Vec<Vec<u8>>>>::default(), Arc::<Mutex<Option<SocketAddr>>>::default());
        let is_over = Arc::<AtomicBool>::default();
        let up = {
            let (front, back, client) = (front.clone(), back.clone(), client.clone());
            let (requests, is_over) = (requests.clone(), is_over.clone());
            move || {
                let mut buffer = [0; 2_000];
                while !is_over.load(Ordering::Relaxed) {
                    let Ok((len, from)) = front.recv_from(&mut buffer) else { continue };
                    *client.lock().unwrap() = Some(from);
                    requests.lock().unwrap().push(buffer[..len].to_vec());
                    let _ = back.send(&buffer[..len]);
                }
            }
        };
        let down = {
            let is_over = is_over.clone();
            move || {
                let mut buffer = [0; 2_000];
                while !is_over.load(Ordering::Relaxed) {
                    let Ok(len) = back.recv(&mut buffer) else { continue };
                    if let Some(client) = *client.lock().unwrap() {
                        let _ = front.send_to(&buffer[..len], client);
                    }
                }
            }
        };
        let threads = vec![std::thread::spawn(up), std::thread::spawn(down)];
        Self { front: address, requests, is_over, threads }
    }

    pub(crate) fn uri(&self, path: &str) -> String {
        format!("coap://{}{path}", self.front)
    }

    /// Returns the protected requests so far.
    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        let is_request = |message: &&Vec<u8>| {
            let options = 4 + usize::from(message[0] & 0xF);
            // Before the OSCORE option there may be Uri-Host and Observe.
            let mut walk =
                thinair_wire::header::coap::CoapOptions::new(message.get(options..).unwrap_or_default());
            message[1] > 0 && message[1] < 0x20 && walk.any(|option| option.number == u16::from(OSCORE))
        };
        self.requests.lock().unwrap().iter().filter(is_request).cloned().collect()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// Sends a message again as Confirmable, with another Message ID: that is not protected, so that it is no duplicate. Returns the answer.
pub(crate) fn replay(server: SocketAddr, message: &[u8], message_id: u16) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut again = message.to_vec();
    again[0] &= 0b1100_1111;
    again[2..4].copy_from_slice(&message_id.to_be_bytes());
    socket.send_to(&again, server).unwrap();
    let mut answer = [0; 2_000];
    let len = socket.recv(&mut answer).unwrap();
    answer[..len].to_vec()
}
