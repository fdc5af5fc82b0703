//! Names of commands that moved to `thinair-lab`.

#![allow(clippy::unwrap_used)]

use std::process::Command;

#[test]
fn the_old_name_of_a_command_answers_with_the_new_one() {
    for (words, told) in [
        (&["paper"][..], "thinair-lab paper"),
        (&["paper", "run", "coap-sizes", "--quick"], "thinair-lab paper run coap-sizes --quick"),
        (&["lab", "run", "plan.toml", "--real"], "thinair-lab lab run plan.toml --real"),
        (
            &["fetch", "--service", "http", "http://[::1]/10"],
            "thinair-lab fetch --service http http://[::1]/10",
        ),
        (&["serve", "--help"], "thinair-lab serve --help"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_thinair")).args(words).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert_eq!((said.lines().count(), said.trim_end().ends_with(told)), (1, true), "{words:?}: {said}");
        assert!(output.stdout.is_empty(), "{words:?}");
    }
}
