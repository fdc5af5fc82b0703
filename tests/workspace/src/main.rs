//! Prints the memory of compressors and decompressors: `make sizes`.
//!
//! For this machine it prints the size of a context and of a block for extension headers. For the programs in
//! `firmware/`, which are its arguments as `CONTEXTS PROFILES/ELF...`, it prints flash and RAM. Flash is nonvolatile:
//! code, constants, and the initial values of variables. RAM is the variables, without the stack. It fails if an
//! endpoint takes more flash than [`MOST_FLASH`].

use std::path::Path;

use anyhow::{Context, Result, ensure};
use object::elf::{SHF_ALLOC, SHF_WRITE};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SectionKind, SymbolKind};
use thinair_rohc::{Compressor, Decompressor};

/// Flash that an endpoint with these profiles may take, in octets: 3 to 5 % more than it takes, as compilers differ.
const MOST_FLASH: [(&str, u64); 3] =
    [("udp,ip", 86_500), ("udp,ip,coap", 138_000), ("rtp,udp,esp,ip,udp-lite,tcp,coap", 212_000)];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    println!("On this machine, in octets:");
    println!("{:<14}{:>10}{:>10}", "", "context", "block");
    let kinds = [
        ("compressor", Compressor::octets_per_context()),
        ("decompressor", Decompressor::octets_per_context()),
    ];
    for (name, (context, block)) in kinds {
        println!("{name:<14}{context:>10}{block:>10}");
    }
    let Some(count) = arguments.next() else { return Ok(()) };
    let count: u64 = count.parse().context("the number of contexts")?;
    println!();
    println!("On a Cortex-M4 with {count} contexts, in octets:");
    println!("{:<14}{:>10}{:>10}   RAM is made of", "", "flash", "RAM");
    let mut last = None;
    for path in arguments {
        let path = Path::new(&path);
        let profiles =
            path.parent().and_then(Path::file_name).map(|folder| folder.to_string_lossy().into_owned());
        if last != profiles {
            println!("{}:", profiles.as_deref().unwrap_or_default());
            last = profiles;
        }
        let name = path.file_stem().context("a program has a name")?.to_string_lossy().into_owned();
        let file = std::fs::read(path).with_context(|| path.display().to_string())?;
        let sizes = ProgramSizes::of(&file).with_context(|| path.display().to_string())?;
        let objects: Vec<_> = sizes.objects.iter().map(|(name, octets)| format!("{name} {octets}")).collect();
        println!("{name:<14}{:>10}{:>10}   {}", sizes.flash, sizes.ram, objects.join(", "));
        let most = MOST_FLASH.iter().find(|(of, _)| name == "endpoint" && last.as_deref() == Some(of));
        if let Some((of, most)) = most {
            let flash = sizes.flash;
            ensure!(
                flash <= *most,
                "an endpoint with {of} takes {flash} octets of flash, more than the {most} of MOST_FLASH in {}",
                file!()
            );
        }
    }
    Ok(())
}

/// Memory of a program, in octets.
#[derive(Debug, Default)]
struct ProgramSizes {
    flash: u64,
    ram: u64,
    /// Static objects in RAM: name and octets.
    objects: Vec<(String, u64)>,
}

impl ProgramSizes {
    fn of(file: &[u8]) -> Result<Self> {
        let file = object::File::parse(file)?;
        let mut sizes = Self::default();
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            if !sh_flags.contains(SHF_ALLOC) {
                continue;
            }
            if sh_flags.contains(SHF_WRITE) {
                sizes.ram += section.size();
            }
            if section.kind() != SectionKind::UninitializedData {
                sizes.flash += section.size();
            }
        }
        for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.size() > 0) {
            let Some(section) = symbol.section_index() else { continue };
            let SectionFlags::Elf { sh_flags, .. } = file.section_by_index(section)?.flags() else {
                continue;
            };
            if sh_flags.contains(SHF_WRITE) {
                sizes.objects.push((plain(symbol.name()?), symbol.size()));
            }
        }
        sizes.objects.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        ensure!(sizes.flash > 0 && sizes.ram > 0, "nothing is left of the program");
        Ok(sizes)
    }
}

/// Name of a static object in the source, without path and decoration, in lower case.
fn plain(symbol: &str) -> String {
    let capitals = |part: &&str| part.len() > 2 && part.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let found = symbol.split(|c: char| !c.is_ascii_uppercase() && c != '_').rfind(capitals);
    found.unwrap_or(symbol).trim_matches('_').to_lowercase()
}
