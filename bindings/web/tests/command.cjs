// `thinair web`: what it serves, to whom, and how it ends. THINAIR_PAGE is that command, with the page of the folder that is the argument.
"use strict";

const assert = require("node:assert/strict");
const { spawnSync } = require("node:child_process");
const { once } = require("node:events");
const fs = require("node:fs");
const http = require("node:http");
const net = require("node:net");
const path = require("node:path");
const { test } = require("node:test");
const { skip, web } = require("./served.cjs");

const folder = process.argv[2];

// Asks for a path as it is written, and returns status, headers and body.
function ask(address, path, method = "GET") {
  const { hostname, port } = new URL(address);
  return new Promise((resolve, reject) => {
    const request = http.request({ hostname, port, path, method, agent: false }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(parts) }));
    });
    request.on("error", reject).end();
  });
}

test("every file of the page is served, with its type and the policy", { skip }, async (t) => {
  const { address, end } = await web();
  t.after(end);
  assert.match(address, /^http:\/\/127\.0\.0\.1:\d+\/$/);
  const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml" };
  const policy = fs.readFileSync(path.join(folder, "index.html"), "utf8").match(/Content-Security-Policy" content="([^"]*)"/)[1];
  for (const name of fs.readdirSync(folder)) {
    const place = name === "index.html" ? "/" : `/${name}`;
    const octets = fs.readFileSync(path.join(folder, name));
    const { status, headers, body } = await ask(address, place);
    assert.equal(status, 200, name);
    assert.ok(body.equals(octets), name);
    assert.equal(headers["content-type"], types[path.extname(name)]);
    assert.equal(headers["content-security-policy"], policy);
    assert.equal(headers["x-content-type-options"], "nosniff");
    const head = await ask(address, place, "HEAD");
    assert.deepEqual([head.status, head.body.length, Number(head.headers["content-length"])], [200, 0, octets.length]);
  }
});

test("nothing else is served", { skip }, async (t) => {
  const { address, end } = await web();
  t.after(end);
  for (const path of ["/../Cargo.toml", "/%2e%2e/Cargo.toml", "//etc/passwd", "/app.js/", "/app.js%00", "/./app.js", "/web.rs"]) {
    assert.equal((await ask(address, path)).status, 404, path);
  }
  for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
    const { status, headers } = await ask(address, "/app.js", method);
    assert.deepEqual([status, headers.allow], [405, "GET,HEAD"], method);
  }
  // Another address of loopback, too, is not this one.
  const other = net.connect({ host: "127.0.0.2", port: new URL(address).port });
  const [error] = await once(other, "error");
  assert.equal(error.code, "ECONNREFUSED");
});

test("the port is chosen, and one in use is refused", { skip }, async (t) => {
  const taken = net.createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address();
  const { status, stdout, stderr } = spawnSync(process.env.THINAIR_PAGE, ["web", "--port", port]);
  assert.deepEqual([status, stdout.toString()], [1, ""]);
  assert.match(stderr.toString(), new RegExp(`cannot serve the page at 127.0.0.1:${port}: .*in use`));
  taken.close();
  await once(taken, "close");
  const { address, end } = await web("--port", port);
  t.after(end);
  assert.equal(address, `http://127.0.0.1:${port}/`);
});

test("a signal ends it, with a connection that is open", { skip, timeout: 60_000 }, async () => {
  for (const signal of ["SIGINT", "SIGTERM"]) {
    const { address, child } = await web();
    const connection = net.connect(new URL(address).port, "127.0.0.1");
    await once(connection, "connect");
    connection.on("error", () => {});
    child.kill(signal);
    const [, by] = await once(child, "exit");
    assert.equal(by, signal);
  }
});
