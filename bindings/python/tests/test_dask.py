"""Many workers: their results are those of one run, and failures are tried again and named."""

import shutil
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


@settings(max_examples=8, deadline=None)
@given(st.lists(st.sampled_from(FILES), min_size=1, max_size=4), st.integers(1, 5), st.integers(1, 5), st.integers(0, 8))
def test_results_are_those_of_one_run(files: list[str], partitions: int, shards: int, most_flows: int) -> None:
    shards = min(shards, partitions)
    with ThreadPoolExecutor() as pool:
        flows = thinair.dask.analyze(
            files, schemes=SCHEMES, partitions=partitions, shards=shards, most_flows=most_flows, client=pool
        )
    assert flows == thinair.analyze(files, schemes=SCHEMES, partitions=partitions, most_flows=most_flows)


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
        key = arguments[:2]
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
    shutil.copy("README.md", tmp_path / "wrong.pcap")
    files = [FILES[0], str(tmp_path / "wrong.pcap")]
    with ThreadPoolExecutor() as pool, pytest.raises(thinair.dask.ShardError, match="wrong.pcap, shard 1: ValueError") as raised:
        thinair.dask.analyze(files, schemes=SCHEMES, partitions=2, shards=2, client=pool)
    assert [(url, shard) for url, shard, _ in raised.value.failed] == [(files[1], 0), (files[1], 1)]
    with pytest.raises(FileNotFoundError, match="no file matches"):
        thinair.dask.analyze("captures/*.missing", schemes=SCHEMES, client=Unsteady(0))
