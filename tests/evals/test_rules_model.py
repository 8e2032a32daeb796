"""One model asked by several threads and tasks at the same time."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from langchain_core.callbacks import BaseCallbackHandler

from memcycle.agents.grader import GradeItem, GraderInput
from memcycle.evals.rules_model import RulesModel, roles_on

ASKED = 4


class Together(BaseCallbackHandler):
    """Holds every call until all have been put to the model, and none is answered yet."""

    raise_error = True

    def __init__(self) -> None:
        self.barrier = Barrier(ASKED)

    def on_chat_model_start(self, *_, **__) -> None:
        self.barrier.wait(timeout=30)


def asked(n):
    return GraderInput(items=[GradeItem(n=n, question="Who?", gold="Ann", answer="Ann")])


def numbers(outputs):
    return [[grade.n for grade in output.grades] for output in outputs]


def test_threads_that_ask_at_once_each_get_their_own_reply():
    model = RulesModel()
    grader, config = roles_on(model).grader, {"callbacks": [Together()]}
    with ThreadPoolExecutor(ASKED) as pool:
        outputs = list(pool.map(lambda n: grader.invoke(asked(n), config), range(1, ASKED + 1)))
    assert numbers(outputs) == [[1], [2], [3], [4]]
    assert model.seconds > 0


async def test_tasks_that_ask_at_once_each_get_their_own_reply():
    grader = roles_on(RulesModel()).grader
    outputs = await asyncio.gather(*(grader.ainvoke(asked(n)) for n in range(1, ASKED + 1)))
    assert numbers(outputs) == [[1], [2], [3], [4]]


def test_what_is_asked_is_counted_in_tokens():
    class Count(BaseCallbackHandler):
        usage = None

        def on_llm_end(self, response, **_):
            self.usage = response.generations[0][0].message.usage_metadata

    count = Count()
    roles_on(RulesModel()).grader.invoke(asked(1), {"callbacks": [count]})
    assert count.usage["input_tokens"] > count.usage["output_tokens"] > 0
