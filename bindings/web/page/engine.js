// The analyzer and its files: the same in a worker, and in a page that was opened from a file.
"use strict";

// Octets that are fetched from a file at a time.
const AHEAD = 1 << 20;

// Milliseconds between two notes on progress.
const PACE = 100;

class Engine {
  // `report` receives objects with `reading`, `done` and `total`, in octets.
  constructor(report) {
    this.report = report;
    this.sources = [];
    this.pieces = [];
    this.rows = null;
    this.panic = null;
    self.thinairRead = (file, position, out) => this.read(file, position, out);
    self.thinairWrite = (octets) => this.pieces.push(octets.slice());
    self.thinairBegin = (reading) => Object.assign(this.at, { reading, done: 0 });
    self.thinairPanic = (message) => { this.panic = message; };
  }

  // `sources`: objects with `name`, `size` and `octets(from, to)`, which returns a Uint8Array. Returns the messages of those that are no
  // captures, and the results if one is.
  analyze({ sources, options, tariff }) {
    this.sources = sources;
    this.fetched = { file: null, from: 0, octets: new Uint8Array() };
    const total = sources.reduce((sum, { size }) => sum + size, 0);
    this.at = { reading: "survey", done: 0, total };
    this.shown = performance.now();
    const checked = sources.map(({ name }, number) => wasm_bindgen.check(number, name) ?? null);
    if (checked.every((message) => message !== null)) return { checked };
    this.at.done = 0;
    this.analysis?.free();
    this.analysis = null;
    this.analysis = new wasm_bindgen.Analysis(options, tariff, sources.map(({ name }) => name));
    const { analysis } = this;
    this.rows = new Rows(JSON.parse(analysis.flows()));
    return {
      checked,
      notes: analysis.notes(),
      body: analysis.body(),
      flows: this.rows.head(),
      configuration: analysis.configuration(),
    };
  }

  // Returns rows of the table of flows, with the number of the question.
  find(question) {
    return { ...this.rows.find(question), number: question.number };
  }

  // Returns a document of the last results: "json", "csv" or "html".
  document(kind) {
    this.pieces = [];
    this.analysis[kind]();
    const types = { json: "application/json", csv: "text/csv", html: "text/html" };
    const blob = new Blob(this.pieces, { type: types[kind] });
    this.pieces = [];
    return blob;
  }

  // The message of an error: that of the command, or of a panic.
  message(error) {
    if (typeof error === "string") return error;
    if (this.panic === null && !(error instanceof WebAssembly.RuntimeError)) return String(error);
    const reason = this.panic ?? "out of memory";
    return `The analysis ended: ${reason}. The command \`thinair analyze\` may have more memory than a page.`;
  }

  read(file, position, out) {
    const source = this.sources[file];
    let { fetched } = this;
    const isThere = fetched.file === file && position >= fetched.from && position < fetched.from + fetched.octets.length;
    if (!isThere) {
      if (position >= source.size) return 0;
      let octets;
      try {
        octets = source.octets(position, Math.min(position + AHEAD, source.size));
      } catch (error) {
        throw `the browser cannot read it: ${error.message}`;
      }
      fetched = this.fetched = { file, from: position, octets };
    }
    const start = position - fetched.from;
    const found = fetched.octets.subarray(start, start + out.length);
    out.set(found);
    this.at.done += found.length;
    const now = performance.now();
    if (now - this.shown > PACE) {
      this.shown = now;
      this.report({ ...this.at });
    }
    return found.length;
  }
}
