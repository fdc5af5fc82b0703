#!/bin/sh
# The file of the manual for secrets is not read.
#
# Expected: the parameters of an OSCORE context are in settings.json, or, for keys that only their owner may read, in the second file that
# the documentation of the class FilesystemSecurityContext names: secrets.json.
# Version: aiocoap 0.4.17 (PyPI).
# Behavior: the second file is secret.json. A context with its key in secrets.json does not load; the message names the key, not the file.
# Output seen: "True; LoadError Configuration key missing: secret" for secrets.json, where True means that the manual names it; "loads" for
# secret.json.
. "$(dirname "$0")/lib.sh"
python_packages 'aiocoap[oscore]==0.4.17' filelock==4.3.1
cat >load.py <<'END'
import json, os, sys
from aiocoap.oscore import FilesystemSecurityContext
name = sys.argv[1]
os.mkdir("of_" + name)
with open(f"of_{name}/settings.json", "w") as file:
    json.dump({"sender-id_hex": "01", "recipient-id_hex": "02"}, file)
with open(f"of_{name}/{name}", "w") as file:
    json.dump({"secret_hex": "0102030405060708090a0b0c0d0e0f10"}, file)
try:
    context = FilesystemSecurityContext("of_" + name)
    print("loads")
except FilesystemSecurityContext.LoadError as error:
    print(f"{name in FilesystemSecurityContext.__doc__}; LoadError {error}")
END
load() { python/bin/python load.py "$1" 2>/dev/null; }
expect "aiocoap 0.4.17, secrets.json" "$(load secrets.json)" "True; LoadError Configuration key missing: secret"
expect "aiocoap 0.4.17, secret.json" "$(load secret.json)" "loads"
