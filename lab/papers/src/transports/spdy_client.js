// Fetches objects by SPDY/3.1 without TLS, one after the other on one connection: ADDRESS PORT PATH...
const [host, port, ...paths] = process.argv.slice(2);
const http = require('http');
const spdy = require('spdy');
const agent = spdy.createAgent({ host, port, spdy: { ssl: false, plain: true, protocol: 'spdy/3.1' } });
const next = () => {
  const path = paths.shift();
  if (path === undefined) process.exit(0);
  const request = http.get({ host, port, path, agent }, (response) => {
    response.on('data', () => {});
    response.on('end', next);
  });
  request.on('error', () => process.exit(1));
};
next();
