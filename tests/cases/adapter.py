"""The product as the cases speak of it: their verbs, bound to the public API, and their two fakes.

Facts and edits are scripted into the Constructor, verdicts into the Judge and the fact judge; a role that a
case does not script runs by rules. A script holds the raw text of a reply, so that its fault is kept byte for
byte; only `"#some text"` in it stands for the number under which the prompt shows that memory.
"""

import itertools
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from memcycle import Memory, Settings
from memcycle.core.entry import Entry
from memcycle.core.world import World
from memcycle.results import Added, Evidence
from memcycle.stores.search.request import Filters, Query, SearchRequest
from tests.fakes import FakeEmbeddings, bag_of_words

Reply = str | Callable[[str], str]
_SHOWN = re.compile(
    r'(?:<(?:memory|near|other) n="(\d+)" kind="fact">|^\[(\d+) fact\] )'
    r"(?:(?:[^<:\n]|:(?! ))*: )?(.*?)(?:</|$)",
    re.MULTILINE,
)
_NAMED = re.compile(r'"#([^"]+)"')


class FM(BaseChatModel):
    """List-backed fake chat model: gives its script in order, keeps every prompt, fails when asked more.

    It offers neither structured output nor tools, so that the raw text of a reply is what is read.
    """

    script: list[Reply]
    _prompts: list[str] = PrivateAttr(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def prompts(self) -> list[str]:
        """The whole text of each prompt, instructions included."""
        return self._prompts

    @property
    def said(self) -> list[str]:
        """The marked turns of each prompt that are to be read: what it shows as the conversation."""
        return [prompt.rsplit("<turns>", 1)[-1] for prompt in self._prompts]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        prompt = "\n\n".join(message.text for message in messages)
        with self._lock:
            self._prompts.append(prompt)
            assert self.script, f"asked more often than scripted: {prompt[-500:]}"
            reply = self.script.pop(0)
        text = reply(prompt) if callable(reply) else numbered(reply, prompt)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def numbered(reply: str, prompt: str) -> str:
    """The reply with `"#some text"` replaced by the number that memory has in the prompt."""
    shown = {text: marked or listed for marked, listed, text in _SHOWN.findall(prompt)}
    return _NAMED.sub(lambda match: shown[match[1]], reply)


def facts(*items: str | Mapping[str, Any]) -> str:
    """A sound reply of the Constructor; an item without a turn rests on turn 1, as does bare text."""
    drafts = [{"text": item} if isinstance(item, str) else item for item in items]
    return json.dumps({"facts": [{"turn": 1, **draft} for draft in drafts]}, ensure_ascii=False)


class FE(FakeEmbeddings):
    """Fake embedder: the vectors given, else a hashed bag of words; `fails` raises on texts it holds."""

    def __init__(self, given: Mapping[str, Sequence[float]] | None = None) -> None:
        self.given = {text: list(vector) for text, vector in (given or {}).items()}
        super().__init__(dim=len(next(iter(self.given.values()), [0.0] * 32)))
        self.fails: dict[str, list[Exception]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(list(texts))
        for text, errors in self.fails.items():
            if errors and text in texts:
                raise errors.pop(0)
        return [self.given.get(text) or bag_of_words(text, self.dim) for text in texts]


class Product:
    """A memory in a home of its own, with an injected clock and recorded sleeps.

    Attributes:
        now: What the clock says; a case sets it.
        slept: Seconds of each wait.
        models: The scripted models by role.
    """

    def __init__(
        self,
        home: Path,
        *,
        embeddings: FE | None = None,
        prompts: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
        **scripts: Sequence[Reply],
    ) -> None:
        ids = itertools.count()
        self.home = home
        self.now = datetime(2024, 5, 1, 9, tzinfo=UTC)
        self.slept: list[float] = []
        self.embeddings = embeddings or FE()
        self.world = World(lambda: self.now, lambda: f"id-{next(ids):06d}", self.slept.append)
        self.settings = Settings(home=home, **{"shards": 2, "profile": "paper", **(settings or {})})
        self.models = {role: FM(script=list(script)) for role, script in scripts.items()}
        self.memory = self._open(self.models, prompts)

    def _open(self, models: Mapping[str, FM], prompts: Mapping[str, str] | None = None) -> Memory:
        return Memory.open(
            settings=self.settings,
            overrides=dict(models),
            prompts=prompts,
            embeddings=self.embeddings,
            world=self.world,
        )

    @property
    def constructor(self) -> FM:
        """The Constructor's model (C)."""
        return self.models["constructor"]

    def knows(self, *texts: str, user: str = "u1", session: str = "before") -> list[Entry]:
        """Makes the store hold these facts, said and committed in an earlier session."""
        before = {fact.id for fact in self.stored(user)}
        model = FM(script=[facts(text) for text in texts])
        with self._open({"constructor": model}) as memory:
            for text in texts:
                memory.add(text, user=user, session=session)
            memory.end_session(session, user=user)
        made = {fact.text: fact for fact in self.facts(user) if fact.id not in before}
        return [made[text] for text in texts]

    def add(self, messages: Any, user: str | None = "u1", session: str = "main", **given: Any) -> Added:
        """Remembers messages."""
        return self.memory.add(messages, user=user, session=session, **given)

    def recall(self, query: str, user: str | None = "u1", k: int = 5, **given: Any) -> list[Evidence]:
        """The evidence for a query, best first."""
        return self.memory.recall(query, user=user, k=k, **given).evidence

    def search(
        self, query: str, user: str = "u1", k: int = 5, *, min_score: float = 0.0, **filters: Any
    ) -> list[tuple[str, float]]:
        """Text and score of active facts, through the search below recall, which has filters."""
        request = SearchRequest(
            scope=self.memory.scope(user),
            queries=(Query(text=query),),
            granularities=("fact",),
            k=k,
            filters=Filters(**filters),
            theta=self.settings.theta,
        )
        return [
            (hit.entry.text, hit.score)
            for hit in self.memory.bank.search(request)[0]
            if hit.score >= min_score
        ]

    def stored(self, user: str = "u1", **given: Any) -> list[Entry]:
        """Everything of a user, raw turns included."""
        return self.memory.memories(user=user, **given)

    def facts(self, user: str = "u1", **given: Any) -> list[Entry]:
        """What the cases call memories."""
        return self.stored(user, granularity="fact", **given)

    def made(self, user: str = "u1") -> list[Entry]:
        """Facts and episodes: an "empty store" of the cases has none, while raw turns are always kept."""
        return [entry for entry in self.stored(user) if entry.granularity != "raw"]

    def texts(self, user: str = "u1", **given: Any) -> list[str]:
        """The texts of the facts, sorted."""
        return sorted(entry.text for entry in self.facts(user, **given))

    def files(self) -> bytes:
        """All bytes of all files of the home."""
        return b"".join(path.read_bytes() for path in sorted(self.home.rglob("*")) if path.is_file())

    def reopen(self) -> None:
        """Closes the store and opens it again."""
        self.memory.close()
        self.memory = self._open(self.models)

    def close(self) -> None:
        """Frees the store."""
        self.memory.close()
