"""Analysis by many workers: processes of this machine, or a cluster of Dask.

Files are parts of their own; a file of several partitions is analyzed in shards, too. Results are those of `thinair.analyze` in
every bit. Extra ``thinair[dask]`` brings Dask and fsspec; neither is needed for local files on a pool of processes.
"""

import glob
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any

from thinair import _native
from thinair._flows import Flows


class ShardError(RuntimeError):
    """Shards that failed in every try: `failed` has file, number of the shard, and the last exception of each."""

    def __init__(self, failed: list[tuple[str, int, BaseException]]) -> None:
        lines = [f"{url}, shard {shard}: {type(error).__name__}: {error}" for url, shard, error in failed]
        super().__init__("\n".join(lines))
        self.failed = failed


def analyze(
    urls: str | Iterable[str],
    *,
    schemes: Sequence[str],
    partitions: int = 1,
    shards: int = 1,
    most_flows: int = 10_000,
    retries: int = 2,
    client: Any = None,
) -> Flows:
    """Return what `thinair.analyze` returns for these captures, by many workers.

    Args:
        urls: Paths, patterns such as ``captures/*.pcap``, or what fsspec opens, such as ``s3://bucket/day/*.pcap.gz``; of a
            pattern, all files in the order of their names. Workers read the files: they must be within their reach.
        schemes: Schemes to compare, as of `thinair.analyze`. There is no default, since it depends on all captures.
        partitions: Parallel channels of each link, as of `thinair.analyze`.
        shards: Parts in which each file is analyzed, at most `partitions`; about as many as workers, for one big file.
        most_flows: Flows with all sums, as of `thinair.analyze`.
        retries: Further tries of a part that failed.
        client: A `distributed.Client` or an `Executor`; the caller closes it. Default: a pool of processes.

    Raises:
        ShardError: Some parts failed in every try.
        FileNotFoundError: A pattern matches no file.
    """
    if client is None:
        with ProcessPoolExecutor() as pool:
            return analyze(
                urls, schemes=schemes, partitions=partitions, shards=shards, most_flows=most_flows, retries=retries, client=pool
            )
    files = [file for url in ([urls] if isinstance(urls, str) else urls) for file in _expanded(url)]
    settings = (list(schemes), partitions, most_flows)
    todo = [(file, shard) for file in range(len(files)) for shard in range(shards)]
    done: dict[tuple[int, int], Flows] = {}
    errors: dict[tuple[int, int], BaseException] = {}
    for _ in range(1 + retries):
        tasks = {part: _submit(client, _shard, files[part[0]], (part[1], shards), *settings) for part in todo}
        for part, task in tasks.items():
            try:
                done[part] = task.result()
            except Exception as error:
                errors[part] = error
        todo = [part for part in todo if part not in done]
    if todo:
        raise ShardError([(files[file], shard, errors[file, shard]) for file, shard in todo])
    wholes = [_native.merge([done[file, shard]._native for shard in range(shards)]) for file in range(len(files))]
    return Flows(_native.join(wholes))


def _submit(client: Any, function: Callable[..., Flows], *arguments: Any) -> "Future[Flows]":
    """Submit a task. It is not pure for Dask, which would give a second try the result of the first one."""
    options = {} if isinstance(client, Executor) else {"pure": False}
    future: "Future[Flows]" = client.submit(function, *arguments, **options)
    return future


def _shard(
    url: str, shard: tuple[int, int], schemes: list[str], partitions: int, most_flows: int
) -> Flows:
    """A task: one shard of one file."""
    octets = None if os.path.exists(url) else _fsspec().open(url, "rb").open().read()
    return Flows(_native.analyze([(url, octets)], schemes, partitions, shard, most_flows, None))


def _expanded(url: str) -> list[str]:
    """Files of a pattern; a name without wildcards stands for itself."""
    if not glob.has_magic(url) or os.path.exists(url):
        return [url]
    if "://" in url:
        files = sorted(file.full_name for file in _fsspec().open_files(url))
    else:
        files = sorted(glob.glob(url))
    if not files:
        raise FileNotFoundError(f"no file matches {url}")
    return files


def _fsspec() -> Any:
    import fsspec

    return fsspec
