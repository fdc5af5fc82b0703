//! Forms of addresses: SAC and SAM, M, DAC and DAM. RFC 6282, section 3.1.1.
//!
//! A form determines which octets are in-line ([`AddressForm::pick`]) and how the address is restored
//! ([`AddressForm::expand`]). An address is compressed to the shortest form that restores it: compression is
//! expansion and comparison.

use thinair_wire::coder::{Coder, Refusal, Step};

use crate::context::{Contexts, LowpanContext};
use crate::link::{Iid, short_iid};

/// `fe80::/64`, the link-local prefix padded with zeros.
const LINK_LOCAL: [u8; 8] = [0xFE, 0x80, 0, 0, 0, 0, 0, 0];

/// Longest prefix of a Unicast-Prefix-based multicast address, in bits. RFC 3306, section 4.
const MAX_MULTICAST_PREFIX: u8 = 64;

/// Source or destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Source,
    Destination,
}

/// A compressed address: its form, and the octets in-line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Address {
    /// M; never set for a source.
    pub(crate) multicast: bool,
    /// SAC or DAC.
    pub(crate) stateful: bool,
    /// SAM or DAM.
    pub(crate) mode: u8,
    /// SCI or DCI; 0 where there is none.
    pub(crate) context: u8,
    /// Octets in-line, from the first on.
    pub(crate) inline: [u8; 16],
}

/// Reason why an address cannot be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressFault {
    /// A reserved combination of bits.
    Reserved,
    /// Unknown context.
    NoContext,
    /// The interface identifier is derived from a link address that is missing.
    NoLinkAddress,
}

/// A row of the tables of section 3.1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressForm {
    /// 128 bits.
    Full,
    /// 64 bits: the interface identifier.
    Iid,
    /// 16 bits: the end of the interface identifier of a short address.
    Short,
    /// 0 bits: the interface identifier is derived from the encapsulating header.
    Elided,
    /// 0 bits: `::`.
    Unspecified,
    /// 48 bits: `ffXX::00XX:XXXX:XXXX`.
    Group48,
    /// 32 bits: `ffXX::00XX:XXXX`.
    Group32,
    /// 8 bits: `ff02::00XX`.
    Group8,
    /// 48 bits: `ffXX:XXLL:PPPP:PPPP:PPPP:PPPP:XXXX:XXXX`.
    Prefix48,
}

impl AddressForm {
    const fn of(role: Role, multicast: bool, stateful: bool, mode: u8) -> Option<Self> {
        Some(match (multicast, stateful, mode) {
            (false, false, 0b00) => Self::Full,
            (false, true, 0b00) => match role {
                Role::Source => Self::Unspecified,
                Role::Destination => return None,
            },
            (false, _, 0b01) => Self::Iid,
            (false, _, 0b10) => Self::Short,
            (false, _, 0b11) => Self::Elided,
            (true, false, 0b00) => Self::Full,
            (true, false, 0b01) => Self::Group48,
            (true, false, 0b10) => Self::Group32,
            (true, false, 0b11) => Self::Group8,
            (true, true, 0b00) => Self::Prefix48,
            _ => return None,
        })
    }

    /// Returns the octets in-line.
    const fn len(self) -> usize {
        match self {
            Self::Full => 16,
            Self::Iid => 8,
            Self::Group48 | Self::Prefix48 => 6,
            Self::Group32 => 4,
            Self::Short => 2,
            Self::Group8 => 1,
            Self::Elided | Self::Unspecified => 0,
        }
    }

    /// Returns the octets of `address` that are in-line.
    fn pick(self, address: &[u8; 16]) -> [u8; 16] {
        let a = address;
        let mut inline = [0; 16];
        match self {
            Self::Full => inline = *a,
            Self::Iid => inline[..8].copy_from_slice(&a[8..]),
            Self::Short => inline[..2].copy_from_slice(&a[14..]),
            Self::Elided | Self::Unspecified => {}
            Self::Group48 => inline[..6].copy_from_slice(&[a[1], a[11], a[12], a[13], a[14], a[15]]),
            Self::Group32 => inline[..4].copy_from_slice(&[a[1], a[13], a[14], a[15]]),
            Self::Group8 => inline[0] = a[15],
            Self::Prefix48 => inline[..6].copy_from_slice(&[a[1], a[2], a[12], a[13], a[14], a[15]]),
        }
        inline
    }

    /// Restores the address from the octets in-line, the context if the form is stateful, and the encapsulating
    /// header.
    fn expand(
        self,
        inline: &[u8; 16],
        context: Option<&LowpanContext>,
        encapsulation: Option<Iid>,
    ) -> Result<[u8; 16], AddressFault> {
        let i = inline;
        Ok(match self {
            Self::Full => *i,
            Self::Unspecified => [0; 16],
            Self::Iid => unicast(context, [i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7]]),
            Self::Short => unicast(context, short_iid([i[0], i[1]])),
            Self::Elided => {
                // A context that covers all bits needs no link address.
                let is_whole = context.is_some_and(|context| context.length() == 128);
                let iid = if is_whole { Some([0; 8]) } else { encapsulation };
                unicast(context, iid.ok_or(AddressFault::NoLinkAddress)?)
            }
            Self::Group48 => [0xFF, i[0], 0, 0, 0, 0, 0, 0, 0, 0, 0, i[1], i[2], i[3], i[4], i[5]],
            Self::Group32 => [0xFF, i[0], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, i[1], i[2], i[3]],
            Self::Group8 => [0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, i[0]],
            Self::Prefix48 => {
                let context = context.ok_or(AddressFault::NoContext)?;
                if context.length() > MAX_MULTICAST_PREFIX {
                    return Err(AddressFault::Reserved);
                }
                let mut address = [0; 16];
                address[..4].copy_from_slice(&[0xFF, i[0], i[1], context.length()]);
                address[4..12].copy_from_slice(&context.prefix()[..8]);
                address[12..].copy_from_slice(&i[2..6]);
                address
            }
        })
    }
}

/// Combines context and interface identifier: bits covered by the context are always used, those of the
/// interface identifier where it leaves any, and the remaining ones are zero.
fn unicast(context: Option<&LowpanContext>, iid: Iid) -> [u8; 16] {
    let mut address = [0; 16];
    address[8..].copy_from_slice(&iid);
    match context {
        Some(context) => context.over(address),
        None => {
            address[..8].copy_from_slice(&LINK_LOCAL);
            address
        }
    }
}

impl Address {
    /// Codes the octets in-line, one part of the format of LOWPAN_IPHC.
    #[inline(always)]
    pub(crate) fn code<'p, C: Coder<'p>>(&mut self, c: &mut C, role: Role) -> Step {
        let Some(form) = AddressForm::of(role, self.multicast, self.stateful, self.mode) else {
            return Err(Refusal::Malformed);
        };
        let name = match role {
            Role::Source => "Source Address",
            Role::Destination => "Destination Address",
        };
        match form.len() {
            0 => Ok(()),
            1 => part::<1, C>(c, name, &mut self.inline),
            2 => part::<2, C>(c, name, &mut self.inline),
            4 => part::<4, C>(c, name, &mut self.inline),
            6 => part::<6, C>(c, name, &mut self.inline),
            8 => part::<8, C>(c, name, &mut self.inline),
            _ => c.octets(name, &mut self.inline),
        }
    }

    /// Restores the address.
    pub(crate) fn expand(
        &self,
        role: Role,
        contexts: &Contexts,
        encapsulation: Option<Iid>,
    ) -> Result<[u8; 16], AddressFault> {
        let form =
            AddressForm::of(role, self.multicast, self.stateful, self.mode).ok_or(AddressFault::Reserved)?;
        let context = match form {
            // `::` has no context, although its bits are stateful.
            AddressForm::Unspecified => None,
            _ if self.stateful => Some(contexts.context(self.context).ok_or(AddressFault::NoContext)?),
            _ => None,
        };
        form.expand(&self.inline, context, encapsulation)
    }

    /// Returns the shortest form of `address`; of equal ones the stateless, then the lowest context.
    ///
    /// A context other than number 0 costs an octet, once for both addresses. A shorter form saves at least
    /// two, so the octet need not be considered.
    pub(crate) fn compress(
        role: Role,
        address: &[u8; 16],
        contexts: &Contexts,
        encapsulation: Option<Iid>,
    ) -> Self {
        // `::` needs no context, although its bits are stateful.
        if role == Role::Source && *address == [0; 16] {
            return Self { stateful: true, ..Self::default() };
        }
        let multicast = role == Role::Destination && address[0] == 0xFF;
        let mut best = Self { multicast, inline: *address, ..Self::default() };
        let mut len = AddressForm::Full.len();
        let stateless = core::iter::once((0, None));
        let stateful = contexts.iter().map(|(id, context)| (id, Some(context)));
        for (id, context) in stateless.chain(stateful) {
            let stateful = context.is_some();
            for mode in [0b11, 0b10, 0b01, 0b00] {
                let Some(form) = AddressForm::of(role, multicast, stateful, mode) else { continue };
                if form.len() >= len {
                    continue;
                }
                let inline = form.pick(address);
                if form.expand(&inline, context, encapsulation) == Ok(*address) {
                    best = Self { multicast, stateful, mode, context: id, inline };
                    len = form.len();
                }
            }
        }
        best
    }
}

/// Codes the first `N` octets of `value`.
#[inline(always)]
fn part<'p, const N: usize, C: Coder<'p>>(c: &mut C, name: &'static str, value: &mut [u8; 16]) -> Step {
    match value.first_chunk_mut::<N>() {
        Some(part) => c.octets(name, part),
        None => Err(Refusal::Malformed),
    }
}
