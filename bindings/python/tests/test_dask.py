"""Many workers: their results are those of one run, and failures are tried again and named."""

import multiprocessing
import os
import shutil
import signal
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thinair
import thinair.dask

FILES = [
    "captures/coap_udp4_observe.pcap",
    "captures/rtp_udp4_h264.pcap",
    "captures/coap_udp6_observe.pcap",
    "captures/esp6_tunnel.pcap",
]
SCHEMES = ["rohc-v1", "coap/o", "schc", "6lowpan"]


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.sampled_from(FILES), min_size=1, max_size=4),
    st.sampled_from([SCHEMES, None]),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(0, 8),
)
def test_results_are_those_of_one_run(
    files: list[str], schemes: list[str] | None, partitions: int, shards: int, most_flows: int
) -> None:
    shards = min(shards, partitions)
    with ThreadPoolExecutor() as pool:
        flows = thinair.dask.analyze(
            files, schemes=schemes, partitions=partitions, shards=shards, most_flows=most_flows, client=pool
        )
    assert flows == thinair.analyze(files, schemes=schemes, partitions=partitions, most_flows=most_flows)


def test_a_price_list_is_that_of_one_run(tmp_path: Path) -> None:
    tariff = Path("docs/tariffs/skylo-monogoto.toml")
    with ThreadPoolExecutor() as pool:
        for partitions, shards in [(1, 1), (4, 2)]:
            flows = thinair.dask.analyze(FILES, schemes=SCHEMES, partitions=partitions, shards=shards, tariff=tariff, client=pool)
            assert flows == thinair.analyze(FILES, schemes=SCHEMES, partitions=partitions, tariff=tariff)
        assert flows.totals["tariff"]["currency"] == "octet"
        wrong = tmp_path / "wrong.toml"
        wrong.write_text(tariff.read_text().replace("step = 1", "step = 0"))
        with pytest.raises(thinair.dask.ShardError, match=r"wrong.toml, line 7: invalid step 0"):
            thinair.dask.analyze(FILES[0], schemes=SCHEMES, tariff=wrong, retries=0, client=pool)


def test_a_pool_of_processes_needs_no_dask() -> None:
    flows = thinair.dask.analyze("captures/coap_udp?_observe.pcap", schemes=SCHEMES, partitions=4, shards=2)
    expected = ["captures/coap_udp4_observe.pcap", "captures/coap_udp6_observe.pcap"]
    assert flows == thinair.analyze(expected, schemes=SCHEMES, partitions=4)


def test_a_cluster_of_dask() -> None:
    distributed = pytest.importorskip("distributed", reason="distributed (Dask) is missing")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        flows = thinair.dask.analyze([str(Path(file).resolve()) for file in FILES], schemes=SCHEMES, client=client)
    assert flows.totals == thinair.analyze(FILES, schemes=SCHEMES).totals


def test_files_that_fsspec_opens() -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is missing")
    for file in FILES[:2]:
        with fsspec.open(f"memory://thinair/{Path(file).name}", "wb") as target:
            target.write(Path(file).read_bytes())
    with ThreadPoolExecutor() as pool:
        flows = thinair.dask.analyze("memory://thinair/*.pcap", schemes=SCHEMES, client=pool)
    assert [input["path"] for input in flows.inputs] == [f"memory:///thinair/{Path(file).name}" for file in FILES[:2]]
    assert flows.totals == thinair.analyze(FILES[:2], schemes=SCHEMES).totals


class Unsteady(Executor):
    """Fails the first tries of each task."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.tries: dict[tuple[Any, ...], int] = {}

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> "Future[Any]":
        future: "Future[Any]" = Future()
        key = (function, str(arguments[:2]))
        self.tries[key] = self.tries.get(key, 0) + 1
        if self.tries[key] <= self.failures:
            future.set_exception(ConnectionError("the worker is gone"))
        else:
            future.set_result(function(*arguments))
        return future


def test_shards_that_fail_are_tried_again() -> None:
    client = Unsteady(2)
    flows = thinair.dask.analyze(FILES[:2], schemes=SCHEMES, partitions=2, shards=2, client=client)
    assert flows == thinair.analyze(FILES[:2], schemes=SCHEMES, partitions=2)
    assert set(client.tries.values()) == {3}


def test_shards_that_fail_for_good_are_named(tmp_path: Path) -> None:
    wrong = str(shutil.copy("README.md", tmp_path / "wrong.pcap"))
    for shards, number in [(1, 0), (2, None)]:
        name = "survey" if number is None else f"shard {number}"
        with pytest.raises(thinair.dask.ShardError, match=f"wrong.pcap, {name}: ValueError") as raised:
            with ThreadPoolExecutor() as pool:
                thinair.dask.analyze(wrong, schemes=SCHEMES, partitions=2, shards=shards, client=pool)
        assert [(url, shard) for url, shard, _ in raised.value.failed] == [(wrong, number)]
        with ThreadPoolExecutor() as pool:
            flows = thinair.dask.analyze([FILES[0], wrong], schemes=SCHEMES, partitions=2, shards=shards, client=pool)
        assert flows == thinair.analyze([FILES[0], wrong], schemes=SCHEMES, partitions=2)
    with pytest.raises(thinair.dask.ShardError, match="ConnectionError"):
        thinair.dask.analyze(FILES[0], schemes=SCHEMES, retries=1, client=Unsteady(2))
    with pytest.raises(FileNotFoundError, match="no file matches"):
        thinair.dask.analyze("captures/*.missing", schemes=SCHEMES, client=Unsteady(0))


LARGE = "captures/rtp_udp4_h264.pcap"


def test_partial_results_come_as_they_end() -> None:
    parts: dict[tuple[str, int], thinair.Flows] = {}
    with ThreadPoolExecutor() as pool:
        flows = thinair.dask.analyze(
            FILES[:2], partitions=4, shards=2, client=pool, partial=lambda url, shard, part: parts.update({(url, shard): part})
        )
    assert sorted(parts) == [(file, shard) for file in sorted(FILES[:2]) for shard in range(2)]
    assert sum(part.totals["packets"] for part in parts.values()) == flows.totals["packets"]


def test_a_process_may_be_killed() -> None:
    """Another one takes its place, and its shard are tried again."""
    killed: list[int] = []

    def kill(_url: str, _shard: int, _flows: thinair.Flows) -> None:
        if not killed:
            process = multiprocessing.active_children()[0]
            killed.append(process.pid or 0)
            process.kill()

    flows = thinair.dask.analyze([LARGE] * 8, partitions=16, shards=8, partial=kill)
    assert flows == thinair.analyze([LARGE] * 8, partitions=16)
    killed.clear()
    with pytest.raises(thinair.dask.ShardError, match="WorkerError: process .* died, exit code -9"):
        thinair.dask.analyze([LARGE] * 8, partitions=16, shards=8, partial=kill, retries=0)


def test_a_worker_of_dask_may_be_killed() -> None:
    distributed = pytest.importorskip("distributed", reason="distributed (Dask) is missing")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    killed: list[int] = []
    with cluster, distributed.Client(cluster) as client:
        workers = sorted(client.run(os.getpid).values())

        def kill(_url: str, _shard: int, _flows: thinair.Flows) -> None:
            if not killed:
                killed.append(workers[0])
                os.kill(workers[0], signal.SIGKILL)

        path = str(Path(LARGE).resolve())
        flows = thinair.dask.analyze([path] * 8, partitions=16, shards=8, client=client, partial=kill)
        assert killed[0] not in client.run(os.getpid).values()
    assert flows == thinair.analyze([path] * 8, partitions=16)


def test_an_interrupt_cancels_all_tasks() -> None:
    """It ends before an analysis of a few of the files, which begins with the interrupt, and leaves no process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ended = []

    def interrupt() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        thinair.analyze([LARGE] * 200)
        ended.append("the shorter one")

    thread = threading.Thread(target=interrupt)

    def ended_one(_url: str, _shard: int, _flows: thinair.Flows) -> None:
        if thread.ident is None:
            thread.start()

    with pytest.raises(KeyboardInterrupt):
        thinair.dask.analyze([LARGE] * 3_000, schemes=SCHEMES, partial=ended_one)
    ended.append("the interrupted one")
    thread.join()
    assert ended == ["the interrupted one", "the shorter one"]
    assert multiprocessing.active_children() == []



def test_an_exception_of_partial_cancels_all_tasks() -> None:
    class Enough(Exception):
        pass

    calls = []

    def stop(url: str, shard: int, flows: thinair.Flows) -> None:
        calls.append(shard)
        raise Enough

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(Enough):
            thinair.dask.analyze([LARGE] * 1_000, schemes=SCHEMES, client=pool, partial=stop)
        waiting = pool._work_queue.qsize()
    assert calls == [0] and waiting > 0
