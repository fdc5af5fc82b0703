//! CUBIC. RFC 9438.

use core::time::Duration;

use thinair_wire::time::Instant;

/// C of section 4.1.
const SCALE: f64 = 0.4;
/// beta of section 4.6.
const BETA: f64 = 0.7;

/// State since the last loss.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cubic {
    /// W_max: the window at the last loss.
    largest: f64,
    epoch: Option<Epoch>,
    /// Shortest round trip.
    shortest: Option<Duration>,
}

/// Stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// K, in seconds.
    back_at: f64,
    /// Window at the plateau.
    origin: f64,
    /// W_est: the window of Reno.
    friendly: f64,
}

impl Cubic {
    /// Number of segments to acknowledge before the window grows by one. Sections 4.2 to 4.5.
    pub(super) fn segments_per_growth(
        &mut self,
        now: Instant,
        window: u32,
        acked: u32,
        rtt: Option<Duration>,
    ) -> u32 {
        self.shortest = match (self.shortest, rtt) {
            (Some(shortest), Some(rtt)) => Some(shortest.min(rtt)),
            (shortest, rtt) => shortest.or(rtt),
        };
        let window = f64::from(window);
        let largest = self.largest;
        let epoch = self.epoch.get_or_insert_with(|| {
            let back_at = if largest > window { libm::cbrt((largest - window) / SCALE) } else { 0.0 };
            Epoch { start: now, back_at, origin: largest.max(window), friendly: window }
        });
        // Section 4.3: makes it as fast as Reno.
        let alpha = if epoch.friendly < largest { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
        epoch.friendly += alpha * f64::from(acked) / window;
        let time = (now.since(epoch.start) + self.shortest.unwrap_or_default()).as_secs_f64() - epoch.back_at;
        let target =
            (epoch.origin + SCALE * time * time * time).clamp(window, window * 1.5).max(epoch.friendly);
        // cwnd grows by (target - cwnd) / cwnd with each segment.
        let growth = target - window;
        if growth <= 0.0 { (window * 100.0) as u32 } else { (window / growth).max(1.0) as u32 }
    }

    /// Window after a loss. Sections 4.6 and 4.7.
    pub(super) fn on_loss(&mut self, window: u32) -> u32 {
        let window = f64::from(window);
        // Fast convergence: a flow that loses below its previous maximum leaves room for others.
        self.largest = if window < self.largest { window * (1.0 + BETA) / 2.0 } else { window };
        self.epoch = None;
        ((window * BETA) as u32).max(2)
    }
}
