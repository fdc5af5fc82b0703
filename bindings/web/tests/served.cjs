// Web servers for the page, and captures that are made for tests.
"use strict";

const { spawn } = require("node:child_process");
const { once } = require("node:events");
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

// Serves a folder below /some/where/ of a free port of loopback, under the policy of the page. Returns its address and a function that ends it.
async function serve(folder) {
  const page = fs.readFileSync(path.join(folder, "index.html"), "utf8");
  const policy = page.match(/Content-Security-Policy" content="([^"]*)"/)[1];
  const server = http.createServer(({ url }, response) => {
    const name = url.match(/^\/some\/where\/([a-z]*\.?[a-z]*)$/)?.[1];
    const file = name === undefined ? undefined : path.join(folder, name || "index.html");
    if (file === undefined || !fs.existsSync(file)) return response.writeHead(404).end();
    const type = TYPES[path.extname(file)];
    response.writeHead(200, { "content-type": type, "content-security-policy": policy, "cache-control": "no-store" });
    response.end(fs.readFileSync(file));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { address: `http://127.0.0.1:${server.address().port}/some/where/`, end: () => server.close() };
}

// Runs `thinair web` with options. Returns the address that it prints, its process, and a function that ends it.
async function web(...options) {
  const child = spawn(process.env.THINAIR_PAGE, ["web", ...options], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(child.stdout, "data");
  return { address: line.toString().trim(), child, end: () => child.kill() };
}

// Reason for which tests of it are left out.
const skip = process.env.THINAIR_PAGE ? false : "THINAIR_PAGE, a command with the feature `web`, is not set";

// Writes a pcap file of UDP datagrams over IPv4, `packets` in number, that belong to `flows` flows by turns. Each has `payload` octets.
function writeCapture(file, { packets, flows, payload = 32 }) {
  const header = Buffer.alloc(24);
  header.writeUInt32LE(0xa1b2c3d4, 0);
  header.writeUInt16LE(2, 4);
  header.writeUInt16LE(4, 6);
  header.writeUInt32LE(262_144, 16);
  header.writeUInt32LE(101, 20);
  const out = fs.openSync(file, "w");
  fs.writeSync(out, header);
  const length = 28 + payload;
  const most = 4096;
  const block = Buffer.alloc(most * (16 + length));
  for (let first = 0; first < packets; first += most) {
    const count = Math.min(most, packets - first);
    for (let i = 0; i < count; i += 1) {
      const [number, at] = [first + i, i * (16 + length)];
      const flow = number % flows;
      block.writeUInt32LE(1_700_000_000 + Math.floor(number / 1_000), at);
      block.writeUInt32LE(number % 1_000 * 1_000, at + 4);
      block.writeUInt32LE(length, at + 8);
      block.writeUInt32LE(length, at + 12);
      const ip = at + 16;
      block.writeUInt16BE(0x4500, ip);
      block.writeUInt16BE(length, ip + 2);
      block.writeUInt16BE(Math.floor(number / flows) & 0xffff, ip + 4);
      block.writeUInt16BE(0x4000, ip + 6);
      block.writeUInt16BE(0x4011, ip + 8);
      block.writeUInt16BE(0, ip + 10);
      block.writeUInt32BE(0x0a000000 + (flow >> 15), ip + 12);
      block.writeUInt32BE(0xc0000201, ip + 16);
      let sum = 0;
      for (let word = 0; word < 20; word += 2) sum += block.readUInt16BE(ip + word);
      sum = (sum & 0xffff) + (sum >>> 16);
      block.writeUInt16BE(~((sum & 0xffff) + (sum >>> 16)) & 0xffff, ip + 10);
      block.writeUInt16BE(1024 + (flow & 0x7fff), ip + 20);
      block.writeUInt16BE(9999, ip + 22);
      block.writeUInt16BE(8 + payload, ip + 24);
      block.writeUInt16BE(0, ip + 26);
      block.fill(number & 0xff, ip + 28, ip + length);
    }
    fs.writeSync(out, block, 0, count * (16 + length));
  }
  fs.closeSync(out);
}

module.exports = { serve, skip, web, writeCapture };
