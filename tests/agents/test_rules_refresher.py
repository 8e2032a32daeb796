"""The rules Refresher: update by the newer, delete by request only, else nothing."""

from datetime import UTC, datetime

import pytest

from memcycle.agents.refresher import ConflictView, Refresh, RefresherInput
from memcycle.agents.rules.refresher import refresher
from memcycle.agents.views import MemoryView, TurnView

NOW = datetime(2024, 3, 5, 12, 0, tzinfo=UTC)
THEN = datetime(2024, 1, 5, 12, 0, tzinfo=UTC)


def memory(n: int, text: str, time: datetime = THEN, granularity: str = "fact") -> MemoryView:
    return MemoryView(n=n, granularity=granularity, text=text, speaker="Ines", role="human", time=time)


def turn(text: str, role: str = "human") -> TurnView:
    return TurnView(n=1, speaker="Ines", role=role, text=text, time=NOW)


def settle(*conflicts: ConflictView) -> list[Refresh]:
    return refresher(RefresherInput(conflicts=list(conflicts), now=NOW)).edits


def test_the_newer_statement_replaces_the_older() -> None:
    found = settle(
        ConflictView(memory=memory(4, "Ines lives in Graz."), turn=turn("Yesterday I moved to Porto!"))
    )
    assert [(e.op, e.memory, e.text, e.turn) for e in found] == [
        ("UPDATE", 4, "Yesterday Ines moved to Porto.", 1)
    ]
    assert found[0].event_time == datetime(2024, 3, 4, tzinfo=UTC)


def test_a_raw_memory_is_read_in_its_speakers_name() -> None:
    found = settle(
        ConflictView(memory=memory(0, "I live in Graz.", granularity="raw"), turn=turn("I moved to Porto."))
    )
    assert [e.op for e in found] == ["UPDATE"]


@pytest.mark.parametrize(
    ("stored", "said", "role"),
    [
        (memory(4, "Ines lives in Graz."), "I visited Porto.", "human"),
        (memory(4, "Ines lives in Graz."), "I moved to Porto in 2010.", "human"),
        (memory(4, "Ines lives in Graz.", datetime(2024, 6, 1, tzinfo=UTC)), "I moved to Porto.", "human"),
        (memory(4, "Ines lives in Graz."), "I moved to Porto.", "ai"),
        (memory(4, "Ines lives in Graz."), "Please forget that I am allergic to nuts.", "human"),
    ],
)
def test_doubt_changes_nothing_and_says_why(stored: MemoryView, said: str, role: str) -> None:
    found = settle(ConflictView(memory=stored, turn=turn(said, role)))
    assert [e.op for e in found] == ["NONE"]
    assert found[0].why


def test_delete_needs_the_users_words() -> None:
    said = "Thanks. Please forget that I live in Graz."
    found = settle(ConflictView(memory=memory(4, "Ines lives in Graz."), turn=turn(said)))
    assert [(e.op, e.memory, e.quote) for e in found] == [("DELETE", 4, "Please forget that I live in Graz.")]


def test_two_stored_facts_are_settled_by_time() -> None:
    old, new = memory(4, "Ines lives in Graz."), memory(5, "Ines moved to Porto.", NOW)
    assert [(e.op, e.text) for e in settle(ConflictView(memory=old, other=new))] == [
        ("UPDATE", "Ines moved to Porto.")
    ]
    assert [e.op for e in settle(ConflictView(memory=new, other=old))] == ["NONE"]


def test_one_edit_a_memory_and_only_of_the_conflict_set() -> None:
    stored = memory(4, "Ines lives in Graz.")
    found = settle(
        ConflictView(memory=stored, turn=turn("I visited Rome.")),
        ConflictView(memory=stored, turn=turn("I moved to Porto.")),
        ConflictView(memory=memory(6, "Ines likes tea."), turn=turn("I moved to Porto.")),
    )
    assert [(e.memory, e.op) for e in found] == [(4, "UPDATE"), (6, "NONE")]
