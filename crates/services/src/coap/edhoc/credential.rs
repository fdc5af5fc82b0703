//! Credentials and private keys, and their octets: a CWT Claims Set (RFC 8392) with a COSE_Key (RFC 9052), as in RFC 9528,
//! section 3.5.2.

use std::fmt::{self, Write as _};

use p256::elliptic_curve::Generate as _;
use p256::elliptic_curve::sec1::ToSec1Point as _;
use p256::{PublicKey, SecretKey};
use zeroize::Zeroizing;

use super::message::is_point;

/// Octets of a private key, and of a coordinate of a public key.
pub(super) const KEY: usize = 32;

/// Longest credential, in octets: `lakers` has room for it beside the other parts of a message.
const MAX_CREDENTIAL: usize = 128;

/// Longest kid, in octets.
const MAX_KID: usize = 7;

/// `{1: 2, -1: 1, -4: d}` without `d`: a private key of P-256 as a COSE_Key.
const PRIVATE: [u8; 8] = [0xA3, 0x01, 0x02, 0x20, 0x01, 0x23, 0x58, 0x20];

/// A private key of P-256. It stays where it is: moving it leaves no copy.
#[derive(Clone)]
pub struct PrivateKey(Box<Zeroizing<[u8; KEY]>>);

impl PrivateKey {
    /// Creates a key from random numbers of the system.
    pub fn random() -> Self {
        Self(Box::new(Zeroizing::new(SecretKey::generate().to_bytes().into())))
    }

    /// Decodes a COSE_Key of this kind: `{1: 2, -1: 1, -4: h'...'}`.
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let octets = octets.strip_prefix(&PRIVATE).filter(|octets| octets.len() == KEY)?;
        let mut key = Box::new(Zeroizing::new([0; KEY]));
        key.copy_from_slice(octets);
        SecretKey::from_slice(&key[..]).ok()?;
        Some(Self(key))
    }

    /// Encodes the key as a COSE_Key.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new([&PRIVATE, &self.0[..]].concat())
    }

    fn public(&self) -> PublicKey {
        SecretKey::from_slice(&self.0[..]).expect("the key was checked").public_key()
    }

    /// Returns the credential of the key. The kid has 1 to 7 octets, and the subject at most 23.
    pub fn credential(&self, kid: &[u8], subject: &str) -> Option<Credential> {
        let point = self.public().to_sec1_point(false);
        let head = |major: u8, len: usize, most: usize| (len <= most).then_some([major | len as u8]);
        let octets: [&[u8]; 10] = [
            // {2: subject, 8: {1: {1: 2, 2: kid, -1: 1, -2: x, -3: y}}}
            &[0xA2, 0x02],
            &head(0x60, subject.len(), 23)?,
            subject.as_bytes(),
            &[0x08, 0xA1, 0x01, 0xA5, 0x01, 0x02, 0x02],
            &head(0x40, kid.len(), MAX_KID)?,
            kid,
            &[0x20, 0x01, 0x21, 0x58, 0x20],
            point.x()?,
            &[0x22, 0x58, 0x20],
            point.y()?,
        ];
        Credential::decode(&octets.concat())
    }

    /// True if a credential is of this key.
    pub fn is_of(&self, credential: &Credential) -> bool {
        let point = self.public().to_sec1_point(false);
        point.x().is_some_and(|x| **x == credential.key())
    }

    pub(super) fn octets(&self) -> [u8; KEY] {
        **self.0
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey")
    }
}

/// A credential: a CWT Claims Set with a public key of P-256 and a kid.
#[derive(Clone, Debug)]
pub struct Credential(lakers::Credential);

impl Credential {
    /// Decodes a credential, also as the value of `{14: ...}` (kccs). Its octets are authenticated as they are.
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let octets = octets.strip_prefix(&[0xA1, 0x0E]).unwrap_or(octets);
        if octets.len() > MAX_CREDENTIAL {
            return None;
        }
        let credential = lakers::Credential::parse_ccs(octets).ok()?;
        let kid = credential.kid?.len();
        let is_sound = credential.public_key().is_some_and(|key| is_point(&key));
        (is_sound && (1..=MAX_KID).contains(&kid)).then_some(Self(credential))
    }

    /// Returns the CWT Claims Set.
    pub fn encode(&self) -> &[u8] {
        self.0.bytes.as_slice()
    }

    /// Returns the kid.
    pub fn kid(&self) -> &[u8] {
        self.0.kid.as_ref().map(|kid| kid.as_slice()).unwrap_or_default()
    }

    fn key(&self) -> [u8; KEY] {
        self.0.public_key().unwrap_or_default()
    }

    /// True if ID_CRED names the credential.
    pub(super) fn is_named_by(&self, id: &lakers::IdCred) -> bool {
        self.0.by_kid().is_ok_and(|own| own.as_full_value() == id.as_full_value())
    }

    pub(super) const fn inner(&self) -> lakers::Credential {
        self.0
    }
}

/// `{14: ...}` in the diagnostic notation of CBOR (RFC 8949, section 8), as others read it.
impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{14: ")?;
        let mut octets = self.encode();
        notation(f, &mut octets)?;
        f.write_char('}')
    }
}

/// Writes the next item: the kinds that a credential may have, all with heads of one or two octets.
fn notation(f: &mut fmt::Formatter<'_>, octets: &mut &[u8]) -> fmt::Result {
    let mut next = || {
        let (first, rest) = octets.split_first()?;
        *octets = rest;
        Some(*first)
    };
    let first = next().ok_or(fmt::Error)?;
    let argument = match first & 0x1F {
        24 => next().ok_or(fmt::Error)?,
        argument => argument,
    };
    match first >> 5 {
        0 => write!(f, "{argument}"),
        1 => write!(f, "{}", -1 - i16::from(argument)),
        major @ (2 | 3) => {
            let (string, rest) = octets.split_at_checked(argument.into()).ok_or(fmt::Error)?;
            *octets = rest;
            if major == 3 {
                return write!(f, "{:?}", String::from_utf8_lossy(string));
            }
            f.write_str("h'")?;
            string.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
            f.write_char('\'')
        }
        5 => {
            f.write_char('{')?;
            for pair in 0..argument {
                f.write_str(if pair > 0 { ", " } else { "" })?;
                notation(f, octets)?;
                f.write_str(": ")?;
                notation(f, octets)?;
            }
            f.write_char('}')
        }
        _ => Err(fmt::Error),
    }
}
