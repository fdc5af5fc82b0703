"""RTP of GStreamer: generated tones and test pictures, at the pace of the media."""

import shutil
import socket

from media import Impossible
from udp_lite import Lite

PORT = 5004
RELAY = 5006


def start(sender, text, host, port):
    if shutil.which("gst-launch-1.0") is None:
        raise Impossible("no gst-launch-1.0 (Debian: gstreamer1.0-tools)")
    sink = f"! udpsink host={host} port={port}"
    return sender.start("gst-launch-1.0", "-q", *text.split(), *sink.split())


def finish(sender, process):
    """A pipeline whose elements are not all installed ends at once, and names one."""
    try:
        sender.wait(process)
    except RuntimeError:
        with open(sender.log.name) as log:
            missing = [line for line in log if "no element" in line]
        if missing:
            raise Impossible(missing[0].strip()) from None
        raise


def play(sender, text):
    finish(sender, start(sender, text, sender.there, PORT))
    return "GStreamer"


# 20 ms of one channel at 8 kHz, as telephones send it. RFC 3551, section 4.5.14.
TIME = "min-ptime=20000000 max-ptime=20000000"
PCMU = f"mulawenc ! rtppcmupay {TIME}"


def tone(packets, hertz=440):
    source = f"audiotestsrc samplesperbuffer=160 num-buffers={packets} freq={hertz}"
    return f"{source} ! audio/x-raw,rate=8000,channels=1"


def voice(sender):
    """G.711, 50 packets a second, the timestamp grows by 160."""
    return play(sender, f"{tone(200)} ! {PCMU}")


def opus(sender):
    """Opus with silence suppression: beeps, and between them packets that are not sent. RFC 7587, section 3.1.3."""
    beeps = "audiotestsrc wave=ticks tick-interval=1500000000 sine-periods-per-tick=250 freq=500"
    source = f"{beeps} samplesperbuffer=960 num-buffers=350 ! audio/x-raw,rate=48000,channels=1"
    return play(sender, f"{source} ! opusenc audio-type=voice bitrate=16000 dtx=true ! rtpopuspay dtx=true")


def video(sender):
    """H.264: several packets of one timestamp, the last of which is marked. RFC 6184, section 5.1."""
    source = "videotestsrc pattern=ball num-buffers=60 ! video/x-raw,width=160,height=120,framerate=15/1"
    encoder = "x264enc tune=zerolatency bitrate=96 key-int-max=20"
    return play(sender, f"{source} ! {encoder} ! rtph264pay mtu=300 config-interval=1")


def csrc(sender):
    """A mixer names who can be heard: nobody, one, two, and another one. RFC 3550, section 5.1."""
    alone = f"{tone(40)} ! mulawenc ! c."
    one = f"{tone(40, 500)} ! {PCMU} ! rtppcmudepay source-info=true ! c."
    mixer = f"rtppcmupay source-info=true {TIME}"
    two = f"{tone(40, 600)} ! {PCMU} ! rtppcmudepay source-info=true ! {mixer} ! rtppcmudepay source-info=true ! c."
    return play(sender, f"{alone} {one} {two} {one} concat name=c ! {mixer}")


def extension(sender):
    """A header extension with the time of sending, another one in each packet. RFC 6051, section 3.3."""
    time = "application/x-rtp,extmap-1=(string)urn:ietf:params:rtp-hdrext:ntp-64"
    return play(sender, f"{tone(100)} ! {PCMU} ! {time}")


def over_udp_lite(sender):
    """The same voice over UDP-Lite, whose checksum covers the headers alone: 8 octets of UDP-Lite, 12 of RTP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as relay:
        relay.bind(("127.0.0.1", RELAY))
        relay.setblocking(False)
        lite = Lite(sender, 5060, PORT)
        lite.coverage(20)
        process = start(sender, f"{tone(150)} ! {PCMU}", "127.0.0.1", RELAY)
        while process.poll() is None:
            sender.pause(0.005)
            forward(relay, lite)
        finish(sender, process)
    return "GStreamer and the UDP-Lite of Linux"


def forward(relay, lite):
    while True:
        try:
            lite.send(relay.recv(2000))
        except BlockingIOError:
            return


SCENARIOS = {
    "rtp-pcmu-ipv4": (4, voice),
    "rtp-pcmu-ipv6": (6, voice),
    "rtp-opus-dtx-ipv4": (4, opus),
    "rtp-h264-ipv4": (4, video),
    "rtp-csrc-ipv4": (4, csrc),
    "rtp-extension-ipv6": (6, extension),
    "rtp-udp-lite-ipv4": (4, over_udp_lite),
    "rtp-udp-lite-ipv6": (6, over_udp_lite),
}
