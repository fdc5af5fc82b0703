//! Evaluation as a document: Claim, Method, Theirs, Ours, Why different.

use thinair_report::{Cell, Document, Section, Tile};

use crate::paper::{Findings, Paper, RunPlan};

/// Whole evaluation, for the terminal or a page.
pub fn document(paper: &Paper, plan: &RunPlan, findings: &Findings) -> Document {
    let about = paper.about();
    let size = if plan.quick { "quick run" } else { "full run" };
    let document = Document::new(about.title)
        .subtitle(format!("{}; {size}, seed {}", about.source, plan.seed))
        .section(tiles(findings))
        .section(prose("Claim", &about.claim))
        .section(prose("Method", &about.method))
        .section(prose("Theirs", &about.theirs));
    let document = document.section(ours(findings));
    let document = findings.ours.iter().cloned().fold(document, Document::section);
    document.section(prose("Why different", &about.why_different))
}

fn tiles(findings: &Findings) -> Section {
    let held = findings.rows.iter().filter(|row| row.bar().is_some()).count();
    let missed = findings.missed().count();
    Section::new("").tiles([
        Tile::new("figures", Cell::integer(findings.rows.len())).detail("measured in this run"),
        Tile::new("bars", Cell::integer(held)).detail("figures that are held to a bar"),
        Tile::new("bars missed", Cell::integer(missed)),
    ])
}

fn ours(findings: &Findings) -> Section {
    findings
        .left_out
        .iter()
        .fold(Section::new("Ours"), |section, left_out| section.text(left_out.clone()))
        .text("“n ≤ m” is a figure that meets its bar, “n > m” one that does not; a figure alone has no bar.")
}

fn prose(heading: &str, paragraphs: &[&'static str]) -> Section {
    paragraphs.iter().fold(Section::new(heading), |section, text| section.text(*text))
}
