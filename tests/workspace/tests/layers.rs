//! Dependencies between crates point down, and crates of one layer do not depend on each other.
//!
//! Dependencies and build dependencies go to a lower layer. Dev-dependencies may also stay in their layer, as a test
//! may compare two crates, but they do not point up: a crate is tested with what it depends on. See ARCHITECTURE.md.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use thinair_tests::{metadata, root, text};

/// Layer of every crate, including planned ones. A crate that is not listed fails the test.
const LAYERS: &[(&str, u8)] = &[
    ("thinair-wire", 0),
    ("thinair-rohc", 1),
    ("thinair-coap", 1),
    ("thinair-dtls", 1),
    ("thinair-lowpan", 1),
    ("thinair-ule", 1),
    ("thinair-segment", 1),
    ("thinair-session", 1),
    ("thinair-link", 1),
    ("thinair-os", 2),
    ("thinair-capture", 2),
    ("thinair-report", 2),
    ("thinair-analyze", 3),
    ("thinair-tunnel", 3),
    ("thinair-emulator", 3),
    ("thinair-services", 3),
    ("thinair", 5),
    ("thinair-c", 5),
    ("thinair-librohc", 5),
    // The laboratory: above all of the product, so that no product crate can depend on it.
    ("thinair-coap-2015", 6),
    ("thinair-http", 6),
    ("thinair-http-services", 7),
    ("thinair-simulation", 7),
    ("thinair-papers", 8),
    ("thinair-lab", 9),
    // No crate depends on the tests of the workspace.
    ("thinair-tests", 10),
];

/// Maximum number of crates of `make demo`.
const MOST_OF_DEMO: usize = 67;

/// Prefix of the names of this workspace's crates, and only of theirs.
const PREFIX: &str = "thinair-";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrow {
    Normal,
    Build,
    Dev,
}

#[test]
fn arrows_between_crates_point_down() {
    let complaints: Vec<_> =
        arrows().into_iter().filter_map(|(from, to, arrow)| complaint(&from, &to, arrow)).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn the_product_does_not_know_the_laboratory() {
    let root = root();
    let folder = |package: &Value| {
        let manifest = Path::new(&text(package, "manifest_path")).to_owned();
        manifest.strip_prefix(&root).unwrap().iter().next().unwrap().to_owned()
    };
    let packages = packages();
    let within = |house: &str| -> Vec<_> {
        packages.iter().filter(|p| folder(p) == house).map(|package| text(package, "name")).collect()
    };
    let (product, laboratory) = (within("crates"), within("lab"));
    assert!(product.contains(&"thinair".to_owned()) && laboratory.contains(&"thinair-lab".to_owned()));
    for (from, to, arrow) in arrows() {
        let is_wrong = product.contains(&from) && laboratory.contains(&to);
        assert!(!is_wrong, "{from} is of the product, and {to} of the laboratory ({arrow:?})");
    }
    let highest = product.iter().filter_map(|name| layer(name)).max();
    for name in laboratory {
        assert!(layer(&name) > highest, "{name} is not above the product");
    }
}

/// Number of crates of `make demo`, counted as `cargo tree -e normal --prefix none | sort -u | wc -l` does.
#[test]
fn the_demo_is_built_of_few_crates() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "-p", "thinair", "--no-default-features", "--features", "analyze"])
        .args(["-e", "normal", "--prefix", "none"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let crates: BTreeSet<_> = tree.lines().collect();
    assert!(crates.len() <= MOST_OF_DEMO, "{} crates: {crates:#?}", crates.len());
}

#[test]
fn every_crate_has_a_layer() {
    for package in packages() {
        let name = text(&package, "name");
        assert!(layer(&name).is_some(), "{name} has no layer: give it one in {}", file!());
    }
}

#[test]
fn an_arrow_that_points_up_or_sideways_is_told() {
    use Arrow::{Build, Dev, Normal};
    let refused = [
        ("thinair-wire", "thinair-rohc", Normal),
        ("thinair-wire", "thinair-rohc", Build),
        ("thinair-wire", "thinair-rohc", Dev),
        ("thinair-rohc", "thinair-coap", Normal),
        ("thinair-capture", "thinair-report", Build),
        ("thinair-new", "thinair-wire", Dev),
        ("thinair", "thinair-tests", Normal),
        ("thinair", "thinair-new", Normal),
        ("thinair", "thinair-simulation", Normal),
        ("thinair-tunnel", "thinair-simulation", Dev),
    ];
    for (from, to, arrow) in refused {
        assert!(complaint(from, to, arrow).is_some(), "{from} -> {to}, {arrow:?}");
    }
    let taken = [
        ("thinair-rohc", "thinair-wire", Normal),
        ("thinair", "thinair-wire", Build),
        ("thinair-lab", "thinair", Normal),
        ("thinair-capture", "thinair-report", Dev),
    ];
    for (from, to, arrow) in taken {
        assert_eq!(complaint(from, to, arrow), None);
    }
}

fn complaint(from: &str, to: &str, arrow: Arrow) -> Option<String> {
    let (Some(upper), Some(lower)) = (layer(from), layer(to)) else {
        return Some(format!("{from} -> {to}: one of them is in no layer"));
    };
    let is_down = match arrow {
        Arrow::Normal | Arrow::Build => lower < upper,
        Arrow::Dev => lower <= upper,
    };
    (!is_down).then(|| format!("{from} (layer {upper}) -> {to} (layer {lower}), {arrow:?}"))
}

fn layer(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

/// Dependencies between crates of this project, by path or from a registry.
fn arrows() -> Vec<(String, String, Arrow)> {
    let mut arrows = Vec::new();
    for package in packages() {
        for dependency in package["dependencies"].as_array().unwrap() {
            let to = text(dependency, "name");
            let arrow = match dependency["kind"].as_str() {
                None => Arrow::Normal,
                Some("build") => Arrow::Build,
                Some("dev") => Arrow::Dev,
                Some(kind) => panic!("a dependency of the kind `{kind}`"),
            };
            if to.starts_with(PREFIX) {
                arrows.push((text(&package, "name"), to, arrow));
            }
        }
    }
    assert!(!arrows.is_empty(), "cargo metadata tells no dependency");
    arrows
}

fn packages() -> Vec<Value> {
    metadata()["packages"].as_array().unwrap().clone()
}
