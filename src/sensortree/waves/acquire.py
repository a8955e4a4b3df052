"""`acquire`: all rows of a table through a policy, each purchase made once."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import islice
from threading import Event
from time import monotonic
from typing import Any

from sensortree.exceptions import MissingDependencyError, ParameterError, SensorError
from sensortree.policy.policy import Policy
from sensortree.progress import TextProgress
from sensortree.sensors.seen import Unseen, merge_unseen, warn_unseen
from sensortree.text import listed
from sensortree.waves.bill import Bill, bill_of
from sensortree.waves.block import Job, Unsettled, answer_block
from sensortree.waves.ledger import Ledger
from sensortree.waves.oracles import Lookup, check_count, check_oracles
from sensortree.waves.rows import is_dask_frame, known_sensors, parts_of, pieces_of

SECONDS = 5.0  # between two lines of progress
KILLS = 25  # how often workers may die over one part before it is given up


def acquire(
    policy: Policy,
    rows: Any,
    oracles: Mapping[str, Lookup | Callable[..., Any]],
    ledger: Ledger,
    *,
    key: str | None = None,
    known: Iterable[str] | None = None,
    prices: Mapping[str, str] | None = None,
    limit: float | Decimal | None = None,
    unsettled: Unsettled = "ask",
    client: Any = None,
    block_rows: int = 50_000,
    blocks_at_once: int = 2,
    seed: int = 0,
    verbose: bool = False,
) -> Bill:
    """Buy what a policy wants for all rows, each reading once, until all have stopped.

    Every row stands somewhere in the tree. In a wave, rows that need the same sensor are
    asked for together; what is bought is in the ledger before it is used. A run that was
    cut off goes on where it was: call again with the same ledger.

    Parameters
    ----------
    policy : Policy
        Such as ``model.policy_``.
    rows : data frame, Dask data frame, or iterable of keys
        A frame holds keys and the columns that are known for free. Keys are whole numbers
        or text, and no two rows have the same.
    oracles : mapping of sensor to Lookup or callable
        What is asked for a sensor; a callable is a `Lookup` with its defaults.
    ledger : SqliteLedger or PostgresLedger
    key : str, default=None
        Column of the keys; by default the index of a pandas or Dask frame.
    known : iterable of str, default=None
        Sensors that are known for free; by default all whose columns are in rows.
    prices : mapping of sensor to str, default=None
        Columns of rows that hold the price of a sensor for each row. A sensor that was
        declared with a price column needs none.
    limit : float or Decimal, default=None
        The most that the whole run may spend, with what the ledger has already.
    unsettled : {"ask", "hold"}, default="ask"
        What to do with orders that a killed process left without an answer. "ask" asks for
        them again with the same token, which is right if the oracle charges each token
        once. "hold" lets the row wait until a person has settled the order.
    client : distributed.Client, default=None
        Its workers do the work; by default threads of this process do.
    block_rows : int, default=50000
        Rows that are in memory together.
    blocks_at_once : int, default=2
        Blocks that threads work on at a time; with a client, as many as it has threads.
    seed : int, default=0
        Decides how the times between attempts vary.
    verbose : bool, default=False
        Whether to report progress on stderr: rows, money, time left.

    Returns
    -------
    bill : Bill
        What the ledger says, added up; `answers` reads the answers.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> from sensortree.dask import SqliteLedger, acquire, answers
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = SensorTreeClassifier(cost_weight=0.02, structure="cascade").fit(X, y)
    >>> bureau = {name: lambda ask, at=at: X[list(ask.keys), at][:, None]
    ...           for at, name in enumerate(["x0", "x1"])}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = SqliteLedger(f"{folder}/run.sqlite3")
    ...     bill = acquire(model.policy_, range(200), bureau, ledger)
    ...     found = next(answers(model.policy_, ledger))
    ...     ledger.close()
    >>> float(bill.spent) == float(model.acquisition_cost(X).sum())
    True
    >>> bool((found.label == model.predict(X)[found.key]).all())
    True
    """
    if not isinstance(policy, Policy):
        raise ParameterError(
            f"policy must be a Policy, got {type(policy).__name__}; give model.policy_."
        )
    if unsettled not in ("ask", "hold"):
        raise ParameterError(f"unsettled must be 'ask' or 'hold', got {unsettled!r}.")
    check_count("block_rows", block_rows)
    check_count("blocks_at_once", blocks_at_once)
    own_prices = dict(prices or {})
    job = Job(
        policy,
        check_oracles(oracles, policy.sensors),
        ledger,
        key,
        known_sensors(rows, policy, key, known, own_prices),
        own_prices,
        _check_limit(limit),
        unsettled,
        secrets.token_hex(8),
        block_rows,
        seed,
    )
    routes = (policy, *policy.around.values())
    may_buy = frozenset().union(*(p.sensors for route in routes for p in route.places))
    lacking = policy.sensors.in_order(may_buy - {*job.oracles, *job.known})
    if lacking:
        raise SensorError(
            f"no oracle gives {listed(lacking)}, which the policy may buy; name one in "
            f"oracles, or give the columns with rows if they are known for free."
        )
    counted = isinstance(rows, Sized) and not is_dask_frame(rows)
    watch = _Watch(ledger, len(rows) if counted else None, verbose)
    parts = parts_of(rows, block_rows)
    try:
        unseen = (
            _by_threads(job, parts, blocks_at_once, watch)
            if client is None
            else _by_client(job, parts, client, watch)
        )
    except BaseException as error:
        error.add_note(
            f"What was bought is in {ledger}; acquire with the same ledger goes on."
        )
        raise
    warn_unseen(merge_unseen(unseen), strict=False)
    watch.say()
    return bill_of(ledger)


def _check_limit(limit: float | Decimal | None) -> Decimal | None:
    """The limit as it is written."""
    if limit is None:
        return None
    try:
        amount = Decimal(str(limit))
    except InvalidOperation:
        amount = Decimal("nan")
    if isinstance(limit, bool) or not amount.is_finite() or amount < 0:
        raise ParameterError(f"limit must be money of at least 0, got {limit!r}.")
    return amount


# in threads -------------------------------------------------------------------------------


def _by_threads(
    job: Job, parts: Iterator[Any], at_once: int, watch: _Watch
) -> list[Unseen]:
    """Let threads of this process answer all parts, a few at a time."""
    ending, unseen = Event(), list[Unseen]()
    with ThreadPoolExecutor(at_once, "waves") as pool:
        running: set[Future[list[Unseen]]] = set()
        numbered = enumerate(parts)
        try:
            while True:
                for number, part in islice(numbered, at_once + 1 - len(running)):
                    running.add(pool.submit(answer_part, job, number, part, ending))
                if not running:
                    return unseen
                ended, running = wait(running, SECONDS, FIRST_COMPLETED)
                for future in ended:
                    unseen = list(merge_unseen([*unseen, *future.result()]))
                watch.say()
        except BaseException:
            ending.set()
            raise


def answer_part(
    job: Job, number: int, part: Any, ending: Event | None = None
) -> list[Unseen]:
    """Answer the rows of a part, in blocks that fit the memory."""
    if hasattr(part, "dask"):  # a partition that is not in memory yet
        part = part.compute(scheduler="synchronous")
    return [
        one
        for i, piece in enumerate(pieces_of(part, job.block_rows))
        for one in answer_block(job, f"{number}.{i}", piece, ending)
    ]


# on a cluster -----------------------------------------------------------------------------


def _by_client(
    job: Job, parts: Iterator[Any], client: Any, watch: _Watch
) -> list[Unseen]:
    """Let the workers of a client answer all parts, as many at a time as keep them busy."""
    try:
        import cloudpickle
        import distributed
        from dask.delayed import delayed
    except ImportError as error:
        raise MissingDependencyError(
            "distributed is needed for client= and is not installed; run "
            "pip install 'sensortree[dask]', or leave client out."
        ) from error
    wait_for: Any = distributed.wait
    packed, unseen = cloudpickle.dumps(job), list[Unseen]()
    running: dict[Any, tuple[int, Any, int]] = {}
    numbered = enumerate(parts)

    def send(number: int, part: Any, kills: int) -> None:
        if hasattr(part, "dask"):
            work = delayed(_answer_packed, pure=False)(packed, number, part)
            future = client.compute(work)
        else:
            future = client.submit(_answer_packed, packed, number, part, pure=False)
        running[future] = number, part, kills

    try:
        while True:
            room = 2 * max(sum(client.nthreads().values()), 1)
            for number, part in islice(numbered, max(room - len(running), 0)):
                send(number, part, 0)
            if not running:
                return unseen
            try:
                waited = wait_for(list(running), SECONDS, FIRST_COMPLETED)
                ended = set(waited.done)
            except TimeoutError:
                ended = set()
            for future in ended:
                number, part, kills = running.pop(future)
                try:
                    unseen = list(merge_unseen([*unseen, *future.result()]))
                except distributed.KilledWorker:
                    if kills == KILLS:
                        raise
                    send(number, part, kills + 1)
            watch.say("" if client.nthreads() else "; no worker is there")
    except BaseException:
        client.cancel(list(running))
        raise


def _answer_packed(packed: bytes, number: int, part: Any) -> list[Unseen]:
    """Answer a part on a worker."""
    return answer_part(_unpacked(packed), number, part)


@lru_cache(maxsize=4)
def _unpacked(packed: bytes) -> Job:
    """A job, unpacked once in each process."""
    import pickle

    job = pickle.loads(packed)
    assert isinstance(job, Job)
    return job


# progress ---------------------------------------------------------------------------------


class _Watch:
    """Reports progress by the ledger: rows of `n_rows`, money, time left."""

    def __init__(self, ledger: Ledger, n_rows: int | None, verbose: bool):
        self._ledger, self._n_rows = ledger, n_rows
        self._progress = TextProgress(verbose)
        self._before, self._spoke = ledger.totals().rows, monotonic()

    def say(self, more: str = "") -> None:
        """Report a line, unless one was reported a moment ago."""
        now = monotonic()
        if now - self._spoke < SECONDS and not self._progress.verbose:
            return
        self._spoke = now
        sums = self._ledger.totals()
        self._progress.say(
            f"{sums.rows:,} rows stopped{self._left(sums.rows)}, {sums.spent:,} spent"
            f"{more}",
            logging.INFO,
        )

    def _left(self, rows: int) -> str:
        """How many rows there are, and how long the rest will take at this pace."""
        if not self._n_rows:
            return ""
        seconds = monotonic() - self._progress.started
        done, left = rows - self._before, max(self._n_rows - rows, 0)
        words = f" of {self._n_rows:,}"
        if done and left:
            words += f" (about {seconds / done * left:.0f} s left)"
        return words
