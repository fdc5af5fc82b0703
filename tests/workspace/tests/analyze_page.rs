//! Pages of reports in a browser, at the widths of a desktop and a telephone: no element exceeds the window, folded or
//! open. Needs Chromium; without it the test is skipped with a message. Tests without a browser are beside the page, in
//! `crates/cli/src/analyze/page/tests.rs`.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use thinair_tests::{command, root};

/// Widths of the window, in CSS pixels.
const WIDTHS: [u32; 2] = [1280, 390];

#[test]
fn nothing_stands_outside_of_the_window() {
    let Some(browser) = browser() else {
        println!("skipped: there is no chromium (Debian: chromium, fonts-dejavu-core)");
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("analyze_page");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("a-folder-with-a-long-name/and-another-one-below-it")).unwrap();
    let long = folder
        .join("a-folder-with-a-long-name/and-another-one-below-it/capture_of_the_gateway_in_november.pcap");
    fs::copy(root().join("captures/coap_udp6_get_con.pcap"), &long).unwrap();
    let captures = root().join("captures");
    let named = |name: &str| vec![captures.join(name)];
    for (name, files) in [
        ("coap", named("coap_udp6_get_con.pcap")),
        ("mqtt", named("mqtt311_tcp4_qos1.pcap")),
        ("rtp", named("rtp_udp4_pcmu.pcap")),
        ("path", vec![long]),
        ("all", thinair_tests::files(&captures, ".pcap")),
    ] {
        let page = folder.join(format!("{name}.html"));
        let output = Command::new(command())
            .arg("analyze")
            .args(files)
            .arg("--html")
            .arg(&page)
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let measured = measured(browser, &folder, &fs::read_to_string(page).unwrap());
        assert_eq!(measured.len(), 2 * WIDTHS.len(), "{name}: {measured:?}");
        for one in measured {
            assert_eq!(one["scroll"], one["window"], "{name} scrolls sideways: {one}");
            assert_eq!(one["outside"], json!([]), "{name}: {one}");
        }
    }
}

/// Name of the browser, if one can be started.
fn browser() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        let version =
            Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    })
}

/// Widths of the page in windows of [`WIDTHS`], folded and open, and the elements that exceed them.
fn measured(browser: &str, folder: &Path, page: &str) -> Vec<Value> {
    // Escaped, as a tag of the page must not end the script.
    let page = serde_json::to_string(page).unwrap().replace("</", "<\\/");
    let harness = folder.join("harness.html");
    fs::write(&harness, HARNESS.replace("PAGE", &page).replace("WIDTHS", &json!(WIDTHS).to_string()))
        .unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--dump-dom"])
        .arg("--virtual-time-budget=60000")
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", harness.display()))
        .output()
        .unwrap();
    let document = String::from_utf8_lossy(&output.stdout);
    let found = document.split_once("<pre id=\"found\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (found, _) = found.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(found).unwrap_or_else(|error| panic!("{error}: {found}"))
}

/// Page that shows the measured one in frames. Tables and commands may have scroll bars of their own.
const HARNESS: &str = r#"<!doctype html><meta charset="utf-8"><body><pre id="found">not measured</pre><script>
const page = PAGE, widths = WIDTHS, found = [];
const measure = (frame, open) => {
  const inside = frame.contentDocument, root = inside.documentElement;
  for (const one of inside.querySelectorAll("details")) one.open = open;
  const outside = [...inside.querySelectorAll("body *")].filter((one) => {
    const box = one.getBoundingClientRect();
    const scrolls = one.parentElement.closest(".scroll, pre, svg, thead");
    return !scrolls && box.width > 0 && (box.left < -1 || box.right > root.clientWidth + 1);
  });
  const names = outside.slice(0, 3).map((one) => one.tagName + "." + one.className);
  return { width: frame.width, open, scroll: root.scrollWidth, window: root.clientWidth, outside: names };
};
let left = widths.length;
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.width = width;
  frame.height = 900;
  frame.style.border = 0;
  frame.onload = () => {
    found.push(measure(frame, false), measure(frame, true));
    if (--left === 0) document.getElementById("found").textContent = JSON.stringify(found);
  };
  frame.srcdoc = page;
  document.body.append(frame);
}
</script>
"#;
