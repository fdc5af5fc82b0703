// Serves the files of a folder by SPDY/3.1 without TLS: ADDRESS PORT FOLDER.
const [address, port, folder] = process.argv.slice(2);
const fs = require('fs');
const spdy = require('spdy');
const options = { spdy: { ssl: false, plain: true, protocol: 'spdy/3.1' } };
const server = spdy.createServer(options, (request, response) => {
  response.end(fs.readFileSync(folder + request.url));
});
server.listen(port, address);
