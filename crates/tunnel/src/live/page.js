// Asks for the status once a second, and shows it. Rates are differences of two statuses by their own clocks, so that
// a slow browser changes nothing. Text goes into the page as text, never as HTML.
"use strict";

const EVERY_MS = 1000;
const KEPT_SECONDS = 300;
const GAP = "\u202f";

const $ = (id) => document.getElementById(id);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Numbers, as in reports.
const number = (value, decimals = 0) =>
  value.toFixed(decimals).replace(/\B(?<!\.\d*)(?=(\d{3})+(?!\d))/g, GAP).replace("-", "\u2212");
function scaled(value, units) {
  let at = 0;
  while (value >= 999.5 && at < units.length - 1) { value /= 1000; at += 1; }
  const decimals = at === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return value.toFixed(decimals) + GAP + units[at];
}
const octets = (value) => scaled(value, ["B", "kB", "MB", "GB", "TB", "PB"]);
const time = (ns) => ns < 999.5 ? number(ns) + GAP + "ns" : scaled(ns / 1000, ["µs", "ms", "s"]);
function percent(ratio) {
  const text = number(100 * ratio, 1);
  if (text === "100.0" && ratio < 1) return ">99.9" + GAP + "%";
  if (text === "0.0" && ratio > 0) return "<0.1" + GAP + "%";
  return text + GAP + "%";
}
function duration(seconds) {
  const s = Math.floor(seconds), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
  if (s < 60) return `${s}${GAP}s`;
  if (m < 60) return `${m}${GAP}min ${s % 60}${GAP}s`;
  if (h < 24) return `${h}${GAP}h ${m % 60}${GAP}min`;
  return `${d}${GAP}d ${h % 24}${GAP}h`;
}

// What is in the page.
function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}
function tiles(list) {
  $("tiles").replaceChildren(...list.map(([value, caption, detail]) => {
    const tile = element("div");
    tile.append(element("dt", caption), element("dd", value, "value"), element("dd", detail, "detail"));
    return tile;
  }));
}
// Columns: [heading, class]. Cells are texts.
function table(place, columns, rows, empty) {
  const key = JSON.stringify(rows);
  if ($(place).dataset.key === key) return;
  $(place).dataset.key = key;
  if (rows.length === 0) { $(place).replaceChildren(element("p", empty, "empty")); return; }
  const head = element("tr");
  for (const [heading, kind] of columns) {
    const th = element("th", heading, kind);
    th.scope = "col";
    head.append(th);
  }
  const body = rows.map((cells) => {
    const row = element("tr");
    row.append(...cells.map((text, at) => element(at === 0 ? "th" : "td", text, columns[at][1])));
    row.firstChild.scope = "row";
    return row;
  });
  const made = element("table"), thead = element("thead"), tbody = element("tbody");
  thead.append(head);
  tbody.append(...body);
  made.append(thead, tbody);
  const scroll = element("div", undefined, "scroll");
  scroll.tabIndex = 0;
  scroll.append(made);
  $(place).replaceChildren(scroll);
}

// The last five minutes. `x` is the uptime of the daemon.
const history = { x: [], inside: [], carrier: [], p50: [], p99: [] };
function remember(point) {
  for (const name in history) history[name].push(point[name]);
  while (history.x[0] < point.x - KEPT_SECONDS) for (const name in history) history[name].shift();
}
function forget() { for (const name in history) history[name].length = 0; }

function plot(place, names, labels, format, scale) {
  const colors = ["--s0", "--s1"];
  const values = labels.map((label, at) => {
    const entry = element("span", label + " ", "s" + at);
    const value = element("b", "–");
    entry.append(value);
    $(place + "-legend").append(entry);
    return value;
  });
  const show = (at) => names.forEach((name, i) => {
    const value = history[name][at ?? history.x.length - 1];
    values[i].textContent = value == null ? "–" : format(value);
  });
  const width = () => $(place).clientWidth;
  const axis = { stroke: () => css("--soft"), font: "13px system-ui, sans-serif", ticks: { show: false } };
  const chart = new uPlot({
    width: width(), height: 220, legend: { show: false }, padding: [8, 12, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: { x: { time: false, range: () => {
      const last = history.x.at(-1) ?? 0;
      return [last - KEPT_SECONDS, last];
    } }, y: scale },
    series: [{}, ...names.map((name, at) => ({ stroke: () => css(colors[at]), width: 2, points: { show: false } }))],
    axes: [
      { ...axis, grid: { show: false }, splits: (u) => [5, 4, 3, 2, 1, 0].map((m) => u.scales.x.max - 60 * m),
        values: (u, splits) => splits.map((at) => {
          const minutes = Math.round((u.scales.x.max - at) / 60);
          return minutes === 0 ? "now" : `\u2212${minutes}${GAP}min`;
        }) },
      { ...axis, size: 76, grid: { stroke: () => css("--line"), width: 1 },
        values: (u, splits) => splits.map((value) => value == null ? "" : format(value)) },
    ],
    hooks: { setCursor: [(u) => show(u.cursor.idx)] },
  }, [[], ...names.map(() => [])], $(place));
  new ResizeObserver(() => chart.setSize({ width: width(), height: 220 })).observe($(place));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => chart.redraw(false));
  return () => { chart.setData([history.x, ...names.map((name) => history[name])]); show(chart.cursor.idx); };
}

// A quantile of what was added to a histogram since.
function quantile(before, now, share) {
  const old = new Map(before.bins.map((bin) => [bin.from_nanoseconds, bin.packets]));
  const bins = now.bins.map((bin) => ({ ...bin, packets: bin.packets - (old.get(bin.from_nanoseconds) ?? 0) }));
  const all = bins.reduce((sum, bin) => sum + bin.packets, 0);
  let below = 0;
  for (const bin of bins) {
    if (bin.packets > 0 && below + bin.packets >= share * all) {
      const width = bin.below_nanoseconds - bin.from_nanoseconds;
      return bin.from_nanoseconds + width * (share * all - below) / bin.packets;
    }
    below += bin.packets;
  }
  return null;
}

const both = (totals, name) => totals.sent[name] + totals.received[name];
let last = null;
let heard = 0;
let now = null;
let plots = [];

function take(status) {
  heard = Date.now();
  if (last && status.uptime_seconds < last.uptime_seconds) { forget(); last = null; now = null; }
  const seconds = last ? status.uptime_seconds - last.uptime_seconds : 0;
  if (last && seconds <= 0) return;
  if (last) {
    const rate = (name) => (both(status.totals, name) - both(last.totals, name)) / seconds;
    now = {
      x: status.uptime_seconds, packets: rate("packets"), inside: rate("octets"), carrier: rate("carrier_octets"),
      p50: quantile(last.latency.sent, status.latency.sent, 0.5),
      p99: quantile(last.latency.sent, status.latency.sent, 0.99),
    };
    remember(now);
  }
  last = status;
  show(status);
}

function show(status) {
  const { inside, carrier, totals } = status;
  $("title").textContent = status.site ? `${inside.name}, site ${status.site}` : inside.name;
  document.title = `${inside.name} · thinair tunnel`;
  $("subtitle").textContent = `${carrier.url}; ${status.security}`;
  const none = totals.ratio === null;
  const idle = "–";
  tiles([
    none ? [idle, "saved", "no traffic yet"]
      : [percent(Math.abs(1 - totals.ratio)), totals.ratio <= 1 ? "saved" : "more than inside",
        `${octets(both(totals, "octets"))} inside \u2192 ${octets(both(totals, "carrier_octets"))}`],
    [now ? octets(now.carrier) + "/s" : idle, "on the carrier", now ? `for ${octets(now.inside)}/s inside` : ""],
    [now ? number(now.packets) : idle, "packets a second", `${number(both(totals, "packets"))} so far`],
    [now && now.p50 !== null ? time(now.p50) : idle, "in the daemon, median",
      now && now.p99 !== null ? `99 of 100 within ${time(now.p99)}` : ""],
  ]);
  $("sentence").textContent = sentence(status);
  rows(status);
  plots.forEach((draw) => draw());
  state();
}

function sentence({ totals, carrier, inside, billing, uptime_seconds, cpu_seconds }) {
  if (totals.ratio === null) return `Packets that are routed to ${inside.name} will be counted here.`;
  const billed = billing.unit_octets === 0 ? ""
    : ` Billed: ${number(billing.sent.units + billing.received.units)} units of ${billing.unit_octets} octets.`;
  return `Compression leaves ${percent(totals.compressed_ratio)} of the octets; then the carrier adds ` +
    `${carrier.overhead} octets to a packet that travels alone. The longest packet inside has ` +
    `${number(inside.mtu)} octets. In ${duration(uptime_seconds)} the daemon has taken ` +
    `${percent(cpu_seconds / Math.max(uptime_seconds, 1e-9))} of a CPU.${billed}`;
}

function rows(status) {
  const n = "n";
  table("contexts",
    [["peer"], ["side"], ["profile"], ["mode"], ["state"], ["contexts", n]],
    status.peers.flatMap((peer) => peer.contexts.map((c) =>
      [peer.name, c.side, c.profile, c.mode, c.state, number(c.contexts)])),
    "No contexts yet: the first packet of a flow makes one.");
  table("peers",
    [["name"], ["address"], ["session", n], ["heard", n], ["sent", n], ["received", n], ["NACKs", n], ["failures", n]],
    status.peers.map((peer) => [
      peer.name, peer.address ?? "", peer.session_seconds === null ? "" : duration(peer.session_seconds),
      peer.heard_seconds === null ? "never" : duration(peer.heard_seconds),
      number(peer.sent.packets), number(peer.received.packets),
      number(peer.feedback.received.nacks + peer.feedback.received.static_nacks),
      number(Object.values(peer.failures).reduce((a, b) => a + b, 0)),
    ]), "Nobody is known.");
  const counted = (counts, whose) => Object.entries(counts).filter(([, count]) => count > 0)
    .map(([reason, count]) => [whose + reason.replaceAll("_", " "), number(count)]);
  table("drops", [["reason"], ["count", n]],
    [...counted(status.drops, ""), ...status.peers.flatMap((peer) => counted(peer.failures, peer.name + ": "))],
    "Everything was carried.");
}

function state() {
  const silence = (Date.now() - heard) / 1000;
  let [kind, words] = ["live", ""];
  if (!last) [kind, words] = ["waiting", "Waiting for the daemon."];
  else if (silence > 3) [kind, words] = ["gone", `The daemon is gone: nothing was heard for ${duration(silence)}.`];
  else if (!last.inside.up) [kind, words] = ["quiet", `The interface ${last.inside.name} is gone; the daemon waits for it.`];
  else if (last.totals.ratio === null) [kind, words] = ["quiet", `No traffic yet. Up ${duration(last.uptime_seconds)}.`];
  else words = `Up ${duration(last.uptime_seconds)}.`;
  document.body.className = kind;
  if ($("state").textContent !== words) $("state").textContent = words;
}

async function ask() {
  if (!document.hidden) {
    try {
      const answer = await fetch("/status.json", { cache: "no-store", signal: AbortSignal.timeout(5000) });
      if (answer.ok) take(await answer.json());
    } catch {
      // Nobody answers: the state says so, and we go on asking.
    }
    state();
  }
  setTimeout(ask, EVERY_MS);
}

plots = [
  plot("octets", ["inside", "carrier"], ["inside", "on the carrier"], (v) => octets(v) + "/s",
    { range: (u, min, max) => [0, Math.max(max ?? 0, 1) * 1.05] }),
  plot("latency", ["p50", "p99"], ["median", "99 of 100 packets within"], time,
    { range: (u, min, max) => [0, Math.max(max ?? 0, 1) * 1.05] }),
];
ask();
