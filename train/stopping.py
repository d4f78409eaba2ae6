"""An end before the last step: asked for by a signal, or for want of a judge, and taken by all ranks at one place."""

import asyncio
import functools
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NoReturn, TypeVar

from rewards.reward import JudgeUnavailable
from train.alert_rules import AlertStop
from train.tracking import finish_tracking

T = TypeVar("T")

RANK_0_S = 120  # rank 0 asks the judge first, which may take it this long
STATUS = 75  # of a process that a signal has ended: EX_TEMPFAIL, "try again later"


def wait_for_rank_0() -> None:
    """Give rank 0 the time to tell what all ranks have found; the launcher ends this one meanwhile, without a word."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    time.sleep(RANK_0_S)


class Preempted(Exception):  # noqa: N818  (what happened to the run, not a fault)
    """A signal has asked the run to end; what it has learnt is to be saved."""


Reason = Preempted | JudgeUnavailable | AlertStop


class Stopping:
    """Whether this run is to end early: by a signal to any of its ranks, for want of a judge, or by a rule of `alerts`.

    Nothing is interrupted that might be half done: whoever takes long asks in between. A wait for the judge is cut
    short, and a generation too where the process is alone. Of several ranks each finishes its generation, for others
    may wait for it in a collective already, and all end in `agree`.
    """

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self._waits: set[Callable[[], Any]] = set()
        self._training = False

    def listen(self) -> None:
        """From here on SIGTERM ends the process at once as long as nothing is learnt, and after that by `agree`."""
        signal.signal(signal.SIGTERM, self._on_signal)

    def look(self, num_ranks: int) -> None:
        """Ends a generation under way, where no other rank could be left waiting.

        Raises:
            Preempted, JudgeUnavailable, AlertStop: the reason.
        """
        if self.reason is not None and num_ranks == 1:
            raise self.reason

    def begin(self) -> None:
        """There is something to save from now on."""
        self._training = True

    def ask(self, reason: Reason) -> None:
        """Have the run end for this reason; the first one counts."""
        self.reason = self.reason or reason
        for cut_short in tuple(self._waits):
            cut_short()

    def agree(self, num_ranks: int) -> None:
        """Ends here on every rank, if any of them is to end; all must call it.

        Raises:
            Preempted, JudgeUnavailable, AlertStop: the reason of the first rank that has one.
        """
        reasons = [self.reason]
        if num_ranks > 1:
            from accelerate.utils import gather_object

            reasons = gather_object(reasons)
        for reason in reasons:
            if reason is not None:
                raise reason

    async def unless_stopped(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What the work comes to; None, and the work is cancelled, as soon as the run is to end."""
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
        cut_short = functools.partial(loop.call_soon_threadsafe, task.cancel)
        self._waits.add(cut_short)
        if self.reason is not None:
            task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            if self.reason is None:
                raise
            return None
        finally:
            self._waits.discard(cut_short)

    def guard(
        self, rubric: Callable[..., Coroutine[Any, Any, list[T | None]]]
    ) -> Callable[..., Awaitable[list[T | None]]]:
        """The rubric; where the run is to end, no completion is scored, and nobody comes to learn from it."""

        async def guarded(completions: Sequence[Any], **batch: Any) -> list[T | None]:
            try:
                rows = await self.unless_stopped(rubric(completions=completions, **batch))
            except JudgeUnavailable as error:
                self.ask(error)
                rows = None
            return [None] * len(completions) if rows is None else rows

        return guarded

    def _on_signal(self, number: int, _: Any) -> None:
        name = signal.Signals(number).name
        print(f"{name}: the run ends as soon as its last step is saved", file=sys.stderr, flush=True)
        self.ask(Preempted(name))
        if not self._training:
            raise self.reason or Preempted(name)


def leave(status: int) -> NoReturn:
    """End this process at once: threads that wait for a server would keep it until their requests time out."""
    finish_tracking(status)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
