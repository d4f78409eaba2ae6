"""Many items at once, but no more than so many."""

import asyncio

import pytest

from eval.workers import work_through


@pytest.mark.parametrize("num_workers", [1, 3, 50])
def test_every_item_is_done_once_and_no_more_than_so_many_at_a_time(num_workers):
    done, under_way, most = [], 0, 0

    async def do(item):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001 * (item % 3))
        under_way -= 1
        done.append(item)

    asyncio.run(work_through(iter(range(20)), do, num_workers))
    assert sorted(done) == list(range(20))
    assert most == min(num_workers, 20)


def test_the_first_error_stops_the_others():
    begun = []

    async def do(item):
        begun.append(item)
        await asyncio.sleep(0.001)
        if item == 3:
            raise KeyError(item)
        await asyncio.sleep(60)

    with pytest.raises(KeyError):
        asyncio.run(work_through(range(1000), do, 4))
    assert begun == [0, 1, 2, 3]


def test_nothing_to_do_is_done_at_once():
    asyncio.run(work_through([], None, 4))
