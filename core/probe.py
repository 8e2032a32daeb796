"""What a session's examination leaves behind: probes with their answers and repairs, and the report."""

import json
import uuid
from typing import Any, Literal, NotRequired

from pydantic import model_validator
from typing_extensions import TypedDict

from memcycle.core.scope import Data, Scope


class RoleUsage(TypedDict):
    """Calls and tokens of one role. `cached`: how many of those read its provider had in its cache; left out
    where it had none or does not tell."""

    calls: int
    input_tokens: int
    output_tokens: int
    cached: NotRequired[int]


Usage = dict[str, RoleUsage]


def add_usage(left: Usage | None, right: Usage | None) -> Usage:
    """Sum of two counts by role. Neither input is changed."""
    total: Usage = {role: RoleUsage(**count) for role, count in (left or {}).items()}
    for role, count in (right or {}).items():
        seen = total.setdefault(role, RoleUsage(calls=0, input_tokens=0, output_tokens=0))
        seen["calls"] += count["calls"]
        seen["input_tokens"] += count["input_tokens"]
        seen["output_tokens"] += count["output_tokens"]
        if cached := seen.get("cached", 0) + count.get("cached", 0):
            seen["cached"] = cached
    return total


def count_usage(left: Usage | None, right: Usage | None) -> Usage:
    """The reducer of every graph's `usage` key: nodes return what they used, None starts anew."""
    return {} if right is None else add_usage(left, right)


ProbeKind = Literal["single-hop", "cross-session", "temporal"]
ProbeVerdict = Literal["passed", "failed", "ungraded"]
Decision = Literal["INSERT", "MERGE", "SKIP", "NOOP", "REFUSED"]

REPAIRER = "repairer"
"""Who wrote what repairs write, in the log."""

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:memcycle:probe")


class Attempt(Data):
    """One attempt to answer a probe from memory.

    Attributes:
        answer: In words. evidence: ids of the entries it was looked for in, best first.
        cited: Ids of those the answer rests on.
        abstained: Whether nothing was found, or the Answerer said that memory does not hold it.
        verdict: `ungraded` where the Answerer or the Grader failed; `why` says so.
    """

    answer: str = ""
    evidence: tuple[str, ...] = ()
    cited: tuple[str, ...] = ()
    abstained: bool = False
    verdict: ProbeVerdict = "ungraded"
    why: str = ""

    @property
    def rests_on(self) -> set[str]:
        """Ids of the entries it was given from; all it was looked for in, where it cites none."""
        return set(self.cited or self.evidence)


RepairState = Literal["proposed", "refused", "skipped", "written", "kept", "rolled_back", "failed"]
_WEIGHED: tuple[RepairState, ...] = ("kept", "rolled_back")


class Repair(Data):
    """What was done about a failed probe.

    Attributes:
        state: `proposed` until it is decided; then `refused` by a guard, `skipped` since there was nothing to
            write, or `written`. What was written is `kept` or `rolled_back` once it was weighed; what never
            was is taken back when the session is committed or examined anew. `failed` where the Repairer did;
            `why` says how.
        cause: Whether the information was missing, or stored and only hard to find.
        draft: The proposed fact as `FactDraft` data, None for NOOP. turn: id of the turn it rests on.
        decision: INSERT, MERGE or SKIP of the Consolidator; NOOP of the Repairer; REFUSED by a guard.
        entry: Id of the entry that holds it now, or held it until it was rolled back.
        considered: Ids of the stored entries that the Repairer and the Consolidator were shown.
    """

    state: RepairState = "proposed"
    cause: Literal["missing", "hard to find", "unknown"] = "unknown"
    draft: dict[str, Any] | None = None
    turn: str | None = None
    decision: Decision | None = None
    entry: str | None = None
    considered: tuple[str, ...] = ()
    why: str = ""

    @property
    def stands(self) -> bool:
        """Whether what it wrote is in memory, as far as the examination knows."""
        return self.state in ("written", "kept")

    def overtaken_by(self, known: "Repair") -> bool:
        """Whether `known`, noted by another end of the session, has come further than this."""
        return known.state in _WEIGHED or (
            known.state == "written" and self.state not in ("written", *_WEIGHED)
        )

    @model_validator(mode="before")
    @classmethod
    def _from_flags(cls, data: Any) -> Any:
        """Former versions stored four flags in place of the state."""
        if not isinstance(data, dict) or "wrote" not in data:
            return data
        wrote, decision = data["wrote"], data.get("decision")
        states: dict[RepairState, Any] = {
            "failed": data.get("failed"),
            "rolled_back": wrote and data.get("rolled_back"),
            "kept": wrote and data.get("settled"),
            "written": wrote,
            "refused": decision == "REFUSED",
            "proposed": decision is None,
        }
        rest = {name: value for name, value in data.items() if name not in ("wrote", "settled", *states)}
        return {**rest, "state": next((state for state, holds in states.items() if holds), "skipped")}


class Probe(Data):
    """A question a session's memory must answer, made from its turns (MemMA 3.4 and appendix G).

    Attributes:
        session, part: Which session, and which stretch of it (1, and one more each time it was reopened).
        n: Its place among the probes of the part, from 1.
        gold: The answer, a clause. turn: id of the turn that supports it.
        memories: Ids of earlier entries that the Prober was shown: its words may be theirs.
        before, after: Answers before and after repair; `after` is None where it was not asked again.
        as_before: Whether what `after` rested on was rolled back, so that it stands as before.
    """

    id: str
    session: str
    part: int
    n: int
    kind: ProbeKind
    question: str
    gold: str
    turn: str
    memories: tuple[str, ...] = ()
    before: Attempt | None = None
    after: Attempt | None = None
    repair: Repair | None = None
    as_before: bool = False

    @property
    def passed_before(self) -> bool:
        """Whether memory answered it before repair."""
        return self.before is not None and self.before.verdict == "passed"

    @property
    def verdict(self) -> ProbeVerdict:
        """Whether memory answers it as it stands now."""
        last = self.before if self.as_before or self.after is None else self.after
        return last.verdict if last is not None else "ungraded"


def probe_id(scope: Scope, seq: int, part: int, n: int) -> str:
    """The id of the n-th probe of a part of the scope's session, always: a retried write lands on it.

    Args:
        seq: Which session it is: one begun anew under the name of a forgotten one has other probes.
    """
    content = [scope.user, scope.workspace, scope.session, seq, part, n]
    return str(uuid.uuid5(_NAMESPACE, json.dumps(content, ensure_ascii=False)))


SessionStatus = Literal["open", "verifying", "committed", "committed_unverified"]


class SessionReport(Data):
    """What ending a session found and did, as counts.

    Attributes:
        passed_before, passed_after: Probes that memory answered before and after repair.
        ungraded: Probes that could not be answered or graded, since a role failed.
        repairs: Facts written for failed probes that stayed, merged ones included.
        rolled_back: Facts written for failed probes and taken back.
        merged: Entries united with another that says the same, by the Consolidator or in maintenance.
        committed: Entries that became active.
    """

    probes: int = 0
    passed_before: int = 0
    passed_after: int = 0
    ungraded: int = 0
    repairs: int = 0
    rolled_back: int = 0
    merged: int = 0
    committed: int = 0
    usage: Usage = {}
