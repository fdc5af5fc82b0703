// SPDY/3.1 without TLS on a free port of 127.0.0.1, which is printed: /N is N octets, all else is not there.
const spdy = require('spdy');

const options = { spdy: { ssl: false, plain: true, protocols: ['spdy/3.1'] } };
const server = spdy.createServer(options, (request, response) => {
    const octets = /^\/(\d+)$/.exec(request.url);
    response.writeHead(octets ? 200 : 404, { 'x-asked-by': request.headers.host });
    response.end(octets ? Buffer.alloc(Number(octets[1]), 'x') : undefined);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
