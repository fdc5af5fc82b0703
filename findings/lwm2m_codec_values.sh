#!/bin/sh
# LwM2M: 31 degrees are read as 2.98, and 3800 mV as text.
#
# Expected: a Float of TLV has four or eight octets, as its length says, and an Integer is a number in each instance of a resource, too (OMA
# LwM2M 1.0, section 6.4.3 and appendix C; the supply voltages, 3800 mV and 5000 mV, are of the example in section 6.4.3).
# Version: lwm2m-codec 0.1.1 (npm).
# Behavior: of a Float of eight octets, a "double" of C or Java, the first four are read as one of four octets. Instances of a resource are
# decoded as UTF-8: 0ed8 becomes U+000E and U+FFFD, from which the number cannot be had back. The same values as a Float of four octets, and
# as a resource of one instance, are right.
# Guess before the first run: all values right.
# Output seen: "31 2.984375 | 3800 000e:fffd 0013:fffd" (Float of four and of eight octets | a voltage of one instance, two of two).
. "$(dirname "$0")/lib.sh"
node_packages lwm2m-codec@0.1.1
cat >read.js <<'END'
const { decode } = require("lwm2m-codec");
const read = (path, octets) => decode("tlv", path, Buffer.from(octets, "hex"));
const shown = (value) => typeof value === "string" ? [...value].map((one) => one.codePointAt(0).toString(16).padStart(4, "0")).join(":") : value;
const floats = ["e4164441f80000", "e8164408403f000000000000"].map((octets) => read("/3303/0", octets).sensorValue);
const single = read("/3/0", "c2070ed8").pwrSrcVoltage;
const instances = Object.values(read("/3/0", "88070842000ed842011388").pwrSrcVoltage);
console.log(...floats, "|", ...[single, ...instances].map(shown));
END
expect "lwm2m-codec 0.1.1, Float of 4 and 8 octets, Integer of one and two instances" "$(node read.js)" "31 2.984375 | 3800 000e:fffd 0013:fffd"
