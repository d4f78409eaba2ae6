"""Verdicts under way before the reward asks for them: a completion is judged while others are still being written."""

import asyncio
import math
import time
from collections.abc import Mapping

from data.cases import Case
from data.endpoint import EndpointStats
from rewards.judge import Judge
from rewards.score import Judgment


class EarlyJudge:
    """A judge that may be told of answers ahead of time; for whoever asks, it is that judge and merely sooner done.

    An answer that nobody told of is judged when it is asked for, so telling changes when verdicts come, never what
    they are. Identical (case, answer) pairs are judged once. All of it belongs to one event loop: from another
    thread, `begin` and `discard` go through `loop.call_soon_threadsafe`.
    """

    def __init__(self, judge: Judge, deadline_s: float) -> None:
        """Each answer has `deadline_s` from when it is begun, so the last one told of is the last one done."""
        self._judge = judge
        self._deadline_s = deadline_s
        self._begun: dict[tuple[Case, str], asyncio.Task[Mapping[str, Judgment | None]]] = {}

    @property
    def stats(self) -> EndpointStats:
        """The judge's own."""
        return self._judge.stats

    def begin(self, case: Case, answer: str) -> None:
        """Has the answer judged from now on, unless it is already."""
        if (case, answer) not in self._begun:
            self._begun[case, answer] = asyncio.get_running_loop().create_task(
                self._judge.judge_case(case, answer, until=time.monotonic() + self._deadline_s)
            )

    async def judge_case(self, case: Case, answer: str, *, until: float = math.inf) -> Mapping[str, Judgment | None]:
        """The verdict on each issue of the case, by issue id; None where the judge failed or the time ran out."""
        begun = self._begun.pop((case, answer), None)
        if begun is not None:
            return await begun
        return await self._judge.judge_case(case, answer, until=until)

    def discard(self) -> None:
        """Gives up what was begun and never asked for, as after a generation that failed."""
        for task in self._begun.values():
            task.cancel()
        self._begun.clear()
