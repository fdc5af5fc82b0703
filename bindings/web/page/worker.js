// The analyzer beside the page: the page answers while it works, and ends it to cancel.
"use strict";

importScripts("thinair.js", "engine.js");

const engine = new Engine((progress) => postMessage({ progress }));
const reader = new FileReaderSync();

// A file is read in slices: none is ever in memory as a whole.
function source(file) {
  let slice = null;
  const octets = (from, to) => {
    // Freed at once, as garbage is collected late.
    slice?.transfer?.(0);
    slice = reader.readAsArrayBuffer(file.slice(from, to));
    return new Uint8Array(slice);
  };
  return { name: file.name, size: file.size, octets };
}

onmessage = ({ data: { module, files, options, tariff, kind } }) => {
  try {
    if (module) wasm_bindgen.initSync({ module });
    else if (files) postMessage({ results: engine.analyze({ sources: files.map(source), options, tariff }) });
    else if (kind) postMessage({ kind, blob: engine.document(kind) });
    else postMessage({ tariffs: wasm_bindgen.tariffs(), example: wasm_bindgen.example() });
  } catch (error) {
    postMessage({ error: engine.message(error) });
  }
};
