#!/bin/sh
# A client sends again at a steady pace to a server that does not answer; another one gives up a transmission early.
#
# Expected: a Confirmable message is sent again up to four times; the timeout, at first 2 to 3 s, doubles each time, RFC 7252, section 4.2.
# Version: github.com/plgd-dev/go-coap/v3 v3.3.6; CoAPthon3 1.0.2 (PyPI).
# Behavior: go-coap waits 4 s each time: it does not slow down where requests are lost because a link is full, and clients that began at one
# time stay in step. CoAPthon3 doubles, and sends again three times.
# Output seen: "1 1 1 1" and "1 2 4" (times between datagrams, the first one is 1).
. "$(dirname "$0")/lib.sh"
python_packages CoAPthon3==1.0.2
cat >silent.py <<'END'
import socket
import subprocess
import sys
import time

listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listener.bind(("127.0.0.1", 0))
listener.settimeout(1)
port = listener.getsockname()[1]
client = subprocess.Popen([*sys.argv[1:], str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
arrived, end = [], time.monotonic() + 75
while time.monotonic() < end and client.poll() is None:
    try:
        listener.recv(2048)
        arrived.append(time.monotonic())
    except TimeoutError:
        pass
client.kill()
waits = [after - before for before, after in zip(arrived, arrived[1:])]
print(*(round(wait / waits[0]) for wait in waits))
END
cat >ask.py <<'END'
import sys

from coapthon.client.helperclient import HelperClient

client = HelperClient(server=("127.0.0.1", int(sys.argv[1])))
client.get("t", timeout=80)
client.stop()
END
cat >main.go <<'END'
package main

import (
	"context"
	"os"
	"time"

	"github.com/plgd-dev/go-coap/v3/udp"
)

func main() {
	connection, err := udp.Dial("127.0.0.1:" + os.Args[1])
	if err != nil {
		panic(err)
	}
	limit, cancel := context.WithTimeout(context.Background(), 80*time.Second)
	defer cancel()
	connection.Get(limit, "/t")
}
END
go_program ask github.com/plgd-dev/go-coap/v3 v3.3.6
expect "go-coap 3.3.6, times between transmissions" "$(python3 silent.py ./ask)" "1 1 1 1"
expect "CoAPthon3 1.0.2, times between transmissions" "$(python3 silent.py python/bin/python ask.py)" "1 2 4"
