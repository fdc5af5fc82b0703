//! Live page and metrics: [`Status`](crate::status::Status) for browsers and for Prometheus, over HTTP on a
//! loopback address.
//!
//! The server runs in its own thread, so that no browser delays packets: the daemon puts a status into the
//! [`Feed`] twice per second while there are readers.
//!
//! Pages of other sites in a browser cannot read the status: there is no CORS, and only loopback host names
//! are served, against DNS rebinding.

mod feed;
mod listener;
mod metrics;
mod page;

use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

pub use feed::Feed;
pub use metrics::metrics;

/// A running server. **It ends when this value is dropped.**
#[derive(Debug)]
pub struct Live {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Reason why the page cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The address is reachable by others.
    #[error(
        "the page cannot be served at {0}, since it has no access control; use a loopback address, such as \
         127.0.0.1:{port}, and from elsewhere `ssh -L {port}:127.0.0.1:{port}`",
        port = .0.port()
    )]
    NotLoopback(SocketAddr),
    /// A system call failed.
    #[error(
        "the page cannot be served at {address} (--http, or `http` in [seeing]): {error}{}",
        if error.kind() == io::ErrorKind::AddrInUse { "; give another port" } else { "" }
    )]
    Io {
        /// Address of the page.
        address: SocketAddr,
        /// Error of the system.
        error: io::Error,
    },
}

impl Live {
    /// Serves the statuses of `feed` at a loopback address; port 0 selects a free port.
    pub fn start(address: SocketAddr, feed: Feed) -> Result<Self, LiveError> {
        if !address.ip().to_canonical().is_loopback() {
            return Err(LiveError::NotLoopback(address));
        }
        let io = |error| LiveError::Io { address, error };
        let listener = std::net::TcpListener::bind(address).map_err(io)?;
        listener.set_nonblocking(true).map_err(io)?;
        let address = listener.local_addr().map_err(io)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(io)?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(io)?
        };
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            runtime.block_on(async {
                let serving = axum::serve(listener::Few::new(listener), page::router(feed));
                tokio::select! {
                    _ = serving.into_future() => {}
                    _ = stopped => {}
                }
            });
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("live page".to_owned()).spawn(serve).map_err(io)?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Address of the page.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_taken() {
        for address in
            ["0.0.0.0:80", "192.0.2.1:9000", "[::]:80", "[2001:db8::1]:80", "[::ffff:192.0.2.1]:80"]
        {
            let error = Live::start(address.parse().unwrap(), Feed::new()).unwrap_err();
            assert!(error.to_string().contains("no access control"), "{address}: {error}");
        }
        let live = Live::start("127.0.0.1:0".parse().unwrap(), Feed::new()).unwrap();
        assert!(live.address().port() != 0);
    }

    #[test]
    fn an_address_in_use_is_an_error_at_once() {
        let live = Live::start("127.0.0.1:0".parse().unwrap(), Feed::new()).unwrap();
        let error = Live::start(live.address(), Feed::new()).unwrap_err();
        let words = error.to_string();
        assert!(words.contains(&live.address().to_string()), "{words}");
        assert!(words.contains("--http") && words.contains("another port"), "{words}");
    }
}
