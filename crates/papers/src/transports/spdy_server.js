// Serves the files of a folder by SPDY/3.1 without TLS: ADDRESS PORT FOLDER.
const [address, port, folder] = process.argv.slice(2);
const fs = require('fs');
const spdy = require('spdy');
const options = { spdy: { ssl: false, plain: true, protocol: 'spdy/3.1' } };
const server = spdy.createServer(options, (request, response) => {
  const object = fs.readFileSync(folder + request.url);
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': object.length });
  response.end(object);
});
server.listen(port, address);
