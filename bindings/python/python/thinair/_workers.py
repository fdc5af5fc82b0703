"""Tasks on processes of this machine, or on a cluster of Dask."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from threading import Lock
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")

Call = tuple[Callable[..., Result], tuple[Any, ...]]
"""A function and its arguments."""


class WorkerError(RuntimeError):
    """A process that died during a task: killed, or for lack of memory."""


def run(client: Any, tries: int, tasks: Mapping[Key, Call[Result]], ended: Callable[[Key, Result], object]) -> dict[Key, Exception]:
    """Run tasks until each has ended once. Returns the last exception of each task that failed in every try.

    `client` is a `distributed.Client` or an `Executor`, which the caller closes; None: processes, one for each processor.
    `ended` is called in this thread with each result. An exception of it, and Ctrl-C, cancels all tasks.
    """
    if client is None:
        with Processes() as pool:
            return run(pool, tries, tasks, ended)
    todo, errors = dict(tasks), dict[Key, Exception]()
    for _ in range(tries):
        errors = _once(client, todo, ended)
        todo = {key: todo[key] for key in errors}
        if not todo:
            break
    return errors


def _once(client: Any, tasks: Mapping[Key, Call[Result]], ended: Callable[[Key, Result], object]) -> dict[Key, Exception]:
    """Try each task once. Returns the exceptions of those that failed."""
    errors: dict[Key, Exception] = {}
    # A task is not pure for Dask, which would give a second try the result of the first one.
    options = {} if isinstance(client, Executor) else {"pure": False}
    futures: "SimpleQueue[tuple[Key, Future[Result]]]" = SimpleQueue()
    submitted: "list[Future[Result]]" = []
    try:
        for key, (function, arguments) in tasks.items():
            future: "Future[Result]" = client.submit(function, *arguments, **options)
            submitted.append(future)
            future.add_done_callback(partial(_put, futures, key))
        for _ in range(len(submitted)):
            key, future = futures.get()
            try:
                result = future.result()
            except Exception as error:
                errors[key] = error
            else:
                ended(key, result)
    except BaseException:
        for future in submitted:
            future.cancel()
        if isinstance(client, Processes):
            client.kill()
        raise
    return errors


def _put(futures: "SimpleQueue[tuple[Key, Future[Result]]]", key: Key, future: "Future[Result]") -> None:
    futures.put((key, future))


class Processes(ThreadPoolExecutor):
    """Processes, each with a thread that waits for it. One that dies fails its task only, and is replaced.

    `ProcessPoolExecutor` fails all tasks then, or hangs if the process died while it sent a result.
    """

    def __init__(self) -> None:
        count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        super().__init__(count)
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._is_killed = False
        self._lock = Lock()
        # Here, and not in threads: a process forks more safely before there are threads.
        self._workers = [_Worker() for _ in range(count)]
        for worker in self._workers:
            self._idle.put(worker)

    def submit(self, function: Callable[..., Result], /, *arguments: Any, **options: Any) -> "Future[Result]":
        return super().submit(self._run, function, *arguments, **options)

    def kill(self) -> None:
        """End tasks and processes."""
        with self._lock:
            self._is_killed = True
            for worker in self._workers:
                worker.process.kill()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait, cancel_futures=cancel_futures)
        for worker in self._workers:
            worker.end()

    def _run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        worker = self._idle.get()
        try:
            return worker.run(function, arguments)
        except WorkerError:
            # One after the other: a process would inherit the open end of another one that starts.
            with self._lock:
                if not self._is_killed:
                    self._workers.remove(worker)
                    worker = _Worker()
                    self._workers.append(worker)
            raise
        finally:
            self._idle.put(worker)


class _Worker:
    """A process that does one task after the other."""

    def __init__(self) -> None:
        self.connection, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=_serve, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def run(self, function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
        try:
            self.connection.send((function, arguments))
            result, error = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            raise WorkerError(f"process {self.process.pid} died, exit code {self.process.exitcode}") from None
        if error is not None:
            raise error
        done: Result = result
        return done

    def end(self) -> None:
        with suppress(OSError):
            self.connection.send(None)
        self.process.join()
        self.connection.close()


def _serve(connection: Connection) -> None:
    """Do tasks until None comes, or the process of the other end is gone."""
    # Ctrl-C reaches all processes of a terminal; the one that waits for tasks ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    while parent and connection in wait([connection, parent.sentinel]):
        task = connection.recv()
        if task is None:
            return
        function, arguments = task
        result: Any = None
        failure: Exception | None = None
        try:
            result = function(*arguments)
        except Exception as error:
            failure = error
        connection.send((result, failure))
