"""Many items at once, but no more than so many, on one event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def work_through(items: Iterable[T], do: Callable[[T], Awaitable[None]], num_workers: int) -> None:
    """Does every item, `num_workers` of them at a time, begun in order; the first error stops all and is raised.

    However long `items` is, no more than `num_workers` of them are under way.
    """
    remaining = iter(items)

    async def work() -> None:
        for item in remaining:
            await do(item)

    workers = [asyncio.ensure_future(work()) for _ in range(num_workers)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
