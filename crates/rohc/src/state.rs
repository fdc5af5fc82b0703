//! States of compressor and decompressor, and the events that change those of the decompressor. RFC 3095, section 4.3. The events of the
//! compressor: `flow::establish`.

/// Declares transitions: a method per event, and the whole table for a test.
macro_rules! transitions {
    ($state:ident: $($(#[$doc:meta])* $event:ident($($from:ident)|+ => $to:ident);)*) => {
        impl $state {
            $($(#[$doc])*
            #[inline]
            pub(crate) fn $event(&mut self) {
                if matches!(self, $(Self::$from)|+) {
                    *self = Self::$to;
                }
            })*

            #[cfg(test)]
            #[allow(clippy::type_complexity)]
            const EVENTS: &'static [(&'static str, fn(&mut Self))] =
                &[$((stringify!($event), Self::$event as fn(&mut Self))),*];
        }
    };
}

/// State of a context at the compressor. RFC 3095, section 4.3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompressorState {
    /// Initialization and Refresh: only IR packets.
    Ir,
    /// First Order: the dynamic part is being (re)established; no packet of type 0 or 1.
    Fo,
    /// Second Order: the smallest packet that fits.
    So,
}

impl CompressorState {
    /// Name in RFC 3095, section 4.3.1.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ir => "IR",
            Self::Fo => "FO",
            Self::So => "SO",
        }
    }
}

impl DecompressorState {
    /// Name in RFC 3095, section 4.3.2.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nc => "NC",
            Self::Sc => "SC",
            Self::Fc => "FC",
        }
    }
}

/// State of a context at the decompressor. RFC 3095, sections 4.3.2 and 5.3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DecompressorState {
    /// No Context: only IR packets are decompressed.
    #[default]
    Nc,
    /// Static Context: only packets with a CRC of 7 or 8 bits.
    Sc,
    /// Full Context: every packet.
    Fc,
}

transitions! {
    DecompressorState:
    /// A packet with dynamic information was verified.
    on_success(Nc | Sc | Fc => Fc);
    /// An IR packet without dynamic chain was verified.
    on_static(Nc => Sc);
    /// k_1 of the last n_1 packets failed.
    on_dynamic_damage(Fc => Sc);
    /// k_2 of the last n_2 updates failed.
    on_static_damage(Sc => Nc);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use core::fmt::Write as _;

    /// Name and effect of an event.
    type Event<S> = (&'static str, fn(&mut S));

    fn table<S: Copy + core::fmt::Debug>(states: &[S], events: &[Event<S>]) -> String {
        let mut table = String::new();
        for (name, event) in events {
            let _ = write!(table, "{name}:");
            for state in states {
                let mut next = *state;
                event(&mut next);
                let _ = write!(table, " {state:?}>{next:?}");
            }
            table.push('\n');
        }
        table
    }

    #[test]
    fn the_decompressor_moves_like_the_figure_of_section_5_3_2() {
        use DecompressorState::{Fc, Nc, Sc};
        assert_eq!(
            table(&[Nc, Sc, Fc], DecompressorState::EVENTS),
            "on_success: Nc>Fc Sc>Fc Fc>Fc\n\
             on_static: Nc>Sc Sc>Sc Fc>Fc\n\
             on_dynamic_damage: Nc>Nc Sc>Sc Fc>Sc\n\
             on_static_damage: Nc>Nc Sc>Nc Fc>Fc\n"
        );
    }
}
