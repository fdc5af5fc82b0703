//! The figures of `examples/timers.rs`.

#[path = "../examples/timers.rs"]
#[allow(dead_code, reason = "its `main` is not called here")]
mod timers;

#[test]
fn timers_over_a_scripted_loss_pattern() {
    let table = timers::table(&[0, 0, 1, 0, 2, 0, 0, 1, 1, 0]);
    print!("{table}");
    assert_eq!(table, EXPECTED);
}

const EXPECTED: &str = "\
message  lost  rfc7252         rfc6298        cocoa           fasor         fasor-quick   fasor, counted
1        0     2000            2000           2000            2166          2166          2166
2        0     2000            900            1450            525           487           525
3        1     2000+4000       750+1500       1100+2200       487+975       450+900       487+975
4        0     2000            1500           1350            487           487           459
5        2     2000+4000+8000  637+1275+2550  1987+3975+5962  459+918+1837  421+843+1687  438+876+1753
6        0     2000            2550           2427            459           459           422
7        0     2000            553            1490            438           400           410
8        1     2000+4000       489+979        1980+3960       422+844       384+769       401+803
9        1     2000+4000       979+1959       2339+4678       422+1083      422+1027      395+1052
10       0     2000            1959           2578            1083          1083          1042
";
