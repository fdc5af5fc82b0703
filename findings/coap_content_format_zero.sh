#!/bin/sh
# text/plain takes an octet more than it needs.
#
# Expected: Content-Format 0 (text/plain) is an option without value, since a uint has no leading zeros and 0 is the empty string,
# RFC 7252, section 3.2 ("A sender SHOULD represent the integer with as few bytes as possible"). aiocoap and go-coap do so.
# Version: coap 1.5.0 (npm).
# Behavior: the option has one octet, 00. A receiver must take both, so only octets are lost; a profile or rule of header
# compression that knows one of both forms does not fit the other.
# Output seen: "11 00" behind the Uri-Path of a PUT: delta 1, length 1, value 00.
. "$(dirname "$0")/lib.sh"
node_packages coap@1.5.0
cat >put.js <<'END'
const socket = require('dgram').createSocket('udp4')
socket.on('message', (octets) => {
  const path = octets.indexOf(Buffer.from([0xb1, 0x78]))
  console.log(octets.subarray(path + 2, octets.indexOf(0xff, path)).toString('hex'))
  process.exit()
})
socket.bind(0, '127.0.0.1', () => {
  const request = require('coap').request({ host: '127.0.0.1', port: socket.address().port, pathname: '/x', method: 'PUT' })
  request.setOption('Content-Format', 'text/plain')
  request.end('hi')
})
END
expect "coap 1.5.0, Content-Format text/plain" "$(node put.js)" "1100"
