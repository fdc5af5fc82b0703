#![allow(clippy::unwrap_used)]

use thinair_rohc::profile::coap::outline::{Class, append};
use thinair_rohc::profile::coap::{BaseEnd, BasePath, BaseTemplate, ChecksumMode, IpIdMode, MessageIdMode};
use thinair_wire::header::coap::{Code, Type};

use super::*;

#[test]
fn what_is_written_reads_back_as_the_same_bases() {
    let mut random = Xorshift(1);
    for _ in 0..2_000 {
        let bases: Vec<Base> = (0..random.below(4)).map(|_| base(&mut random)).collect();
        let file = text(bases.iter().map(|base| (base, "a \\ \"comment\"\nof two lines".to_owned())));
        let back = read::bases(&file).unwrap_or_else(|error| panic!("{error:#}\n{file}"));
        assert!(back == bases, "{file}");
        assert_eq!(name(&back), name(&bases));
        assert!(file.contains(&format!("# template {}\n", name(&bases))));
        assert_eq!(text(back.iter().map(|base| (base, "a \\ \"comment\"\nof two lines".to_owned()))), file);
    }
}

#[test]
fn a_name_tells_lists_apart() {
    let mut random = Xorshift(2);
    let [a, b] = [(); 2].map(|()| base(&mut random));
    let names = [&[][..], &[a], &[b], &[a, b], &[b, a]].map(name);
    for (i, one) in names.iter().enumerate() {
        assert_eq!(one.len(), 16);
        assert!(!names[i + 1..].contains(one), "{names:?}");
    }
}

/// The example in the module documentation is a valid template file.
#[test]
fn the_example_is_a_template_file() {
    let lines = include_str!("../template.rs").lines().filter_map(|line| line.strip_prefix("//!"));
    let example: Vec<_> = lines.skip_while(|line| *line != " ```toml").skip(1).collect();
    let end = example.iter().position(|line| *line == " ```").unwrap();
    let bases = read::bases(&example[..end].join("\n")).unwrap();
    assert_eq!(bases.len(), 1);
    let template = bases[0].templates().next().unwrap();
    assert_eq!((template.outline, template.token.len()), (&b"\xb4time"[..], 4));
}

fn base(random: &mut Xorshift) -> Base {
    let v6 = random.below(2) == 0;
    let mut end = || {
        let mut address = [0; 16];
        let len = if v6 { 16 } else { 4 };
        address[..len].iter_mut().for_each(|octet| *octet = random.below(256) as u8);
        BaseEnd { address, port: random.below(65_536) as u16 }
    };
    let (source, destination) = (end(), end());
    let checksums = [ChecksumMode::Zero, ChecksumMode::Carried, ChecksumMode::Elided];
    let ip_ids = [IpIdMode::Constant, IpIdMode::Counted, IpIdMode::Lsb, IpIdMode::Irregular];
    let mut base = Base::new(&BasePath {
        v6,
        source,
        destination,
        tos: random.below(256) as u8,
        ttl: random.below(256) as u8,
        df: !v6 && random.below(2) == 0,
        flow_label: if v6 { random.below(1 << 20) as u32 } else { 0 },
        checksum: random.one_of(&checksums),
        ip_id: if v6 { IpIdMode::Constant } else { random.one_of(&ip_ids) },
    });
    while !push(&mut base, random) {}
    for _ in 0..random.below(4) {
        push(&mut base, random);
    }
    base
}

/// Adds a template; returns false if there is no room.
fn push(base: &mut Base, random: &mut Xorshift) -> bool {
    let types = [Type::Confirmable, Type::NonConfirmable, Type::Acknowledgement, Type::Reset];
    let ids = [MessageIdMode::Counted, MessageIdMode::OfRequest, MessageIdMode::Irregular];
    let modes = [
        TokenMode::Static,
        TokenMode::CountedUint,
        TokenMode::Counted,
        TokenMode::OfRequest,
        TokenMode::Irregular,
    ];
    let token_mode = random.one_of(&modes);
    let len = if token_mode == TokenMode::CountedUint { 0 } else { random.below(9) as usize };
    let token = random.octets(len);
    let (mut room, mut outline_len) = ([0; 256], 0);
    for _ in 0..random.below(5) {
        let value = if random.below(2) == 0 { b"t=\\\" ".to_vec() } else { random.octets(3) };
        let class = match random.below(12) {
            0 => Class::Counted,
            1 => Class::Lsb,
            2 => Class::Step(random.below(256) as u8),
            3 => Class::Block(random.below(16) as u8),
            4 => Class::BlockOfRequest(random.below(16) as u8),
            5 => Class::PartialIv((random.below(32) as u8) << 3, &value),
            6 => Class::Irregular(random.below(256) as u8),
            7 => Class::Variable,
            8 => Class::Prefix(6 + random.below(250) as u8, &value),
            9 => Class::Static(&[]),
            _ => Class::Static(&value),
        };
        let delta = [0, 1, 3, 6, 11, 300][random.below(6) as usize];
        append(&mut room, &mut outline_len, delta, &class);
    }
    base.push(&BaseTemplate {
        message_type: random.one_of(&types),
        code: Code(random.below(256) as u8),
        message_id: random.one_of(&ids),
        token_mode,
        token: &token,
        outline: &room[..outline_len],
    })
}

/// Marsaglia's xorshift64.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    fn octets(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}
