"""libcoap's example client and server. A request, or `-G` of them a second apart, is a process with a port of its own."""

CLIENT = "coap-client-notls"
SERVER = "coap-server-notls"


def server(peers):
    return peers.start(SERVER, "-A", peers.host, "-d", "10", "-v", "4")


def client(peers, path, *options):
    """A client that gives up after 10 s."""
    return peers.start(CLIENT, "-B", "10", *options, peers.uri + path)


def request(peers, path, *options):
    peers.wait(client(peers, path, *options))


def get(peers):
    """Piggybacked responses, a separate one, errors."""
    several = client(peers, "/time", "-G", "4")
    separate = client(peers, "/async?1")
    for path in ["/", "/.well-known/core", "/time?ticks", "/example_data", "/missing"] * 2:
        request(peers, path)
    peers.wait(separate)
    peers.wait(several)


def put(peers):
    """Payloads, Content-Formats, a resource that is made and deleted, tokens that are told."""
    several = client(peers, "/example_data", "-m", "put", "-e", "the same again", "-G", "4")
    for number in range(8):
        request(peers, "/example_data", "-m", "put", "-t", "0", "-e", f"reading {number}: {20 + number / 8} C")
        request(peers, "/example_data", "-T", f"token{number}")
    request(peers, "/made/here", "-m", "put", "-t", "50", "-e", '{"temperature": 21.5}')
    request(peers, "/made/here", "-A", "50")
    request(peers, "/made/here", "-m", "delete")
    peers.wait(several)


def non(peers):
    several = client(peers, "/time", "-N", "-G", "4")
    for number in range(5):
        request(peers, "/time", "-N")
        request(peers, "/example_data", "-N", "-m", "put", "-e", f"reading {number}")
    peers.wait(several)


def observe(peers):
    """Notifications every second, and others as fast as a resource changes."""
    seconds = client(peers, "/time", "-s", "4")
    changes = client(peers, "/example_data", "-s", "3", "-T", "watch")
    for number in range(20):
        request(peers, "/example_data", "-m", "put", "-e", f"reading {number}")
    peers.wait(changes)
    peers.wait(seconds)


def block(peers):
    """Block1 and Block2, small and large."""
    octets = bytes(number * number % 251 for number in range(3000))
    for size in (64, 256, 1024):
        request(peers, f"/big{size}", "-m", "put", "-t", "42", "-b", str(size), "-f", peers.file("big", octets))
        received = peers.file("received", b"")
        request(peers, f"/big{size}", "-b", str(size), "-o", received)
        with open(received, "rb") as back:
            assert back.read() == octets, f"blocks of {size} octets"


SCENARIOS = {"get": get, "put": put, "non": non, "observe": observe, "block": block}
