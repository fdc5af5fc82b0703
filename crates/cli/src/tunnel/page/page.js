// Asks for the status once a second, and shows it. Rates are differences of two statuses by their own clocks, so that
// a slow browser changes nothing. Text goes into the page as text, never as HTML.
"use strict";

const EVERY_MS = 1000;
const KEPT_SECONDS = 300;
const QUANTILES_OVER_SECONDS = 5;
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
// On an axis zeros behind the point say nothing.
const tick = (text) => text.replace(/\.0+(?=\D|$)/, "");
function duration(seconds) {
  const s = Math.floor(seconds), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
  if (s < 60) return `${s}${GAP}s`;
  if (m < 60) return `${m}${GAP}min ${s % 60}${GAP}s`;
  if (h < 24) return `${h}${GAP}h ${m % 60}${GAP}min`;
  return `${d}${GAP}d ${h % 24}${GAP}h`;
}
const ago = (seconds) => seconds < 2 ? "just now" : duration(seconds) + " ago";

// What is in the page.
function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}
function tiles(list) {
  $("tiles").replaceChildren(...list.map(([value, caption, detail, isFresh]) => {
    const tile = element("div", undefined, isFresh ? "fresh" : undefined);
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

function plot(place, names, labels, format, scale, { splits, bands } = {}) {
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
  const narrow = () => width() < 480;
  const chart = new uPlot({
    width: width(), height: 220, legend: { show: false }, padding: [8, 26, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: { x: { time: false, range: () => {
      const last = history.x.at(-1) ?? 0;
      return [last - KEPT_SECONDS, last];
    } }, y: scale },
    series: [{}, ...names.map((name, at) => ({ stroke: () => css(colors[at]), width: 2, points: { show: false } }))],
    axes: [
      { ...axis, gap: 10, size: 40, grid: { show: false }, splits: (u) => (narrow() ? [4, 2, 0] : [5, 4, 3, 2, 1, 0]).map((m) => u.scales.x.max - 60 * m),
        values: (u, splits) => splits.map((at) => {
          const minutes = Math.round((u.scales.x.max - at) / 60);
          return minutes === 0 ? "now" : `\u2212${minutes}${GAP}min`;
        }) },
      { ...axis, size: 72, filter: (u, splits) => splits, grid: { stroke: () => css("--line"), width: 1 }, ...(splits && { splits }),
        values: (u, splits) => splits.map((value) => value == null ? "" : tick(format(value))) },
    ],
    ...(bands && { bands }),
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

// Sent traffic counts for a share if it may have arrived, or if nobody answers.
const counted = (totals, name) => (totals.arrived ?? totals.sent)[name] + totals.received[name];
const both = (totals, name) => totals.sent[name] + totals.received[name];
let last = null;
let heard = 0;
let now = null;
let recent = [];
let lost = null;
let plots = [];
let meaning = { drops: {}, failures: {} };

// What was not carried, as [reason, count, words].
const reasons = (counts, words, whose = "") => Object.entries(counts).filter(([, count]) => count > 0)
  .map(([reason, count]) => [whose + reason.replaceAll("_", " "), count, words[reason] ?? ""]);
const losses = (status) => [
  // Each of these is counted at its peer once more, by its reason there.
  ...reasons({ ...status.drops, decompression: 0 }, meaning.drops),
  ...status.peers.flatMap((peer) => reasons(peer.failures, meaning.failures, peer.name + ": ")),
];
const sum = (losses) => losses.reduce((all, [, count]) => all + count, 0);

// The newest loss, for who does not look at the table.
function notice(before, status) {
  const old = new Map(losses(before).map(([reason, count]) => [reason, count]));
  const news = losses(status).filter(([reason, count]) => count > (old.get(reason) ?? 0));
  if (news.length > 0) lost = { reason: news[0][0], at: status.uptime_seconds };
}

// What was before the page was opened, from the samples of the daemon.
function recall(status) {
  const samples = [...(status.history ?? [])];
  samples.forEach((sample, at) => {
    const before = samples[at - 1];
    if (!before) return;
    const seconds = sample.uptime_seconds - before.uptime_seconds;
    if (seconds <= 0) return;
    remember({
      x: sample.uptime_seconds, inside: (sample.octets - before.octets) / seconds,
      carrier: (sample.carrier_octets - before.carrier_octets) / seconds, p50: null, p99: null,
    });
  });
}

function take(status) {
  heard = Date.now();
  if (!last) recall(status);
  if (last && status.uptime_seconds < last.uptime_seconds) { forget(); last = null; now = null; recent = []; lost = null; }
  const seconds = last ? status.uptime_seconds - last.uptime_seconds : 0;
  if (last && seconds <= 0) return;
  if (last) {
    const rate = (name) => (both(status.totals, name) - both(last.totals, name)) / seconds;
    const since = recent[0].latency.sent;
    const enough = status.latency.sent.packets - since.packets >= 100;
    now = {
      x: status.uptime_seconds, packets: rate("packets"), inside: rate("octets"), carrier: rate("carrier_octets"),
      p50: quantile(since, status.latency.sent, 0.5),
      p99: enough ? quantile(since, status.latency.sent, 0.99) : null,
    };
    remember(now);
    notice(last, status);
  }
  last = status;
  recent.push(status);
  while (recent.length > 1 && recent[0].uptime_seconds < status.uptime_seconds - QUANTILES_OVER_SECONDS) recent.shift();
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
    none ? [idle, "saved", totals.sent.packets > 0 ? "nothing is known to have arrived" : "no traffic yet"]
      : [percent(Math.abs(1 - totals.ratio)), totals.ratio <= 1 ? "saved" : "more than inside",
        `${octets(counted(totals, "octets"))} inside \u2192 ${octets(counted(totals, "carrier_octets"))}`],
    [now ? octets(now.carrier) + "/s" : idle, "on the carrier",
      now ? `for ${octets(now.inside)}/s inside` : ""],
    [now && now.p50 !== null ? time(now.p50) : idle, "in the daemon, median",
      now && now.p99 !== null ? `99 of 100 within ${time(now.p99)}` : ""],
    [number(sum(losses(status))), "dropped",
      lost ? `${lost.reason}, ${ago(status.uptime_seconds - lost.at)}` : "none since this page was opened",
      lost && status.uptime_seconds - lost.at < 10],
  ]);
  $("sentence").textContent = sentence(status);
  rows(status);
  plots.forEach((draw) => draw());
  state();
}

function sentence({ totals, carrier, inside, billing, uptime_seconds, cpu_seconds }) {
  if (totals.ratio === null && totals.sent.packets > 0) {
    return `${number(totals.sent.packets)} packets were sent, and no answer has come: no share is known.`;
  }
  if (totals.ratio === null) return `Packets that are routed to ${inside.name} will be counted here.`;
  const billed = billing.unit_octets === 0 ? ""
    : ` Billed: ${number(billing.sent.units + billing.received.units)} units of ${billing.unit_octets} octets.`;
  return `Compression leaves ${percent(totals.compressed_ratio)} of the octets; the carrier adds ` +
    `${carrier.overhead} octets to a packet that is alone in its datagram. The MTU of the interface is ` +
    `${number(inside.mtu)} octets. In ${duration(uptime_seconds)} the daemon has used ` +
    `${percent(cpu_seconds / Math.max(uptime_seconds, 1e-9))} of a CPU.${billed}`;
}

function rows(status) {
  const n = "n";
  table("drops", [["reason"], ["count", n], ["meaning", "words"]],
    losses(status).map(([reason, count, words]) => [reason, number(count), words]), "Nothing was lost.");
  table("peers",
    [["name"], ["address"], ["session", n], ["heard", n], ["loss", n], ["round trip", n], ["sent", n], ["received", n], ["saved", n], ["NACKs", n]],
    status.peers.map((peer) => {
      const inside = counted(peer, "octets");
      return [
        peer.trouble ? `${peer.name}: ${peer.trouble.text}` : peer.name, peer.address ?? "", peer.session_seconds === null ? "none" : duration(peer.session_seconds),
        peer.heard_seconds === null ? "never" : ago(peer.heard_seconds),
        peer.loss?.share == null ? "" : percent(peer.loss.share),
        peer.round_trip_seconds == null ? "" : time(1e9 * peer.round_trip_seconds),
        number(peer.sent.packets), number(peer.received.packets),
        inside > 0 ? percent(1 - counted(peer, "carrier_octets") / inside) : "",
        number(peer.feedback.received.nacks + peer.feedback.received.static_nacks),
      ];
    }), "Nobody is known.");
  table("contexts",
    [["peer"], ["profile"], ["mode"], ["compressor"], ["decompressor"]],
    status.peers.flatMap(contexts), "No contexts yet: the first packet of a flow makes one.");
}

// A row for each profile and mode: how many contexts are in which state on either side.
function contexts(peer) {
  const rows = new Map();
  for (const { profile, mode, side, state, contexts } of peer.contexts) {
    const key = profile + " " + mode;
    if (!rows.has(key)) rows.set(key, { profile, mode, compressor: [], decompressor: [] });
    rows.get(key)[side].push(`${number(contexts)} in ${state}`);
  }
  return [...rows.values()].map((row) =>
    [peer.name, row.profile, row.mode, row.compressor.join(", "), row.decompressor.join(", ")]);
}

function state() {
  const silence = (Date.now() - heard) / 1000;
  let [kind, words] = ["live", ""];
  if (!last) [kind, words] = ["waiting", "Waiting for the daemon."];
  else if (silence > 3) [kind, words] = ["gone", `No answer from the daemon for ${duration(silence)}.`];
  else if (!last.inside.up) [kind, words] = ["quiet", `The interface ${last.inside.name} is missing; the daemon waits for it.`];
  else if (last.totals.ratio === null) [kind, words] = ["quiet", `No traffic yet. Up ${duration(last.uptime_seconds)}.`];
  else words = `Up ${duration(last.uptime_seconds)}` + (now ? `, ${number(now.packets)} packets a second.` : ".");
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

// Times of a packet differ by decades; steps of 1, 2 and 5 where there is room for them.
function decades(u) {
  const [low, high] = [u.scales.y.min, u.scales.y.max].map(Math.log10);
  const steps = high - low > 2.5 ? [1] : [1, 2, 5];
  const all = [];
  for (let power = Math.round(low); power <= Math.round(high); power += 1)
    for (const step of steps) if (step * 10 ** power <= u.scales.y.max * 1.001) all.push(step * 10 ** power);
  return all;
}
const around = (min, max) => [10 ** Math.floor(Math.log10(min)), 10 ** Math.ceil(Math.log10(max * 1.001))];

plots = [
  plot("octets", ["inside", "carrier"], ["inside", "on the carrier"], (v) => octets(v) + "/s",
    { range: (u, min, max) => [0, Math.max(max ?? 0, 100) * 1.05] },
    { bands: [{ series: [1, 2], fill: () => css("--s0") + "26" }] }),
  plot("latency", ["p50", "p99"], ["median", "99 of 100 packets within"], time,
    { distr: 3, range: (u, min, max) => min > 0 ? around(min, max) : [1e4, 1e6] }, { splits: decades }),
];
fetch("/words.json").then((answer) => answer.json()).then((words) => { meaning = words; }, () => {});
ask();
