// Fetches paths by SPDY/3.1 without TLS from a port of 127.0.0.1, all of them over one connection at once, and prints for
// each: status, octets, and the SHA-256 of them. Usage: spdy_client.js PORT PATH...
const http = require('http');
const { createHash } = require('crypto');
const spdy = require('spdy');

const [port, ...paths] = process.argv.slice(2);
const host = '127.0.0.1';
const agent = spdy.createAgent({ host, port, spdy: { ssl: false, plain: true, protocol: 'spdy/3.1' } });

function fetch(path) {
    return new Promise((resolve, reject) => {
        const request = http.get({ host, agent, path }, (response) => {
            const parts = [];
            response.on('data', (part) => parts.push(part));
            response.on('end', () => {
                const body = Buffer.concat(parts);
                const hash = createHash('sha256').update(body).digest('hex');
                resolve(`${path} ${response.statusCode} ${body.length} ${hash}`);
            });
        });
        request.on('error', reject);
    });
}

Promise.all(paths.map(fetch)).then((lines) => {
    console.log(lines.join('\n'));
    process.exit(0);
}, (error) => {
    console.error(error);
    process.exit(1);
});
