"""Analysis by many workers: processes of this machine, or a cluster of Dask.

Files are parts of their own; a file of several partitions is analyzed in shards, too. Results are those of `thinair.analyze` in
every bit. Extra ``thinair[dask]`` brings Dask and fsspec; neither is needed for local files on a pool of processes.
"""

import glob
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from thinair import _native, _workers
from thinair._analyze import Survey
from thinair._analyze import files as files_of
from thinair._analyze import prices as prices_of
from thinair._flows import Flows
from thinair._frame import optional
from thinair._types import Buffer


class ShardError(RuntimeError):
    """Shards that failed in every try: `failed` has file, number of the shard (None: the survey of the file), and the last
    exception of each."""

    def __init__(self, failed: list[tuple[str, int | None, Exception]]) -> None:
        lines = [
            f"{url}, {'survey' if shard is None else f'shard {shard}'}: {type(error).__name__}: {error}"
            for url, shard, error in failed
        ]
        super().__init__("\n".join(lines))
        self.failed = failed


def analyze(
    urls: str | Iterable[str],
    *,
    schemes: Sequence[str] | None = None,
    partitions: int = 1,
    shards: int = 1,
    most_flows: int = 10_000,
    tariff: str | os.PathLike[str] | None = None,
    retries: int = 2,
    client: Any = None,
    partial: Callable[[str, int, Flows], object] | None = None,
) -> Flows:
    """Return what `thinair.analyze` returns for these captures, by many workers.

    Files of several shards are surveyed first, once for all their shards. So are all files if no schemes are given, since the
    default depends on all captures. An exception, also of `partial`, and Ctrl-C cancel what is not done.

    Args:
        urls: Paths, folders, patterns such as ``captures/*.pcap``, or what fsspec opens, such as ``s3://bucket/day/*.pcap.gz``; of a
            pattern, all files in the order of their names. Workers read the files: they must be within their reach.
        schemes: Schemes to compare, as of `thinair.analyze`.
        partitions: Parallel channels of each link, as of `thinair.analyze`.
        shards: Parts in which each file is analyzed, at most `partitions`; about as many as workers, for one big file.
        most_flows: Flows with all sums, as of `thinair.analyze`.
        tariff: File with the price list of the links, as of `thinair.analyze`. It is read here, not by workers.
        retries: Further tries of a part that failed.
        client: A `distributed.Client` or an `Executor`; the caller closes it. Default: a pool of processes.
        partial: Called with file, number of the shard, and its results, as they end.

    Raises:
        ShardError: Some parts failed in every try.
        FileNotFoundError: A pattern matches no file, or a folder has no capture.
        ValueError: No file is a capture; among others that are, one that is none has the reason in `Flows.inputs`.
    """
    prices = prices_of(tariff)
    files = [file for url in ([urls] if isinstance(urls, str) else urls) for file in _expanded(url)]
    several = len(files) > 1
    surveys: dict[int, Survey | None] = dict.fromkeys(range(len(files)))
    settings = (None if schemes is None else list(schemes), partitions, most_flows, several)
    if shards > 1 or schemes is None:
        todo = {file: (_survey, (files[file], *settings)) for file in surveys}
        errors = _workers.run(client, 1 + retries, todo, surveys.__setitem__)
        if errors:
            raise ShardError([(files[file], None, error) for file, error in sorted(errors.items())])
    if schemes is None:
        found = [survey._native for survey in surveys.values() if survey]
        names = _native.applicable(found)
        surveys = {file: Survey(survey._native.with_schemes(names)) for file, survey in surveys.items() if survey}
    done: dict[tuple[int, int], Flows] = {}

    def ended(part: tuple[int, int], flows: Flows) -> None:
        done[part] = flows
        if partial:
            partial(files[part[0]], part[1], flows)

    tasks = {
        (file, shard): (_shard, (files[file], (shard, shards), survey, prices, *settings))
        for file, survey in surveys.items()
        for shard in range(shards)
    }
    failed = _workers.run(client, 1 + retries, tasks, ended)
    if failed:
        raise ShardError([(files[file], shard, error) for (file, shard), error in sorted(failed.items())])
    wholes = [_native.merge([done[file, shard]._native for shard in range(shards)]) for file in range(len(files))]
    flows = Flows(_native.join(wholes))
    left_out = [one for one in flows.inputs if one["packets"] == 0 and one["ended_by"] and not one["link_types"]]
    if len(left_out) == len(files):
        raise ValueError(f"{left_out[0]['path']}: {left_out[0]['ended_by']}")
    return flows


def _survey(url: str, schemes: list[str] | None, partitions: int, most_flows: int, several: bool) -> Survey:
    """A task: the survey of one file."""
    return Survey(_native.survey([(url, _octets(url))], schemes, partitions, most_flows, None, several))


def _shard(
    url: str,
    shard: tuple[int, int],
    survey: Survey | None,
    prices: tuple[str, str] | None,
    schemes: list[str] | None,
    partitions: int,
    most_flows: int,
    several: bool,
) -> Flows:
    """A task: one shard of one file."""
    surveyed = survey._native if survey else None
    return Flows(_native.analyze([(url, _octets(url))], schemes, partitions, shard, most_flows, surveyed, None, several, prices))


def _octets(url: str) -> Buffer | None:
    """Octets of a file that is not local."""
    octets: Buffer | None = None if os.path.exists(url) or "://" not in url else optional("fsspec", "dask").open(url, "rb").open().read()
    return octets


def _expanded(url: str) -> list[str]:
    """Files of a pattern; a name without wildcards stands for itself."""
    if "://" not in url:
        return files_of(url)
    if not glob.has_magic(url):
        return [url]
    files = sorted(file.full_name for file in optional("fsspec", "dask").open_files(url))
    if not files:
        raise FileNotFoundError(f"no file matches {url}")
    return files
