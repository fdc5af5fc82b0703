"""Prints the table of docs/scale.md: what more processors bring, and what Python costs beside the command.

Usage: scripts/python scale TARGET, which builds all of it as it is released. Ratios are medians of rounds in which both sides ran
one after the other. THINAIR is the command.
"""

import argparse
import logging
import multiprocessing
import os
import platform
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import distributed

import thinair
import thinair.dask
import thinair_lab
import thinair_lab.dask

PARTITIONS = 64
PAIRS = 16
SCHEMES = ["rohc-v1/u", "rohc-v1/o", "schc"]
QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
PLAN = {"link": {"preset": "gprs"}, "requests": {"count": 1_000}, "runs": {"count": 1}}


def capture(path: Path, packets: int) -> None:
    """Writes UDP datagrams of 48 octets over IPv4 between pairs of hosts, one after the other, 1 ms apart."""
    header = struct.Struct("<4I")
    with path.open("wb") as file:
        file.write(struct.pack("<I2H4I", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101))
        for number in range(packets):
            pair = number % PAIRS
            packet = bytearray.fromhex("45000030 0000 4000 4011 0000 0a000001 0a010001 1389138a 001c0000") + bytes(20)
            packet[4:6] = (number // PAIRS & 0xFFFF).to_bytes(2, "big")
            packet[15] = packet[19] = pair
            words = sum(struct.unpack_from(">10H", packet))
            words = (words & 0xFFFF) + (words >> 16)
            packet[10:12] = ((words & 0xFFFF) + (words >> 16) ^ 0xFFFF).to_bytes(2, "big")
            file.write(header.pack(number // 1_000, number % 1_000 * 1_000, len(packet), len(packet)))
            file.write(packet)


def cluster(workers: int) -> distributed.LocalCluster:
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
    )


def timed(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    begin = clock()
    work()
    return clock() - begin


def shard(path: str, number: int, begin: Barrier) -> None:
    begin.wait()
    thinair.analyze(path, schemes=SCHEMES, partitions=PARTITIONS, shard=(number, 2))


def processes(path: str) -> float:
    """Seconds in which two processes that know nothing of each other analyze a shard each."""
    begin = multiprocessing.Barrier(3)
    both = [multiprocessing.Process(target=shard, args=(path, number, begin)) for number in range(2)]
    for process in both:
        process.start()
    begin.wait()

    def end() -> None:
        for process in both:
            process.join()

    return timed(end)


def threads(path: str) -> None:
    survey = thinair.survey(path, schemes=SCHEMES, partitions=PARTITIONS)
    with ThreadPoolExecutor(2) as pool:
        thinair.merge(pool.map(lambda number: thinair.analyze(path, survey=survey, shard=(number, 2)), range(2)))


def command(*arguments: str) -> Callable[[], object]:
    return lambda: subprocess.run([os.environ["THINAIR"], *arguments], check=True, **QUIET)


def memory(path: str) -> float:
    """Largest resident set of a process that analyzes a capture, in MiB."""
    program = (
        f"import thinair; thinair.analyze({path!r}, schemes={SCHEMES}); "
        "print(*(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout
    return int(shown.split()[1]) / 1024


def row(what: str, figure: str, bar: str, is_met: bool) -> None:
    print(f"| {what} | {figure} | {bar} | {'yes' if is_met else 'no'} |", flush=True)


def ratio(what: str, pairs: list[tuple[float, float]], bar: float, unit: str = " s") -> None:
    """A row with the ratio of both sides of each round."""
    found = statistics.median(other / own for own, other in pairs)
    own, other = (statistics.median(times) for times in zip(*pairs, strict=True))
    row(what, f"{found:.2f} ({other:.2f}{unit}, {own:.2f}{unit})", f"at least {bar}", found >= bar)


def analysis(path: str, rounds: int) -> None:
    options = ["--partitions", str(PARTITIONS), "--schemes", "rohc-v1,schc", "--json"]
    dask, two_threads, jobs = [], [], []
    with cluster(2) as two, distributed.Client(two) as client:
        for _ in range(rounds):
            alone = timed(lambda: thinair.analyze(path, schemes=SCHEMES, partitions=PARTITIONS))
            both = processes(path)
            split = {"schemes": SCHEMES, "partitions": PARTITIONS, "shards": 2, "client": client}
            dask.append((timed(lambda: thinair.dask.analyze(path, **split)), both))
            two_threads.append((timed(lambda: threads(path)), both))
            one = timed(command("analyze", path, *options, "--jobs", "1"))
            jobs.append((timed(command("analyze", path, *options, "--jobs", "2")) / one, both / alone))
    ratio("two workers of Dask, beside two processes with a shard each", dask, 0.95)
    ratio("two threads of Python, beside them", two_threads, 0.95)
    ratio("`--jobs 2` of the command in times of `--jobs 1`, beside them in times of one", jobs, 0.95, unit="")


def skipped(path: str, packets: int, rounds: int) -> None:
    survey = thinair.survey(path, schemes=SCHEMES[:1], partitions=1_024)
    shards = ((number, 1_024) for number in range(1_024))
    empty = next(part for part in shards if thinair.analyze(path, survey=survey, shard=part).totals["packets"] == 0)
    times = (timed(lambda: thinair.analyze(path, survey=survey, shard=empty), time.process_time) for _ in range(rounds))
    found = statistics.median(times) / packets * 1e6
    row("a packet that a shard skips", f"{found:.3f} us of a processor", "at most 0.1 us", found <= 0.1)


def compress(packets: list[bytes]) -> None:
    compressor = thinair.Compressor("rohc-v1/u")
    for number, packet in enumerate(packets):
        compressor.compress(packet, number * 1_000_000)


def beside_the_command(path: str, folder: Path, packets: int, rounds: int) -> None:
    analyze: list[tuple[float, float]] = []
    rohc: list[tuple[float, float]] = []
    octets = Path(path).read_bytes()
    size = 16 + struct.unpack_from("<I", octets, 32)[0]
    records = [octets[at + 16 : at + size] for at in range(24, len(octets), size)]
    sent = str(folder / "rohc.pcap")
    for _ in range(rounds):
        own = timed(lambda: thinair.analyze(path, schemes=["rohc-v1/u"]))
        analyze.append((own, timed(command("analyze", path, "--schemes", "rohc-v1", "--mode", "u", "--json"))))
        rohc.append((timed(lambda: compress(records)), timed(command("rohc", "compress", "--profiles", "v1", path, sent))))
    for name, pairs in [("`thinair.analyze`, `rohc-v1/u`", analyze), ("`Compressor.compress`, packets in memory", rohc)]:
        rate = packets / statistics.median(own for own, _ in pairs)
        ratio(f"{name}: {rate / 1e6:.2f} million packets/s, beside the command", pairs, 0.95)


def sweeps(rounds: int) -> None:
    times: list[tuple[float, float]] = []
    with cluster(1) as one, cluster(2) as two, distributed.Client(one) as of_one, distributed.Client(two) as of_two:
        for _ in range(rounds):
            alone = timed(lambda: thinair_lab.dask.sweep(PLAN, range(1_000), client=of_one))
            times.append((timed(lambda: thinair_lab.dask.sweep(PLAN, range(1_000), client=of_two)), alone))
    ratio("1,000 runs of a lab by two workers of Dask, beside one", times, 1.7)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--packets", type=int, default=1_000_000, help="packets of the capture")
    arguments.add_argument("--rounds", type=int, default=5, help="rounds of each measurement")
    given = arguments.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = str(folder / "one.pcap")
        capture(folder / "one.pcap", given.packets)
        print("| what | measured | bar | met |\n|---|---|---|---|")
        analysis(path, given.rounds)
        skipped(path, given.packets, given.rounds)
        beside_the_command(path, folder, given.packets, given.rounds)
        small, large = folder / "quarter.pcap", folder / "one.pcap"
        capture(small, given.packets // 4)
        core = timed(lambda: thinair.analyze(path, schemes=SCHEMES), time.process_time) / given.packets * 1e6
        few, many = memory(str(small)), memory(str(large))
        row("memory of four times the packets", f"{many / few:.2f} ({few:.0f}, {many:.0f} MiB)", "at most 1.05", many / few <= 1.05)
        sweeps(given.rounds)
    print(
        f"\n{given.packets:,} packets, {given.rounds} rounds; {os.cpu_count()} processors, Python {platform.python_version()}; "
        f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after. A ratio has its median times behind it, the other side first.\n\n"
        f"{', '.join(SCHEMES)} in one run take {core:.2f} us of a processor for a packet."
    )


if __name__ == "__main__":
    main()
