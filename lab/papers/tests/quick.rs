//! Quick runs of all papers against a record: figures per seed, and the ids that miss their bars.
//!
//! After an intended change of figures, replace `quick.txt` by the output of this test.

use std::fmt::Write;

use serde_json::Value;
use thinair_papers::{PAPERS, Paper, RunPlan, document, outcome};

const RECORD: &str = include_str!("quick.txt");

/// Record of a paper: number of rows, their digest, and the ids that miss their bars. Figures by the clock of the
/// machine are excluded; others are rounded to nine digits, so that differences between libraries for powers do not
/// matter.
fn recorded(paper: &Paper) -> String {
    let plan = RunPlan { quick: true, threads: 2, ..RunPlan::default() };
    let findings = paper.run(&plan, &|_, _| ()).expect("it runs");
    let page = document(paper, &plan, &findings).to_html();
    assert!(!page.contains("$("), "{} shows what is no figure", paper.about().name);

    let Value::Array(mut rows) = serde_json::to_value(outcome(paper, &findings).rows).expect("rows are JSON")
    else {
        return String::new();
    };
    rows.retain(|row| row["unit"] != "ns");
    rows.sort_by(|a, b| a["id"].as_str().cmp(&b["id"].as_str()));
    assert!(rows.windows(2).all(|two| two[0]["id"] != two[1]["id"]), "ids are unique");
    let mut text = String::new();
    rows.iter().for_each(|row| write_value(row, &mut text));
    let mut record = format!("{} {} {:016x}\n", paper.about().name, rows.len(), digest(&text));
    for id in rows.iter().filter(|row| row["met"] == false).filter_map(|row| row["id"].as_str()) {
        writeln!(record, "    missed {id}").expect("a text grows");
    }
    record
}

fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => write!(text, "{:.8e};", number.as_f64().unwrap_or(f64::NAN)),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| {
                text.push_str(name);
                write_value(value, text);
            });
            Ok(())
        }
        other => write!(text, "{other};"),
    }
    .expect("a text grows");
}

/// FNV-1a of 64 bits.
fn digest(text: &str) -> u64 {
    let step = |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01B3);
    text.bytes().fold(0xCBF2_9CE4_8422_2325, step)
}

#[test]
fn quick_runs_have_the_figures_of_the_record() {
    let found: String = PAPERS.iter().map(recorded).collect();
    assert!(found == RECORD, "{found}");
}
