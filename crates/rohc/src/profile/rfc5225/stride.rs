//! The scaling factor of RTP timestamps, as the compressor finds it. RFC 5225, section 6.6.8.

/// Packets in a row with the same step, for it to become the stride.
const EVEN: u8 = 3;

/// Steps that are no multiples of the stride, for it to be given up.
const MISFITS: u8 = 3;

/// Steps of the timestamps of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Strides {
    /// The last step from one MSN to the next, and packets in a row that had it.
    step: u32,
    run: u8,
    misfits: u8,
    /// Greatest common divisor of the steps since the first misfit.
    divisor: u32,
    has_begun: bool,
}

impl Strides {
    /// The stride to be used from a packet on whose timestamp is `diff` ahead of the last one and whose MSN is so much `ahead`.
    pub(super) fn watch(&mut self, stride: u32, diff: u32, ahead: u32) -> u32 {
        let step = diff.checked_div(ahead).filter(|step| step.wrapping_mul(ahead) == diff).unwrap_or(0);
        if step == 0 || step > 1 << 24 {
            self.run = 0;
            return stride;
        }
        self.run = if step == self.step { self.run.saturating_add(1) } else { 1 };
        self.step = step;
        let is_first = !core::mem::replace(&mut self.has_begun, true);
        if step == stride {
            (self.misfits, self.divisor) = (0, 0);
            return stride;
        }
        if is_first || self.run >= EVEN {
            // The first step is as good a guess as any.
            (self.misfits, self.divisor) = (0, 0);
            return step;
        }
        self.divisor = gcd(self.divisor, diff);
        self.misfits += u8::from(stride == 0 || !diff.is_multiple_of(stride));
        if self.misfits < MISFITS {
            return stride;
        }
        self.misfits = 0;
        core::mem::take(&mut self.divisor)
    }
}

fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
