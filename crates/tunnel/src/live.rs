//! The live page, and metrics: what [`Status`](crate::status::Status) says, for a browser and for Prometheus.
//!
//! It knows HTTP on a loopback address, and nothing of the tunnel but its statuses. It runs in a thread of its own, so
//! that no browser makes a packet wait: the daemon puts a status into the [`Feed`] twice a second, while somebody looks.
//!
//! Pages of other sites that a browser shows are outside. They may not read the status: there is no CORS, and a name
//! that suddenly points to this machine (DNS rebinding) is refused, because only names of loopback are served.

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

/// A server that runs. **It ends when this is dropped.**
#[derive(Debug)]
pub struct Live {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// Others could read it.
    #[error(
        "the page is for this machine alone, so {0} is refused; take a loopback address, such as 127.0.0.1:{port}, \
         and reach it from elsewhere by `ssh -L {port}:127.0.0.1:{port}`",
        port = .0.port()
    )]
    NotLoopback(SocketAddr),
    /// The system does not allow it.
    #[error("{address}: {error}")]
    Io {
        /// Where the page was to be.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
}

impl Live {
    /// Serves statuses of `feed` at a loopback address; port 0 is any that is free.
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

    /// Where the page is.
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
            assert!(error.to_string().contains("for this machine alone"), "{address}: {error}");
        }
        let live = Live::start("127.0.0.1:0".parse().unwrap(), Feed::new()).unwrap();
        assert!(live.address().port() != 0);
    }

    #[test]
    fn an_address_in_use_is_an_error_at_once() {
        let live = Live::start("127.0.0.1:0".parse().unwrap(), Feed::new()).unwrap();
        let error = Live::start(live.address(), Feed::new()).unwrap_err();
        assert!(error.to_string().contains(&live.address().to_string()), "{error}");
    }
}
