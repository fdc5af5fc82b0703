"""Handshakes and datagrams of a tunnel once more, of the definitions in docs/carriers.md and of Noise (revision 34).
Usage: tunnel_vectors.py FILE, with the vectors as JSON. It prints the number of each kind that agree."""

import hashlib, hmac, json, sys
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305

def mac(key, octets):
    return hmac.new(key, octets, hashlib.sha256).digest()

def hkdf(salt, secret, info, length):
    key, out, block = mac(salt or bytes(32), secret), b"", b""
    while len(out) < length:
        block = mac(key, block + info + bytes([len(out) // 32 + 1]))
        out += block
    return out[:length]

def mixed(chaining, secret, count):
    out = hkdf(chaining, secret, b"", 32 * count)
    return [out[i:i + 32] for i in range(0, len(out), 32)]

class Noise:
    def __init__(self, name, prologue):
        self.ck = self.h = hashlib.sha256(name).digest() if len(name) > 32 else name.ljust(32, b"\0")
        self.mix_hash(prologue)

    def mix_hash(self, octets):
        self.h = hashlib.sha256(self.h + octets).digest()

    def mix_key(self, secret):
        self.ck, self.k = mixed(self.ck, secret, 2)
        self.n = 0

    def mix_psk(self, psk):
        self.ck, hashed, self.k = mixed(self.ck, psk, 3)
        self.mix_hash(hashed)
        self.n = 0

    def seal(self, octets):
        sealed = ChaCha20Poly1305(self.k).encrypt(bytes(4) + self.n.to_bytes(8, "little"), octets, self.h)
        self.n += 1
        self.mix_hash(sealed)
        return sealed

    def ephemeral(self, public):
        self.mix_hash(public)
        self.mix_key(public)
        return public

def messages(vector, private, payloads):
    """Both messages, and the keys of both directions."""
    public = {name: key.public_key().public_bytes_raw() for name, key in private.items()}
    dh = lambda own, other: private[own].exchange(X25519PublicKey.from_public_bytes(public[other]))
    request, psk, is_public = bytes.fromhex(vector["request"]), bytes.fromhex(vector["psk"]), "IK" in vector["pattern"]
    header = request[:2 if is_public else 6]
    noise = Noise(vector["pattern"].encode(), (b"thinair 1 public keys" if is_public else b"thinair 1 two-way") + header)
    if is_public:
        noise.mix_hash(public["responder_private"])
    else:
        noise.mix_psk(psk)
    first = header + noise.ephemeral(public["initiator_ephemeral"])
    if is_public:
        noise.mix_key(dh("initiator_ephemeral", "responder_private"))
        first += noise.seal(public["initiator_private"])
        noise.mix_key(dh("initiator_private", "responder_private"))
    first += noise.seal(payloads[0])
    gate = public["responder_private"] if is_public else psk
    first += mac(hkdf(b"", gate, b"thinair 1 request proof", 32), first)[:16]
    second = b"\x62" + header[1:2] + noise.ephemeral(public["responder_ephemeral"])
    noise.mix_key(dh("initiator_ephemeral", "responder_ephemeral"))
    if is_public:
        noise.mix_key(dh("initiator_private", "responder_ephemeral"))
        noise.mix_psk(psk)
    second += noise.seal(payloads[1])
    return first, second, mixed(noise.ck, b"", 2)

def datagram(suite, key, index, several, counter, body):
    size = 32 if suite == 1 else 16
    material = hkdf(b"", key, b"thinair 1 two-way traffic" + bytes([suite]), 44)
    aead = {1: ChaCha20Poly1305, 4: AESGCM, 2: lambda key: AESCCM(key, 8)}[suite](material[:size])
    nonce = bytes(a ^ b for a, b in zip(material[size:size + 12], bytes(4) + counter.to_bytes(8, "big")))
    full = counter == 0
    header = bytes([0x20 | full << 4 | several << 3, index]) + counter.to_bytes(8, "big")[0 if full else 6:]
    return header + aead.encrypt(nonce, body, header)

handshakes = datagrams = 0
for vector in json.load(open(sys.argv[1])):
    names = [name for name in vector if name.endswith(("_private", "_ephemeral"))]
    private = {name: X25519PrivateKey.from_private_bytes(bytes.fromhex(vector[name])) for name in names}
    suite, ends = bytes([vector["suite"]]), [0x7B, 0xE4]
    payloads = [suite + b"\x11" * 8 + b"channels" + (5).to_bytes(4, "big"), suite + b"\x22" * 8 + b"channels" + bytes(ends[1:])]
    first, second, keys = messages(vector, private, payloads)
    assert [first.hex(), second.hex()] == [vector["request"], vector["answer"]], vector["pattern"]
    handshakes += 1
    counters = {"initiator": 0, "responder": 0}
    for sent in vector["datagrams"]:
        which = ["initiator", "responder"].index(sent["from"])
        body, counter = bytes.fromhex(sent["body"]), counters[sent["from"]]
        made = datagram(vector["suite"], keys[which], ends[1 - which], not body, counter, body)
        assert made.hex() == sent["datagram"], sent
        counters[sent["from"]] += 1
        datagrams += 1
print(f"{handshakes} handshakes and {datagrams} datagrams agree")
