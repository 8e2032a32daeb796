"""The part of `Memory` that speaks with it: what is said goes in, questions are answered."""

import functools
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memcycle.core.errors import BadInput
from memcycle.core.redaction import Redactor
from memcycle.core.turn import Turn
from memcycle.graph.context import MAIN_SESSION
from memcycle.results import Added, Answer
from memcycle.resuming import Resuming
from memcycle.runs import Run, awaited, runs


class Talking(Resuming):
    """Remembers what is said, and answers from it."""

    @runs
    def add(
        self,
        messages: Any,
        *,
        user: str | None = None,
        workspace: str | None = None,
        session: str | None = None,
        now: datetime | str | None = None,
        thread_id: str | None = None,
        bulk: bool = False,
    ) -> Run[Added]:
        """Remembers a chunk of a conversation. What is already stored is not stored again.

        Args:
            messages: One message or several: LangChain messages, OpenAI-style dicts, `(role, text)`
                tuples, text; or `Turn`s as the file readers give them, which keep their places.
            user: Whose memory. workspace: a second wall inside it.
            session: By default that of the turns, else `main`.
            now: Time of messages that carry none, by default the clock.
            thread_id: Under checkpoints, the thread of this run, for `resume`; by default a new one.
            bulk: Nobody waits: what is read is guarded as `theta.extraction` says.

        Raises:
            BadInput: a message that cannot be read (its number and field), or no user.
        """
        turns = [message for message in messages if isinstance(message, Turn)] if _is_list(messages) else []
        if turns and len(turns) != len(messages):
            raise BadInput("turns and messages cannot be added in one call")
        if len({turn.session for turn in turns}) > 1:
            raise BadInput(
                "turns of several sessions cannot be added in one call: add one session after another"
            )
        named = session or (turns[0].session if turns else MAIN_SESSION)
        value = (
            {"turns": [turn.model_dump(mode="json") for turn in turns]} if turns else {"messages": messages}
        )
        context = self._context(user, workspace, named, now, bulk=bulk)
        return Run("remember", value, context, self._speaking(context, Added.of), thread_id)

    aadd = awaited(add)

    @runs
    def ask(
        self,
        question: str,
        *,
        user: str | None = None,
        workspace: str | None = None,
        session: str | None = None,
        now: datetime | str | None = None,
        k: int | None = None,
        token_budget: int | None = None,
        evidence_only: bool = False,
        thread_id: str | None = None,
    ) -> Run[Answer]:
        """Answers a question from memory, or says that memory does not hold the answer.

        Args:
            question: In words.
            user: Whose memory. workspace: a second wall inside it.
            session: The session going on, whose staged memories are searched too.
            now: The time that words such as "last week" in the question count from, by default the clock.
            k: Entries of evidence at most. token_budget: their tokens at most.
            evidence_only: Find the evidence and stop there; `answer` is None.
            thread_id: As in `add`.

        Raises:
            BadInput: blank question, or no user. Provider errors are raised as themselves.
        """
        if not isinstance(question, str) or not question.strip():
            raise BadInput("the question is blank")
        question = Redactor(self.settings.redact).text(question)
        context = self._context(
            user,
            workspace,
            session or MAIN_SESSION,
            now,
            k=k,
            token_budget=token_budget,
            evidence_only=evidence_only,
        )
        read = functools.partial(Answer.of, question)
        return Run("recall", {"question": question}, context, read, thread_id)

    aask = awaited(ask)

    def recall(self, question: str, **options: Any) -> Answer:
        """The evidence for a question, without an answer. Options as those of `ask`."""
        return self.ask(question, evidence_only=True, **options)

    async def arecall(self, question: str, **options: Any) -> Answer:
        """Awaitable `recall`."""
        return await self.aask(question, evidence_only=True, **options)


def _is_list(messages: Any) -> bool:
    return isinstance(messages, Sequence) and not isinstance(messages, str | bytes)
