#!/bin/sh
# A replay window that is not known is stored in two forms.
#
# Expected: sequence.json of an OSCORE context has the replay window of the last clean end, or "unknown" while a process uses the context or
# behind one that was killed. A context that is opened behind a kill, and closed before a request has made the window known, leaves
# "unknown".
# Version: aiocoap 0.4.17 (PyPI).
# Behavior: closing stores a window whose index and bit field are null. The library itself takes that for unknown; a reader of the file that
# knows numbers and "unknown" does not.
# Output seen: "unknown" becomes {"index": null, "bitfield": null}.
. "$(dirname "$0")/lib.sh"
python_packages 'aiocoap[oscore]==0.4.17' filelock==4.3.1
cat >close.py <<'END'
import json, os
from aiocoap.oscore import FilesystemSecurityContext
os.mkdir("context")
settings = {"sender-id_hex": "01", "recipient-id_hex": "02", "secret_hex": "0102030405060708090a0b0c0d0e0f10"}
for name, contents in [("settings", settings), ("sequence", {"next-to-send": 30, "received": "unknown"})]:
    with open(f"context/{name}.json", "w") as file:
        json.dump(contents, file)
FilesystemSecurityContext("context")._destroy()
with open("context/sequence.json") as file:
    print(json.dumps(json.load(file)["received"]))
END
expect "aiocoap 0.4.17, unknown window" "$(python/bin/python close.py)" '{"index": null, "bitfield": null}'
