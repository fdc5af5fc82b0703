// The analyzer beside the page: the page answers while it works, and ends it to cancel.
"use strict";

importScripts("thinair.js", "rows.js", "engine.js");

const engine = new Engine((progress) => postMessage({ progress }));
const reader = new FileReaderSync();

// A message to a closed port frees the octets that it takes along. Left to the garbage collection, which comes late for octets outside of
// its heap, slices would add up to hundreds of megabytes.
const { port1: nowhere, port2 } = new MessageChannel();
port2.close();

// A file is read in slices: none is ever in memory as a whole.
function source(file) {
  let slice = null;
  const octets = (from, to) => {
    if (slice !== null) nowhere.postMessage(null, [slice]);
    slice = reader.readAsArrayBuffer(file.slice(from, to));
    return new Uint8Array(slice);
  };
  return { name: file.name, size: file.size, octets };
}

onmessage = ({ data: { module, files, options, tariff, find, kind } }) => {
  try {
    if (module) wasm_bindgen.initSync({ module });
    else if (files) postMessage({ results: engine.analyze({ sources: files.map(source), options, tariff }) });
    else if (find) postMessage({ found: engine.find(find) });
    else if (kind) postMessage({ kind, blob: engine.document(kind) });
    else postMessage({ tariffs: wasm_bindgen.tariffs(), example: wasm_bindgen.example() });
  } catch (error) {
    postMessage({ error: engine.message(error) });
  }
};
