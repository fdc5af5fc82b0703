//! Documents that the command prints, as far as a machine without other servers can produce them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use thinair_tests::root;

/// Two ends of a tunnel over the link, an object that is fetched through it, and the status of one end.
const TUNNEL: &str = r#"
set -e
"$T" tunnel run udp://10.9.0.2:7000 --key key --tun t0 --address 10.10.0.1/30 --status "$PWD/status.sock" --billing-unit 64 --keepalive 25s \
    --idle-budget 16000 &
a=$!
ip netns exec "$THINAIR_B" "$T" tunnel run udp://:7000 --key key --tun t1 --address 10.10.0.2/30 --status none &
b=$!
ip netns exec "$THINAIR_B" "$LAB" serve --service http --bind 0.0.0.0:8080 . &
c=$!
for try in $(seq 100); do
    if "$LAB" fetch --service http http://10.10.0.2:8080/object --output fetched --timeout 2s; then
        "$T" tunnel status "$PWD/status.sock" --json > status.json
        break
    fi
    sleep 0.1
done
kill $a $b $c
wait $a $b $c
"#;

/// Documents by their names.
#[derive(Default)]
pub(crate) struct Outputs {
    pub(crate) documents: BTreeMap<String, Vec<Value>>,
}

/// Results of a link that a tunnel has used.
pub(crate) struct LinkResults {
    json: Value,
    pub(crate) log: String,
    status: Value,
}

/// Runs the command. Returns its output. Any exit status is accepted: failures have documents, too.
pub(crate) fn run(thinair: &str, folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(thinair).args(arguments).current_dir(folder).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.stdout.is_empty(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a link with a tunnel through it; `None`, and a message with the reason, where namespaces cannot be created.
pub(crate) fn link(thinair: &str, lab: &str) -> Option<LinkResults> {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let keygen = Command::new(thinair).args(["tunnel", "keygen", "key"]).current_dir(path).status().unwrap();
    assert!(keygen.success());
    fs::write(path.join("object"), "0123456789".repeat(1_000)).unwrap();
    let options = ["--create", "--rohc", "--preset", "wifi", "--log", "log.csv", "--json"];
    let output = Command::new("timeout")
        .args(["--signal", "INT", "60", thinair, "link", "run"])
        .args(options)
        .args(["--", "sh", "-c", TUNNEL])
        .env("T", thinair)
        .env("LAB", lab)
        .current_dir(path)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("this needs root") || stderr.contains("CONFIG_TUN") {
        println!("skipped: {}", stderr.trim());
        return None;
    }
    assert!(output.status.success(), "{stderr}");
    let status = fs::read_to_string(path.join("status.json")).unwrap();
    Some(LinkResults {
        json: serde_json::from_slice(&output.stdout).unwrap(),
        log: fs::read_to_string(path.join("log.csv")).unwrap(),
        status: serde_json::from_str(&status).unwrap(),
    })
}

impl Outputs {
    pub(crate) fn collect(thinair: &str, lab: &str) -> Self {
        let mut outputs = Self::default();
        let folder = TempDir::new().unwrap();
        outputs.captures(thinair, folder.path());
        outputs.experiments(thinair, lab, folder.path());
        outputs.configurations(thinair, folder.path());
        outputs.services(thinair, lab, folder.path());
        if let Some(link) = link(thinair, lab) {
            outputs.add(&link.json.to_string());
            outputs.add(&link.status.to_string());
        }
        outputs
    }

    /// Adds one document, or one per line.
    fn add(&mut self, text: &str) {
        let all = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        for document in all.map(Result::unwrap) {
            let name = document["schema"].as_str().unwrap_or_else(|| panic!("no schema: {text}")).to_owned();
            self.documents.entry(name).or_default().push(document);
        }
    }

    fn captures(&mut self, thinair: &str, folder: &Path) {
        let capture = |name: &str| root().join("captures").join(name).to_string_lossy().into_owned();
        let coap = capture("coap_udp6_observe.pcap");
        let billed = ["--loss", "5", "--billing-unit", "64", "--price", "0.5", "--link-mtu", "80"];
        let cut = folder.join("cut.pcap");
        let octets = fs::read(&coap).unwrap();
        fs::write(&cut, &octets[..octets.len() - 7]).unwrap();
        let cut = cut.to_string_lossy();
        let rtp = capture("rtp_udp6_pcmu.pcap");
        let tcp = capture("mqtt311_tcp4_qos1.pcap");
        // More flows than small CIDs.
        let many = capture("coap_udp4_libcoap_new_port_each.pcap");
        for more in [
            &[&*coap][..],
            &[&many],
            &[&many, "--most-flows", "2"],
            &[&rtp, &tcp],
            &[&cut, "--break"],
            &[&tcp, "--schemes", "tcp", "--mode", "r"],
        ] {
            self.add(&run(thinair, folder, &[&["analyze", "--json"], more].concat()));
        }
        self.add(&run(thinair, folder, &[&["analyze", "--json", &*coap][..], &billed].concat()));
        let tariff = root().join("docs/tariffs/skylo-monogoto.toml").to_string_lossy().into_owned();
        self.add(&run(thinair, folder, &["analyze", "--json", &*coap, "--tariff", &tariff]));
        for file in [&*coap, &cut] {
            self.add(&run(thinair, folder, &["chart", "--json", file]));
        }
        for (options, file) in [(&["--mode", "u"][..], &coap), (&["--mode", "o", "--profiles", "v1"], &rtp)] {
            let rohc = [&["rohc", "compress", "--json", file, "rohc.pcap"][..], options].concat();
            let feedback = if options[1] == "o" { &["--feedback-out", "feedback.pcap"][..] } else { &[] };
            self.add(&run(thinair, folder, &[&rohc[..], feedback].concat()));
            let back = ["rohc", "decompress", "--json", "rohc.pcap", "back.pcap"];
            self.add(&run(thinair, folder, &[&back[..], options].concat()));
            let channel = if options.len() > 2 { &options[2..] } else { &[] };
            self.add(&run(
                thinair,
                folder,
                &[&["rohc", "dissect", "--json", "rohc.pcap"][..], channel].concat(),
            ));
        }
        self.add(&run(thinair, folder, &["rohc", "dissect", "--json", "feedback.pcap", "--profiles", "v1"]));
        // IP packets are no ROHC packets; and packets of another channel are not decompressed.
        self.add(&run(thinair, folder, &["rohc", "dissect", "--json", &coap]));
        self.add(&run(thinair, folder, &["rohc", "dissect", "--json", "rohc.pcap", "--profiles", "esp"]));
    }

    fn experiments(&mut self, thinair: &str, lab: &str, folder: &Path) {
        self.add(&run(thinair, folder, &["link", "presets", "--json"]));
        self.add(&run(thinair, folder, &["link", "capacity", "--json"]));
        let plan = "[link]\npreset = 'gprs'\n[link.down]\nloss = 10\n[requests]\ncount = 3\n[runs]\ncount = 2\n\
            [sweep]\n'clients.congestion' = ['rfc7252', 'fasor']\n";
        fs::write(folder.join("plan.toml"), plan).unwrap();
        self.add(&run(lab, folder, &["lab", "run", "plan.toml", "--json", "--out", "runs.jsonl"]));
        self.add(&fs::read_to_string(folder.join("runs.jsonl")).unwrap());
        self.add(&run(lab, folder, &["lab", "show", "runs.jsonl", "--json"]));
        self.add(&run(lab, folder, &["paper", "run", "coap-sizes", "--quick", "--json"]));
    }

    fn configurations(&mut self, thinair: &str, folder: &Path) {
        for key in ["pair", "north", "south", "serial"] {
            let name = format!("{key}.key");
            let made =
                Command::new(thinair).args(["tunnel", "keygen", &name]).current_dir(folder).output().unwrap();
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        }
        for kind in ["pair", "hub", "one-way", "serial"] {
            let file = format!("{kind}.toml");
            fs::write(folder.join(&file), run(thinair, folder, &["tunnel", "config", kind])).unwrap();
            self.add(&run(thinair, folder, &["tunnel", "check", &file, "--json"]));
            if kind != "one-way" {
                self.add(&run(thinair, folder, &["tunnel", "bill", &file, "--json"]));
            }
        }
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let [capture, tariff] = ["captures/coap_udp4_observe.pcap", "docs/tariffs/1nce.toml"]
            .map(|file| format!("{here}/{file}"));
        let priced = ["tunnel", "bill", "pair.toml", "--capture", &capture, "--tariff", &tariff, "--json"];
        self.add(&run(thinair, folder, &priced));
        let insecure = "[carrier]\nurl = \"udp://192.0.2.1:7000\"\n[security]\ninsecure = true\n";
        fs::write(folder.join("insecure.toml"), insecure).unwrap();
        self.add(&run(thinair, folder, &["tunnel", "check", "insecure.toml", "--json"]));
    }

    fn services(&mut self, thinair: &str, lab: &str, folder: &Path) {
        fs::create_dir(folder.join("served")).unwrap();
        fs::write(folder.join("served/10"), "0123456789").unwrap();
        for (service, scheme) in [("http", "http"), ("coap", "coap")] {
            let options = ["serve", "--service", service, "--bind", "127.0.0.1:0", "--json", "served"];
            let server = SpawnedServer::start(lab, folder, &options);
            let url = |path: &str| format!("{scheme}://{}/{path}", server.address);
            for path in ["10", "missing"] {
                self.add(&run(lab, folder, &["fetch", "--service", service, "--json", &url(path)]));
            }
            if service == "http" {
                let proxy = [
                    "segment",
                    "proxy",
                    "--json",
                    "--constrained",
                    "client",
                    "--listen",
                    "0",
                    "--to",
                    &server.address,
                ];
                let proxy = SpawnedServer::start(thinair, folder, &proxy);
                let url = format!("http://{}/10", proxy.address);
                self.add(&run(lab, folder, &["fetch", "--service", service, "--json", &url]));
                self.add(&proxy.end());
            }
            self.add(&server.end());
        }
        let refused = ["fetch", "--service", "http", "--json", "http://127.0.0.1:1/"];
        self.add(&run(lab, folder, &refused));

        let server = SpawnedServer::start(
            thinair,
            folder,
            &["coap", "serve", "--listen", "127.0.0.1:0", "--no-tcp", "--json"],
        );
        let uri = |path: &str| format!("coap://{}/{path}", server.address);
        for path in ["test", "missing", "large"] {
            self.add(&run(thinair, folder, &["coap", "get", "--json", &uri(path)]));
        }
        self.add(&run(thinair, folder, &["coap", "observe", "--json", "--count", "1", &uri("time")]));
        self.add(&run(thinair, folder, &["coap", "discover", "--json", &uri("")]));
        self.add(&server.end());
        let silent = ["coap", "get", "--json", "coap://127.0.0.1:1/", "--timeout", "200ms"];
        self.add(&run(thinair, folder, &silent));
    }
}

/// Server, ended with the test.
struct SpawnedServer {
    child: Child,
    /// Kept open: the server writes to it until it ends.
    _stderr: BufReader<ChildStderr>,
    address: String,
}

impl SpawnedServer {
    /// Starts a server, and waits for the line with its address.
    fn start(thinair: &str, folder: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(thinair)
            .args(arguments)
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let words = line.split([' ', '/', ',', '\n']);
        let mut addresses = words.filter(|word| word.parse::<std::net::SocketAddr>().is_ok());
        let address = addresses.next().unwrap_or_else(|| panic!("{arguments:?}: {line}")).to_owned();
        Self { child, _stderr: stderr, address }
    }

    /// Asks the server to end. Returns its further output.
    fn end(mut self) -> String {
        let asked = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(asked.success());
        let mut printed = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        assert!(self.child.wait().unwrap().success());
        printed
    }
}

impl Drop for SpawnedServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
