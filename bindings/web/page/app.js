// The page: files and prices in, the report of `thinair analyze` out. What it says about packets comes from the analyzer.
"use strict";

const at = (id) => document.getElementById(id);

// Returns an element with attributes and contents.
function element(name, attributes = {}, ...contents) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined) made.setAttribute(key, value);
  }
  made.append(...contents);
  return made;
}

// A page that was opened from a file has no worker: the analyzer is in a script, and the page waits for it.
const isFile = location.protocol === "file:";

// Time of the readings beside each other, until they are measured.
const WEIGHTS = { survey: 1, learning: 1, analysis: 8 };

// Seconds after which the time that is left is shown.
const SOON = 1;

let files = [];
let tariffs = [];
let example = null;
let running = null;
// The table of flows that is shown.
let table = null;

// ---- The analyzer.

const load = (name) => new Promise((resolve, reject) => {
  document.head.append(element("script", { src: name, onload: resolve, onerror: () => reject(new Error(`cannot load ${name}`)) }));
});

// The compiled module, whose octets are in a script: a page that was opened from a file may not fetch.
const module = (async () => {
  await load("module.js");
  const letters = atob(self.thinairModule);
  delete self.thinairModule;
  const packed = new Uint8Array(letters.length);
  for (let at = 0; at < packed.length; at += 1) packed[at] = letters.charCodeAt(at);
  const unpacked = new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")));
  return WebAssembly.compile(await unpacked.arrayBuffer());
})();

const analyzer = isFile ? inPage() : inWorker();

// Questions and answers are those of `worker.js`; `onAnswer` receives the answers.
function inWorker() {
  let worker = null;
  // Number of workers that were ended: what was asked before is not asked any more.
  let ended = 0;
  const start = async () => {
    const compiled = await module;
    if (worker === null) {
      const made = worker = new Worker("worker.js");
      const answered = (answer) => { if (made === worker) onAnswer(answer); };
      worker.onmessage = ({ data }) => answered(data);
      worker.onerror = (event) => answered({ error: event.message || "the worker cannot be started" });
      worker.postMessage({ module: compiled });
    }
    return worker;
  };
  return {
    ask: (question) => {
      const asked = ended;
      start().then(
        (worker) => { if (asked === ended) worker.postMessage(question); },
        (error) => onAnswer({ error: error.message }),
      );
    },
    stop: () => {
      ended += 1;
      worker?.terminate();
      worker = null;
    },
  };
}

function inPage() {
  let engine = null;
  let started = null;
  const loadAll = async () => {
    for (const name of ["thinair.js", "rows.js", "engine.js"]) await load(name);
    // Without waiting, browsers make no large module on this thread.
    await wasm_bindgen({ module_or_path: await module });
    engine = new Engine(() => {});
  };
  // Once, also for those who ask while it starts.
  const start = () => (started ??= loadAll());
  const source = async (file) => {
    const all = new Uint8Array(await file.arrayBuffer());
    return { name: file.name, size: file.size, octets: (from, to) => all.subarray(from, to) };
  };
  const ask = async ({ files, options, tariff, find, kind }) => {
    try {
      await start();
      if (files) {
        const sources = await Promise.all(files.map(source));
        // What is on the page is drawn before it stands still.
        await new Promise((resolve) => setTimeout(resolve, 50));
        onAnswer({ results: engine.analyze({ sources, options, tariff }) });
      } else if (find) {
        onAnswer({ found: engine.find(find) });
      } else if (kind) {
        onAnswer({ kind, blob: engine.document(kind) });
      } else {
        onAnswer({ tariffs: wasm_bindgen.tariffs(), example: wasm_bindgen.example() });
      }
    } catch (error) {
      onAnswer({ error: engine?.message(error) ?? error.message });
    }
  };
  return { ask, stop: () => {} };
}

function onAnswer(answer) {
  if (answer.progress) showProgress(answer.progress);
  if (answer.tariffs) offer(answer);
  if (answer.results) showResults(answer.results);
  if (answer.found) table?.show(answer.found);
  if (answer.blob) save(answer);
  if (answer.error !== undefined) fail(answer.error);
}

// ---- Files and prices.

function add(list) {
  const added = [...list].filter((file) => file instanceof File).map((file) => ({ file, message: null }));
  if (added.length === 0) return;
  files.push(...added);
  analyze();
}

function remove(entry) {
  files = files.filter((one) => one !== entry);
  at("choose").focus();
  if (files.length > 0) analyze();
  else {
    stop();
    clear();
    listFiles();
    document.body.className = "start";
  }
}

function listFiles() {
  at("files").replaceChildren(...files.map((entry) => {
    const { file, message } = entry;
    const remover = element("button", { type: "button", class: "plain", "aria-label": `Remove ${file.name}`, onclick: () => remove(entry) }, "×");
    const item = element("li", {}, element("span", { class: "name" }, file.name), " ", element("span", { class: "size" }, size(file.size)), " ", remover);
    if (message !== null) item.append(element("span", { class: "message" }, message));
    return item;
  }));
  at("choose-label").textContent = files.length === 0 ? "Choose captures" : "Add captures";
  at("example").hidden = files.length > 0;
}

function size(octets) {
  const units = ["B", "kB", "MB", "GB"];
  const power = Math.min(Math.floor(Math.log10(Math.max(octets, 1)) / 3), units.length - 1);
  const value = octets / 1000 ** power;
  return `${power === 0 ? value : value.toFixed(1)}\u202f${units[power]}`;
}

// The analyzer is there: price lists and the example can be chosen.
function offer(answer) {
  if (tariffs.length > 0) return;
  ({ tariffs, example } = answer);
  const named = tariffs.map((text, number) => element("option", { value: number }, text.match(/^name = "(.*)"$/m)?.[1] ?? `price list ${number + 1}`));
  at("tariff").lastElementChild.before(...named);
}

at("choose").addEventListener("change", ({ target }) => {
  add(target.files);
  target.value = "";
});
at("example").addEventListener("click", () => {
  if (example === null) return say("The analyzer is still being loaded.");
  add([new File([example], "coap_udp6_observe.pcap")]);
});
at("tariff").addEventListener("change", ({ target }) => {
  if (target.value === "own") {
    at("more").open = true;
    if (at("prices").value === "") at("prices").value = tariffs[0] ?? "";
    at("prices").focus();
    return;
  }
  at("prices").value = tariffs[target.value] ?? "";
  analyze();
});
at("prices").addEventListener("input", ({ target }) => {
  at("tariff").value = target.value.trim() === "" ? "" : "own";
});
at("prices").addEventListener("change", analyze);
at("options").addEventListener("change", analyze);
at("again").addEventListener("click", analyze);
at("inputs").addEventListener("submit", (event) => {
  event.preventDefault();
  analyze();
});
at("cancel").addEventListener("click", () => {
  stop();
  say("Canceled.");
  at("choose").focus();
});

for (const kind of ["dragenter", "dragover"]) {
  addEventListener(kind, (event) => {
    event.preventDefault();
    document.body.classList.add("over");
  });
}
addEventListener("dragleave", (event) => {
  if (event.relatedTarget === null) document.body.classList.remove("over");
});
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  add(event.dataTransfer.files);
});

// ---- A run.

function analyze() {
  if (files.length === 0) return;
  stop();
  clear();
  for (const entry of files) entry.message = null;
  listFiles();
  document.body.className = "running";
  running = { began: performance.now(), rates: {} };
  at("working").hidden = false;
  at("progress").removeAttribute("value");
  at("left").textContent = isFile ? "This page was opened from a file, where it is slower and cannot show how far it is." : "";
  at("cancel").hidden = isFile;
  say("Analyzing.");
  const options = at("options").value.split(/\s+/).filter((word) => word !== "");
  const prices = at("prices").value;
  analyzer.ask({ files: files.map(({ file }) => file), options, tariff: prices.trim() === "" ? undefined : prices });
}

function stop() {
  if (running === null) return;
  end();
  // The next run does not wait for a new worker.
  analyzer.ask({});
}

function end() {
  running = null;
  analyzer.stop();
  at("working").hidden = true;
  document.body.className = "idle";
}

function clear() {
  for (const id of ["failure", "notes", "downloads"]) at(id).hidden = true;
  at("report").before(at("downloads"));
  for (const id of ["notes", "downloads", "report"]) at(id).replaceChildren();
  at("report").removeAttribute("aria-busy");
  table = null;
  document.title = "thinair: what packets cost";
}

// Readings take about as long for each octet throughout, each at its own speed.
function showProgress({ reading, done, total }) {
  if (running === null) return;
  const now = performance.now();
  if (running.reading !== reading) Object.assign(running, { reading, from: now });
  if (done > 0) running.rates[reading] = (now - running.from) / done;
  const known = Object.keys(running.rates).at(-1);
  const rate = (name) => running.rates[name] ?? (known ? running.rates[known] * WEIGHTS[name] / WEIGHTS[known] : 0);
  const order = ["survey", "learning", "analysis"];
  const next = order.slice(order.indexOf(reading) + 1).filter((name) => name === "analysis");
  const left = rate(reading) * Math.max(total - done, 0) + next.reduce((sum, name) => sum + rate(name) * total, 0);
  const spent = now - running.began;
  at("progress").value = Math.max(at("progress").value, spent / (spent + left));
  if (spent > SOON * 1000) at("left").textContent = `${duration(left / 1000)} left`;
}

function duration(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))}\u202fs`;
  return `${Math.round(seconds / 60)}\u202fmin`;
}

function say(text) {
  at("status").textContent = text;
}

function fail(message) {
  end();
  at("downloads").hidden = true;
  at("failure").hidden = false;
  at("failure").querySelector("pre").textContent = message;
  say("");
}

function showResults({ checked, notes, body, flows, configuration }) {
  running = null;
  at("working").hidden = true;
  const rest = [...(notes ?? [])];
  files.forEach((entry, number) => {
    const of = (text) => text.startsWith(`${entry.file.name}: `);
    const own = rest.filter(of);
    for (const note of own) rest.splice(rest.indexOf(note), 1);
    const message = checked[number] ?? own.join("; ");
    entry.message = message === "" ? null : message.slice(of(message) ? entry.file.name.length + 2 : 0);
  });
  listFiles();
  if (body === undefined) {
    document.body.className = "idle";
    say(files.length === 1 ? "This is no capture." : "None of these is a capture.");
    return;
  }
  document.body.className = "done";
  if (rest.length > 0) {
    at("notes").hidden = false;
    at("notes").append(...rest.map((note) => element("p", {}, note)));
  }
  showDownloads(configuration);
  showReport(body, flows);
}

// The report is that of the command; its table of flows gives way to one of all flows. Its sections are drawn one by one, and the page
// answers in between.
async function showReport(body, flows) {
  const report = new DOMParser().parseFromString(body, "text/html");
  const [patterns, header, ...sections] = [report.querySelector(".patterns"), ...report.querySelector("main").children];
  document.title = `${header.querySelector("h1").textContent} – thinair`;
  at("report").setAttribute("aria-busy", "true");
  at("report").replaceChildren(patterns, header, at("downloads"));
  for (const section of sections) {
    await new Promise((resolve) => setTimeout(resolve));
    // Other results are being made since then.
    if (!patterns.isConnected) return;
    enliven(section);
    if (section.querySelector("h2")?.textContent === "Flows") showFlows(section, flows);
    at("report").append(section);
  }
  at("report").removeAttribute("aria-busy");
  say("The results are below.");
}

function showFlows(section, flows) {
  table = flowTable(flows, (find) => analyzer.ask({ find }));
  section.querySelector("figure.table")?.replaceWith(table.figure);
  for (const words of section.querySelectorAll(".fold > p")) {
    words.textContent = words.textContent.replace(/ These flows are the largest;.*$/, "");
  }
}

function showDownloads(configuration) {
  const name = files.length === 1 ? files[0].file.name.replace(/\.(pcap|pcapng|cap)?(\.gz|\.zst)?$/, "") : "captures";
  const ask = (kind) => () => analyzer.ask({ kind });
  const button = (text, onclick) => element("button", { type: "button", onclick }, text);
  at("downloads").hidden = false;
  at("downloads").append(
    element("span", {}, "Save"),
    button("Report (HTML)", ask("html")),
    button("Data (JSON)", ask("json")),
    button("Flows (CSV)", ask("csv")),
  );
  if (configuration !== undefined) {
    const blob = new Blob([configuration], { type: "application/toml" });
    at("downloads").append(button("Configuration (TOML)", () => save({ kind: "toml", blob })));
  }
  at("downloads").dataset.name = name;
}

function save({ kind, blob }) {
  const href = URL.createObjectURL(blob);
  element("a", { href, download: `${at("downloads").dataset.name}.${kind}` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

listFiles();
analyzer.ask({});
