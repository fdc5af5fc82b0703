"""Credentials of aiocoap from the files of thinair: a folder with an OSCORE context, or with keys for EDHOC; a pre-shared key."""

import os
from pathlib import Path

import cbor2


def credential(path):
    return {14: cbor2.loads(path.read_bytes())}


def client(folder):
    """Returns the entry for a server. The environment variable MESSAGE_3=plain keeps message 3 out of the first request."""
    folder = Path(folder)
    if folder.is_file():
        return psk(folder)
    if not (folder / "own.key").exists():
        return {"oscore": {"basedir": f"{folder}/"}}
    (peer,) = (path for path in folder.glob("*.ccs") if path.name != "own.ccs")
    more = {"use_combined_edhoc": False} if os.environ.get("MESSAGE_3") == "plain" else {}
    return {"edhoc-oscore": own(folder) | {"peer_cred": credential(peer)} | more}


def server(folder, origin):
    """Returns the entries of a server at an origin, whose client is `:client`."""
    folder = Path(folder)
    if folder.is_file():
        return {":client": psk(folder)}
    if not (folder / "own.key").exists():
        return {":client": {"oscore": {"basedir": f"{folder}/"}}}
    (peer,) = (path for path in folder.glob("*.ccs") if path.name != "own.ccs")
    accepted = {"suite": 2, "method": 3, "peer_cred": credential(peer)}
    return {f"{origin}/*": {"edhoc-oscore": own(folder)}, ":client": {"edhoc-oscore": accepted}}


def psk(file):
    identity, key = file.read_text().split()[0].rsplit(":", 1)
    return {"dtls": {"psk": {"hex": key}, "client-identity": {"ascii": identity}}}


def own(folder):
    return {
        "suite": 2,
        "method": 3,
        "own_cred_style": "by-key-id",
        "own_cred": credential(folder / "own.ccs"),
        "private_key": cbor2.loads((folder / "own.key").read_bytes()),
    }
