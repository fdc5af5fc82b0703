fn main() {
    let quick = std::env::args().any(|a| a == "quick");
    let paper = thinair_papers::by_name("coap-latency").unwrap();
    let plan = thinair_papers::Plan {
        quick,
        threads: std::env::args().filter_map(|a| a.parse().ok()).next().unwrap_or(2),
        ..Default::default()
    };
    let findings = paper.run(&plan, &|_, _| ()).unwrap();
    for row in &findings.rows {
        println!(
            "{:40} {:?} theirs {:?} bar {:?} {}",
            row.id(),
            row.ours(),
            row.stated(),
            row.bar(),
            row.met()
        );
    }
}
