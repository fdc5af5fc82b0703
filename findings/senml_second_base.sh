#!/bin/sh
# Measurements of a second device get the name of the first.
#
# Expected: base fields may be in any record of a SenML pack, and hold for it and all records behind it until the next one with that
# field, RFC 8428, sections 4.1 and 4.6.
# Version: senml 0.1.0 (PyPI).
# Behavior: only the base fields of the first record are read. In a pack with the values of two devices, each behind a base name of its
# own, those of the second device are resolved with the name of the first. There is no error.
# Output seen: "urn:dev:mac:01:temperature urn:dev:mac:01:temperature".
. "$(dirname "$0")/lib.sh"
python_packages senml==0.1.0 attrs==26.1.0
cat >read.py <<'END'
import senml
pack = [
    {"bn": "urn:dev:mac:01:", "bt": 1.7e9, "n": "temperature", "u": "Cel", "v": 20.5},
    {"bn": "urn:dev:mac:02:", "n": "temperature", "u": "Cel", "v": 3.5},
]
document = senml.SenMLDocument.from_json(pack)
print(*(one.to_absolute(document.base).name for one in document.measurements))
END
expect "senml 0.1.0, names of both records" "$(python/bin/python read.py)" "urn:dev:mac:01:temperature urn:dev:mac:01:temperature"
