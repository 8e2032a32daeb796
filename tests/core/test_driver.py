"""One body, driven sync and async: answers are sent, errors are raised at the yield, the end is returned."""

import threading

import pytest

from memcycle.core.driver import adrive, drive


def body(seen):
    seen.append(threading.get_ident())
    one = yield 1
    try:
        yield 2
    except KeyError:
        two = "caught"
    return one, two


def answer(request):
    if request == 2:
        raise KeyError(request)
    return f"got {request}"


async def answered(request):
    return answer(request)


def test_a_body_is_sent_answers_and_errors():
    assert drive(body([]), answer) == ("got 1", "caught")


@pytest.mark.parametrize("in_thread", [False, True])
async def test_awaited_it_does_the_same(in_thread):
    seen: list[int] = []
    assert await adrive(body(seen), answered, in_thread=in_thread) == ("got 1", "caught")
    assert (seen == [threading.get_ident()]) is not in_thread


async def test_what_a_body_does_not_catch_is_raised():
    def careless():
        yield 2

    with pytest.raises(KeyError):
        drive(careless(), answer)
    with pytest.raises(KeyError):
        await adrive(careless(), answered, in_thread=True)
