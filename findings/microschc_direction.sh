#!/bin/sh
# SCHC: a message comes back with the fields of both directions.
#
# Expected: a field of a rule with direction Up or Dw is used for packets of that direction only, RFC 8724, sections 7.1 and 7.2; rules for
# CoAP have such pairs for its type and code (RFC 8824, section 3.1).
# Version: microschc 0.22.0 (PyPI).
# Behavior: the class ContextManager has a parameter for the direction of a packet that is compressed, and none for one that is
# decompressed. It builds a message of the fields of Up and of Dw: type and code are there twice, and a GET of 4 octets comes back as 6,
# with a Token Length of 8. The function decompress, below that class, gives the right message if it is called with the direction.
# Guess before the first run, from the source: both messages come back wrong.
# Output seen: "40011234 to 480051048d00, 60441234 to 480051048d00; by the function 40011234 60441234".
. "$(dirname "$0")/lib.sh"
python_packages microschc==0.22.0
cat >pairs.py <<'END'
import microschc.protocol.coap
from microschc.binary.buffer import Buffer, Padding
from microschc.decompressor.decompressor import decompress
from microschc.manager.manager import ContextManager
from microschc.protocol.coap import CoAPFields
from microschc.rfc8724 import CompressionDecompressionAction, DirectionIndicator, MatchingOperator, RuleDescriptor, RuleFieldDescriptor
from microschc.rfc8724extras import Context

UP, DOWN, BOTH = DirectionIndicator.UP, DirectionIndicator.DOWN, DirectionIndicator.BIDIRECTIONAL


def bits(value, length):
    return Buffer(content=bytes([value]), length=length, padding=Padding.LEFT)


def known(field, length, value, direction=BOTH):
    return RuleFieldDescriptor(
        field, length, 0, direction, bits(value, length), MatchingOperator.EQUAL, CompressionDecompressionAction.NOT_SENT
    )


rule = RuleDescriptor(id=bits(1, 8), field_descriptors=[
    known(CoAPFields.VERSION, 2, 1),
    known(CoAPFields.TYPE, 2, 0, UP),
    known(CoAPFields.TYPE, 2, 2, DOWN),
    known(CoAPFields.TOKEN_LENGTH, 4, 0),
    known(CoAPFields.CODE, 8, 0x01, UP),
    known(CoAPFields.CODE, 8, 0x44, DOWN),
    RuleFieldDescriptor(CoAPFields.MESSAGE_ID, 16),
])
manager = ContextManager(Context("0", "", "0", "CoAP", [rule]))
by_manager, by_function = [], []
for direction, message in (UP, "40011234"), (DOWN, "60441234"):
    compressed = manager.compress(Buffer(content=bytes.fromhex(message), length=32), direction=direction)
    by_manager.append(f"{message} to {manager.decompress(compressed).content.hex()}")
    by_function.append(decompress(compressed, rule, direction=direction, unparser=manager.parser).content.hex())
print(f"{', '.join(by_manager)}; by the function {' '.join(by_function)}")
END
expect "microschc 0.22.0, messages of a rule with directions" "$(python/bin/python pairs.py)" \
	"40011234 to 480051048d00, 60441234 to 480051048d00; by the function 40011234 60441234"
