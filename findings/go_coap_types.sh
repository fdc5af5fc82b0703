#!/bin/sh
# Non-confirmable messages are answered with Confirmable ones, and answers are answered.
#
# Expected: the response to a Non-confirmable request is Non-confirmable (RFC 7252, section 5.2.3, SHOULD), and a response that
# matches no request is rejected: silently, or with a Reset message (sections 4.3 and 5.3.2).
# Version: github.com/plgd-dev/go-coap/v3 v3.3.6.
# Behavior: the server answers a Non-confirmable GET with a Confirmable 2.05, so each exchange has three datagrams instead of two; and
# a late Non-confirmable 2.05 from a peer with a Confirmable 4.04, as if it were a request.
# Output seen: "CON 2.05" and "CON 4.04".
. "$(dirname "$0")/lib.sh"
cat >main.go <<'END'
package main

import (
	"bytes"
	"log"
	"os"

	coap "github.com/plgd-dev/go-coap/v3"
	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/mux"
)

func main() {
	router := mux.NewRouter()
	router.Handle("/x", mux.HandlerFunc(func(w mux.ResponseWriter, request *mux.Message) {
		w.SetResponse(codes.Content, message.TextPlain, bytes.NewReader([]byte("hello")))
	}))
	log.Fatal(coap.ListenAndServe("udp", "127.0.0.1:"+os.Args[1], router))
}
END
go_program server github.com/plgd-dev/go-coap/v3 v3.3.6
cat >ask.py <<'END'
import sys
from coap_probe import ask, message, ready
port = int(sys.argv[1])
ready(port, b"x")
print(ask(port, message(1, 1, 1000, [(11, b"x")]))[:8], ask(port, message(1, 69, 1001, payload=b"late"))[:8])
END
serve ./server PORT
expect "go-coap 3.3.6, NON GET, then a NON 2.05 of nobody" "$(python3 ask.py "$port")" "CON 2.05 CON 4.04"
