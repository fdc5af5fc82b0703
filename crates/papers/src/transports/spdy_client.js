// Fetches one object by SPDY/3.1 without TLS: ADDRESS PORT PATH.
const [host, port, path] = process.argv.slice(2);
const http = require('http');
const spdy = require('spdy');
const agent = spdy.createAgent({ host, port, spdy: { ssl: false, plain: true, protocol: 'spdy/3.1' } });
const request = http.get({ host, port, path, agent }, (response) => {
  response.on('data', () => {});
  response.on('end', () => process.exit(0));
});
request.on('error', () => process.exit(1));
