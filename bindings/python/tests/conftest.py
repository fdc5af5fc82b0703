"""Paths, and the command that results are compared with."""

import json
import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
CAPTURES = ROOT / "captures"


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples name captures relative to the repository."""
    monkeypatch.chdir(ROOT)


def command(*arguments: str) -> Any:
    """What `thinair ARGUMENTS` prints as JSON."""
    thinair = os.environ.get("THINAIR")
    if thinair is None:
        pytest.skip("THINAIR does not name the command")
    done = subprocess.run([thinair, *arguments], capture_output=True, check=False, cwd=ROOT)
    return json.loads(done.stdout)


def packets(name: str) -> list[tuple[int, bytes]]:
    """Times in nanoseconds and IP packets of a capture of this repository: pcap, little-endian, raw IP or Ethernet."""
    octets = (CAPTURES / name).read_bytes()
    unit = {b"\xd4\xc3\xb2\xa1": 1_000, b"\x4d\x3c\xb2\xa1": 1}[octets[:4]]
    skipped = {1: 14, 101: 0}[octets[20]]
    found, at = [], 24
    while at < len(octets):
        seconds, part, length, _ = struct.unpack_from("<4I", octets, at)
        found.append((seconds * 10**9 + part * unit, octets[at + 16 + skipped : at + 16 + length]))
        at += 16 + length
    return found


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Prints skips as `scripts/skips` reads them."""
    if report.skipped and isinstance(report.longrepr, tuple):
        print(f"\n---- {report.nodeid} stdout ----\nskipped: {report.longrepr[2].removeprefix('Skipped: ')}")
