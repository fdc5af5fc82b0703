#!/bin/sh
# coap-client ends with status 0 though there is no response.
#
# Expected: a status other than 0 where nobody listens, where the handshake of DTLS fails, and for an error response (4.04), as of
# other clients, so that scripts can test it.
# Version: libcoap3-bin and libcoap3 4.3.1-1 (Debian 12): coap-client of the examples.
# Behavior: the program ends with 0 in all three cases; it writes a message. For the handshake, the server has another
# key.
# Output seen: statuses 0 0 0.
. "$(dirname "$0")/lib.sh"
debian_packages libcoap3-bin=4.3.1-1 libcoap3=4.3.1-1
LD_LIBRARY_PATH=$(dirname root/usr/lib/*/libcoap-3-notls.so.3)
export LD_LIBRARY_PATH
# Its port of coaps is the next one.
serve root/usr/bin/coap-server-openssl -A 127.0.0.1 -p PORT -k one_key
sleep 1
client() { status=0; "$@" >/dev/null 2>&1 || status=$?; statuses="$statuses$status "; }
statuses=
client root/usr/bin/coap-client-openssl -B 2 coap://127.0.0.1:1/time
client root/usr/bin/coap-client-openssl -B 2 -k another_key -u phone "coaps://127.0.0.1:$((port + 1))/time"
client root/usr/bin/coap-client-openssl -B 2 "coap://127.0.0.1:$port/none"
expect "libcoap 4.3.1, closed port, another key, 4.04" "$statuses" "0 0 0 "
