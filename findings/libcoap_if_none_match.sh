#!/bin/sh
# If-None-Match does not keep a resource from being changed.
#
# Expected: a PUT with If-None-Match for a resource that exists is not performed, and answered with 4.12 (Precondition Failed),
# RFC 7252, section 5.10.8.2.
# Version: libcoap3-bin and libcoap3 4.3.1-1 (Debian 12): coap-server, the server of the examples.
# Behavior: the library leaves the option to the handler of the resource, and the one of /time does not read it: the clock of the
# server is set, and the answer is 2.04. The option is critical, so a client has no sign that nobody has looked at it.
# Output seen: "ACK 2.05" for GET /time, "ACK 2.04" for PUT /time with If-None-Match.
. "$(dirname "$0")/lib.sh"
debian_packages libcoap3-bin=4.3.1-1 libcoap3=4.3.1-1
cat >ask.py <<'END'
import sys
from coap_probe import ask, message, ready
port = int(sys.argv[1])
ready(port, b"time")
print(ask(port, message(0, 1, 1000, [(11, b"time")]))[:8], ask(port, message(0, 3, 1001, [(5, b""), (11, b"time"), (12, b"")], b"0"))[:8])
END
serve env LD_LIBRARY_PATH="$(dirname root/usr/lib/*/libcoap-3-notls.so.3)" root/usr/bin/coap-server-notls -A 127.0.0.1 -p PORT
expect "libcoap 4.3.1, GET, then PUT with If-None-Match" "$(python3 ask.py "$port")" "ACK 2.05 ACK 2.04"
