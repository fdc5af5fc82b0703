use std::collections::BTreeMap;

use super::*;
use crate::{WorkProgress, work};

fn wrong(text: &str) -> String {
    ExperimentPlan::read(text).unwrap_err().to_string()
}

const SMALL: &str = "[link]\npreset = 'gprs'\n[requests]\ncount = 4\n[runs]\ncount = 3\nseed = 9\n\
    [sweep]\n'link.down.loss' = [0, 20]\n'clients.congestion' = ['rfc7252', 'fasor']\n";

/// All runs of a plan, in the order in which they end.
fn records(plan: &ExperimentPlan, threads: usize) -> Vec<RunRecord> {
    let jobs: Vec<ExperimentJob> = plan.jobs().collect();
    let mut records = Vec::new();
    work(
        &jobs,
        threads,
        |job| plan.run(job, plan.seed),
        |step| {
            if let WorkProgress::Done(record) = step {
                records.push(record);
            }
            true
        },
    );
    records
}

#[test]
fn errors_have_the_line_the_key_and_what_to_do() {
    for (text, parts) in [
        ("[link]\npreset = 'gprs", &["line 2"][..]),
        ("title = 'x'\n[lnk]\n", &["line 2", "lnk", "link"]),
        ("[link]\npreset = 'gsm'\n", &["line 2: link.preset", "gprs"]),
        ("[link.up]\n\ndelay = 5\n", &["line 3", "500ms"]),
        ("[link.up]\nrate = '0k'\n", &["line 2", "20k"]),
        ("[link.down]\nloss = 120\n", &["line 2: link.down.loss", "0 to 100"]),
        ("[link.both]\nloss = -1\n", &["line 2: link.both.loss"]),
        ("[link.up]\nburst = 3\n", &["line 2: link.up.burst", "give loss"]),
        ("[link.up]\nloss = 90\nburst = 2\n", &["line 3: link.up.burst", "too short"]),
        ("[link.up]\nqueue = { target = '5ms' }\n", &["line 2: link.up.queue.codel", "codel = true"]),
        ("[link.up]\nber = 2\n", &["line 2: link.up.ber"]),
        ("[link.up]\ndeliver_damaged = true\n", &["line 2: link.up.deliver_damaged", "give ber"]),
        ("[rohc]\nprofiles = ['v1']\n", &["line 1: rohc.mode", "off"]),
        ("[rohc]\nmode = 'x'\n", &["line 2", "off"]),
        ("[rohc]\nmode = 'u'\nmax_cid = 16\n", &["rohc.max_cid is 16; give 0 to 15"]),
        ("[rohc]\nmode = 'u'\ncid = 'large'\nmax_cid = 16384\n", &["rohc.max_cid is 16384; give 0 to 16383"]),
        ("[rohc]\nmode = 'u'\ncid = 'middle'\n", &["line 3", "large"]),
        ("[rohc]\nmode = 'u'\nprofiles = ['v2']\n", &["line 3: rohc.profiles", "coap"]),
        ("[clients]\ncongestion = 'bbr'\n", &["line 2: clients.congestion", "rfc6298", "fasor-quick"]),
        ("[clients]\ncount = 0\n", &["line 2: clients.count", "1 to 9000"]),
        ("[clients]\ntransport = 'tcp'\nprotection = 5\n", &["line 3: clients.protection"]),
        ("[clients]\ntransport = 'oscore'\nprotection = 5\n", &["line 3: clients.protection"]),
        ("[clients]\ntransport = 'dtls'\nprotection = 5\n", &["line 3: clients.protection"]),
        ("[requests]\ninterval = '1s'\nthink = '1s'\n", &["line 3: requests.think", "take one out"]),
        ("[requests]\npath = 'a'\n", &["line 2: requests.path"]),
        ("[requests]\nstart = '2h'\n", &["runs.end", "later"]),
        ("[runs]\n\ncount = 0\n", &["line 3: runs.count"]),
        ("[download]\nwindow = 0\n", &["line 2: download.window"]),
        ("[sweep]\n'link.down.loss' = 5\n", &["line 2: sweep: link.down.loss", "a list"]),
        ("[sweep]\nlink.down.loss = [5]\n", &["line 2: sweep: link", "quotes"]),
        ("[sweep]\n'runs.count' = [5]\n", &["line 2: sweep: runs.count", "cannot"]),
        ("[sweep]\n'link.down.loss' = []\n", &["line 2", "no values"]),
        ("[sweep]\n'link.down.loss' = [1, 1]\n", &["line 2", "twice"]),
        ("[sweep]\n'link.down.los' = [5]\n", &["line 1: sweep: link.down.los=5", "unknown field"]),
        ("[sweep]\n\n'link.down.loss' = [5, 101]\n", &["line 3: link.down.loss", "101"]),
        ("[link]\npreset='gprs'\n[sweep]\n'link.preset.x' = [5]\n", &["line 4", "no section"]),
    ] {
        let message = wrong(text);
        assert!(parts.iter().all(|part| message.contains(part)), "{text}: {message}");
    }
    let many = (0..20).map(|number| format!("'link.k{number}' = [1, 2]\n")).collect::<String>();
    assert!(wrong(&format!("[sweep]\n{many}")).contains("100000 cells"));
}

#[test]
fn cells_are_the_cross_product_in_the_order_of_the_file() {
    let plan = ExperimentPlan::read(SMALL).unwrap();
    assert_eq!(plan.keys, ["link.down.loss", "clients.congestion"]);
    assert_eq!(
        plan.cells.iter().map(ExperimentCell::name).collect::<Vec<_>>(),
        [
            "link.down.loss=0,clients.congestion=rfc7252",
            "link.down.loss=0,clients.congestion=fasor",
            "link.down.loss=20,clients.congestion=rfc7252",
            "link.down.loss=20,clients.congestion=fasor",
        ]
    );
    let settings: std::collections::BTreeSet<_> = plan.cells.iter().map(|cell| cell.settings).collect();
    assert_eq!(settings.len(), 4);
    assert_eq!(plan.jobs().count(), 12);
    assert_eq!(ExperimentPlan::read("").unwrap().cells.len(), 1);
}

#[test]
fn settings_of_a_cell_do_not_hang_on_others_nor_on_how_it_is_written() {
    let of = |text: &str| ExperimentPlan::read(text).unwrap().cells[0].settings;
    let one = of("[link.down]\nloss = 5\n[clients]\nnstart = 2\n");
    assert_eq!(
        one,
        of("title = 'x'\n[clients]\nnstart = 2\n[link]\ndown = { loss = 5.0 }\n[runs]\nseed = 7\n")
    );
    assert_eq!(one, of("[clients]\nnstart = 2\n[sweep]\n'link.down.loss' = [5, 6]\n"));
    assert_ne!(one, of("[link.down]\nloss = 5\n[clients]\nnstart = 3\n"));
    assert_ne!(one, of("[link.down]\nloss = 5\n[clients]\nnstart = 2\n[runs]\nend = '2h'\n"));
}

#[test]
fn one_way_goes_before_both_and_both_before_the_preset() {
    let plan = ExperimentPlan::read(
        "[link]\npreset = 'gprs'\nup.delay = '1ms'\nboth = { delay = '2ms', jitter = '0ms', queue = { octets = 99 } }\n\
         down.queue = { packets = 3 }\n",
    );
    let model = plan.unwrap().cells[0].scenario.model;
    assert_eq!([model.a_to_b.delay.as_millis(), model.b_to_a.delay.as_millis()], [1, 2]);
    assert_eq!(model.a_to_b.jitter, thinair_link::Jitter::default());
    assert_eq!([model.a_to_b.queue.packets, model.b_to_a.queue.packets], [1_000, 3]);
    assert_eq!([model.a_to_b.queue.octets, model.b_to_a.queue.octets], [99, 99]);
    assert_eq!(model.a_to_b.airtime, thinair_link::preset::GPRS.model.a_to_b.airtime);
}

/// 17 clients have 17 flows each way: with 16 contexts they take each other's.
#[test]
fn more_clients_than_contexts_need_more_contexts() {
    let octets = |rohc: &str| {
        let text = format!(
            "[rohc]\nmode = 'o'\n{rohc}\n[clients]\ncount = 17\n[requests]\ncount = 20\n[runs]\ncount = 1\n"
        );
        let plan = ExperimentPlan::read(&text).unwrap();
        records(&plan, 1)[0].sample.octets.unwrap()
    };
    let (few, many) = (octets(""), octets("cid = 'large'\nmax_cid = 127"));
    assert!(many < few * 0.9, "{many} of {few}");
}

#[test]
fn more_flows_than_contexts_are_noted() {
    let notes = |text: &str| ExperimentPlan::read(text).unwrap().notes();
    let rohc = "[rohc]\nmode = 'o'\n";
    let small = notes(&format!("{rohc}[clients]\ncount = 17\n"));
    assert_eq!(small.len(), 1);
    assert!(small[0].starts_with("ROHC has 16 contexts for 17 flows in a direction"), "{small:?}");
    assert!(small[0].ends_with("rohc.max_cid = 16"), "{small:?}");
    assert_eq!(notes(&format!("{rohc}[clients]\ncount = 16\n")), [""; 0]);
    assert_eq!(notes("[clients]\ncount = 17\n"), [""; 0], "without ROHC there are no contexts");
    assert_eq!(notes(&format!("{rohc}cid = 'large'\nmax_cid = 16\n[clients]\ncount = 17\n")), [""; 0]);
    // A download is a flow, too; of several cells the worst is named.
    let beside = format!("{rohc}[clients]\ncount = 16\n[download]\n[sweep]\n'rohc.max_cid' = [15, 3]\n");
    assert!(notes(&beside)[0].starts_with("ROHC has 4 contexts for 17 flows"), "{:?}", notes(&beside));
}

#[test]
fn threads_and_shards_make_no_difference() {
    let plan = ExperimentPlan::read(SMALL).unwrap();
    let sorted = |records: &[RunRecord]| {
        let mut lines: Vec<_> = records.iter().map(RunRecord::to_line).collect();
        lines.sort();
        lines
    };
    let (one, four) = (records(&plan, 1), records(&plan, 4));
    assert_eq!(sorted(&one), sorted(&four));
    let mut results = Results::default();
    for shard in [1, 0] {
        for record in one.iter().skip(shard).step_by(2) {
            results.add(RunRecord::of_line(&record.to_line()).unwrap()).unwrap();
        }
    }
    let mut whole = Results::default();
    four.into_iter().for_each(|record| whole.add(record).unwrap());
    let figures = |results: &Results| {
        let cells =
            results.cells().map(|cell| (cell.name(), Metric::ALL.map(|metric| cell.summary(&metric))));
        cells.collect::<Vec<_>>()
    };
    assert_eq!(figures(&results), figures(&whole));
    assert_eq!(
        results.cells().map(CellResults::name).collect::<Vec<_>>(),
        plan.cells.iter().map(ExperimentCell::name).collect::<Vec<_>>()
    );
    assert!(plan.jobs().all(|job| whole.has(&plan.cells[job.cell], 9, job.run)));
    assert!(!whole.has(&plan.cells[0], 9, 3) && !whole.has(&plan.cells[0], 8, 0));
}

#[test]
fn runs_that_do_not_go_together_are_refused() {
    let plan = ExperimentPlan::read(SMALL).unwrap();
    let record = plan.run(&ExperimentJob { cell: 0, run: 0 }, 9);
    let other = |text: &str| ExperimentPlan::read(text).unwrap().run(&ExperimentJob { cell: 0, run: 0 }, 9);
    let mut results = Results::default();
    results.add(record.clone()).unwrap();
    results.add(record.clone()).unwrap();
    assert_eq!(results.len(), 1);
    let mut changed = record;
    changed.sample = Sample::default();
    assert!(matches!(results.add(changed), Err(Merge::Differs { .. })));
    assert!(matches!(results.add(other(&SMALL.replace("gprs", "wifi"))), Err(Merge::OtherPlan(_))));
    assert!(matches!(results.add(other("[requests]\ncount = 1\n")), Err(Merge::OtherKeys(_))));
    assert_eq!(results.len(), 1);
    assert!(results.are_of(&plan.cells) && !results.are_of(&plan.cells[1..]));
    assert!(RunRecord::of_line("{\"schema\":\"thinair.lab.run/1\",\"cel").is_err());
}

#[test]
fn a_run_without_a_response_has_no_times() {
    let plan = ExperimentPlan::read("[link.down]\nloss = 100\n[requests]\ncount = 1\n").unwrap();
    let sample = plan.run(&ExperimentJob { cell: 0, run: 0 }, 1).sample;
    assert_eq!((sample.fct_ms, sample.crtt_ms, sample.worst_ms, sample.octets), (None, None, None, None));
    assert_eq!(
        (sample.rtr_percent, sample.given_up, sample.goodput_per_s),
        (Some(500.0), Some(1.0), Some(0.0))
    );
}

#[test]
fn the_template_is_a_plan() {
    let plan = ExperimentPlan::read(TEMPLATE).unwrap();
    assert_eq!((plan.cells.len(), plan.count), (9, 30));
    // Commented-out keys are valid, too.
    let all: String = TEMPLATE
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with('[') && rest.contains("and") => String::new(),
            Some(rest) if rest.contains(" = ") || rest.starts_with('[') => format!("{rest}\n"),
            Some(_) => String::new(),
            None => format!("{line}\n"),
        })
        .collect();
    ExperimentPlan::read(&all).unwrap();
}

/// Plans of the manual are valid, and every key of the format has its row in it.
#[test]
fn the_manual_is_right() {
    let manual = include_str!("../../../../docs/lab.md");
    let plans: Vec<_> =
        manual.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!plans.is_empty());
    plans
        .iter()
        .for_each(|plan| drop(ExperimentPlan::read(plan).unwrap_or_else(|error| panic!("{plan}\n{error}"))));
    let rows: BTreeMap<_, _> =
        manual.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).collect();
    let source = include_str!("document.rs");
    for key in source.lines().filter_map(|line| line.trim().strip_prefix("pub(super) ")) {
        let Some((key, of)) = key.split_once(": ") else { continue };
        let is_section = ["Section", "Clients", "Requests", "Runs", "Table"]
            .iter()
            .any(|section| of.contains(&format!("{section},")) || of.contains(&format!("{section}>")));
        if is_section {
            continue;
        }
        let has = rows.keys().any(|row| row.split(['.', ' ', ',']).any(|part| part == key));
        assert!(has, "docs/lab.md has no row for {key}");
    }
    for metric in Metric::ALL {
        assert!(rows.contains_key(metric.key), "{}", metric.key);
    }
}
