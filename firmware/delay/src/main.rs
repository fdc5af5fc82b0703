//! Prints instructions of one call for each row of the paper `coap-delay`, as the lines of
//! `lab/papers/src/coap_delay/instructions.csv`.
//!
//! For `qemu-system-arm -M mps2-an386 -icount shift=10`, in which each instruction takes 1,024 ns of virtual time.
//! SysTick counts at 25 MHz of that time, so that its ticks give the number of instructions within one. A real
//! processor has other timing: these are instructions, not cycles.

#![no_std]
#![no_main]

use core::hint::black_box;
use core::panic::PanicInfo;

use cortex_m::Peripherals;
use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::entry;
use cortex_m_semihosting::debug::{EXIT_FAILURE, EXIT_SUCCESS, exit};
use cortex_m_semihosting::hprintln;
use thinair_rohc::storage::{ExtensionBlock, Template};
use thinair_rohc::{CompressorStorage, DecompressorStorage};

use exchange::{BLOCKS, CONTEXTS, CallCase, ROOM};

#[path = "../../../lab/papers/src/coap_delay/exchange.rs"]
mod exchange;

/// Memory of profiles at one end, with four templates of CoAP messages per context.
type Rooms = ([ExtensionBlock; BLOCKS], [Template; 4 * CONTEXTS]);

/// Virtual time of an instruction, in nanoseconds, by `-icount shift=10`.
const INSTRUCTION: u64 = 1 << 10;
/// Virtual time of a tick in nanoseconds: the board's clock has 25 MHz.
const TICK: u64 = 40;
/// Mask of SysTick, which counts down in 24 bits.
const TICKS: u32 = 0x00FF_FFFF;

#[entry]
fn main() -> ! {
    let Some(mut peripherals) = Peripherals::take() else { fail("the peripherals are taken") };
    peripherals.SYST.set_clock_source(SystClkSource::Core);
    peripherals.SYST.set_reload(TICKS);
    peripherals.SYST.clear_current();
    peripherals.SYST.enable_counter();

    for case in CallCase::all() {
        let Some([compress, decompress]) = count(case) else { fail("a packet does not come, or not back") };
        for (side, instructions) in [("compress", compress), ("decompress", decompress)] {
            let (profile, kind, half) = (case.profile.name(), case.kind.name(), case.half.name());
            hprintln!("{},{},{},{},{}", profile, kind, half, side, instructions);
        }
    }
    exit(EXIT_SUCCESS);
    fail("the simulator goes on")
}

/// Instructions of one call to compress and of one to decompress.
fn count(case: CallCase) -> Option<[u64; 2]> {
    let config = case.config().ok()?;
    let mut near_storage = CompressorStorage::<CONTEXTS, Rooms>::sized();
    let (ready, number) = case.scout(&mut case.compressor(config, &mut near_storage))?;
    near_storage = CompressorStorage::sized();
    let mut far_storage = DecompressorStorage::<CONTEXTS, Rooms>::sized();
    let mut near = case.compressor(config, &mut near_storage);
    let mut far = case.decompressor(config.channel, &mut far_storage);
    if !case.replay(number, &mut near, &mut far) {
        return None;
    }
    let (mut sent, mut back) = ([0; ROOM], [0; ROOM]);
    let mut sent_len = 0;
    let compress = instructions(|| {
        let done = near.compress(ready.now, black_box(ready.packet()), &mut sent);
        sent_len = black_box(done.map_or(0, |(len, ..)| len));
    });
    let mut back_len = 0;
    let decompress = instructions(|| {
        let done = far.decompress(ready.now, black_box(ready.rohc()), &mut back);
        back_len = black_box(done.unwrap_or(0));
    });
    let is_right = sent.get(..sent_len)? == ready.rohc() && back.get(..back_len)? == ready.packet();
    is_right.then_some([compress, decompress])
}

/// Instructions of a call, without those of the measurement.
fn instructions(call: impl FnOnce()) -> u64 {
    let nothing = ticks(|| ());
    let ticks = ticks(call).saturating_sub(nothing);
    (u64::from(ticks) * TICK + INSTRUCTION / 2) / INSTRUCTION
}

#[inline(never)]
fn ticks(call: impl FnOnce()) -> u32 {
    let before = SYST::get_current();
    call();
    let after = SYST::get_current();
    before.wrapping_sub(after) & TICKS
}

fn fail(why: &str) -> ! {
    hprintln!("{}", why);
    exit(EXIT_FAILURE);
    loop {
        core::hint::spin_loop();
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    fail("panicked")
}
