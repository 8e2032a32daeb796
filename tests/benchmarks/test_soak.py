"""A soak's users, done through the API in this process; and that what is wrong in a store is found."""

import json
import sqlite3
import subprocess
import sys

import pytest

from benchmarks.soak.__main__ import Soak
from benchmarks.soak.check import API, INDEX, LEDGER, Held, compare, findings, in_files
from benchmarks.soak.plan import LIFE, Op, Person, Stint
from benchmarks.soak.worker import Done, Driver
from memcycle.core.settings import Settings
from memcycle.memory import Memory


@pytest.mark.slow
async def test_a_sound_store_has_no_findings_and_a_broken_one_has(tmp_path):
    settings, persons, soak = Settings(home=tmp_path), [Person(number) for number in range(3)], Soak(3, 1, 0)
    fails = Stint("user-001", 0, (Op("end_session", "s" * 5000), Op("forget", mark="Q001x99999")))
    async with Memory.open(settings=settings) as memory:
        for person in persons:
            soak.done += [await Driver(memory).run(person.next_stint()) for _ in range(2)]
        failed = await Driver(memory).run(fails)
    assert not [one for done in soak.done for one in (*done.errors, *done.findings)]
    made = {person.user: soak.left(person.user) for person in persons}
    assert sum(map(len, made.values())) > 0
    assert not compare(settings, persons, made)

    assert [error.split(":")[1] for error in failed.errors] == [" BadInput"]
    assert [(one.fault, one.where) for one in failed.findings] == [("lost", "forget")]

    with sqlite3.connect(tmp_path / "ledger.sqlite3") as ledger:
        ledger.execute(
            "UPDATE entries SET status = 'forgotten' WHERE row IN (SELECT row FROM entries"
            " WHERE user = 'user-001' AND granularity = 'raw' AND status = 'active' LIMIT 1)"
        )
        ledger.execute("UPDATE turns SET text = 'I met Q007x00001.' WHERE row = (SELECT min(row) FROM turns)")
    ledger.close()
    found = {(one.fault, one.user, one.where) for one in compare(settings, persons, {"user-002": {"no-id"}})}
    assert {("lost", "user-001", API), ("lost", "user-001", LEDGER), ("lost", "user-002", "history")} <= found
    assert {where for fault, _, where in found if fault == "crossed"} == {"ledger: turns"}


def test_what_must_be_there_follows_from_what_was_done():
    for number in range(10):
        person, said, gone = Person(number), set(), set()
        for stint in [person.next_stint() for _ in range(2 * LIFE)]:
            for op in stint.ops:
                said |= {message.mark for message in op.messages}
                if op.kind == "ask":
                    assert {mark for mark in said | gone if mark in op.without} == gone
                leaves = {op.mark} if op.kind == "forget" else said if op.kind == "forget_user" else set()
                said, gone = said - leaves, gone | leaves
        assert (set(person.said), person.gone) == (said, gone)
        assert gone


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda held: held, set()),
        (lambda held: held[1:], {"lost"}),
        (lambda held: [*held, held[0]], {"doubled"}),
        (lambda held: [*held, held[0]._replace(raw=False)], set()),
        (lambda held: [*held, held[0]._replace(where="events", text="I met q002x00001.")], {"crossed"}),
        (lambda held: [*held, Held("user-002", API, "Hello.")], {"crossed"}),
        (
            lambda held: [*held, held[0]._replace(where="probes", text="Who is Q001x99999?")],
            {"not forgotten"},
        ),
    ],
)
def test_each_fault_is_told_from_the_others(change, wrong):
    person = Person(1, gone={"Q001x99999"})
    person.next_stint()
    held = [
        Held(person.user, where, message.text, whole=True, raw=True)
        for where in (API, LEDGER, INDEX)
        for _, message in person.said.values()
    ]
    assert {one.fault for one in findings([person], change(held))} == wrong


def test_forgotten_marks_are_found_in_any_file(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\xff\x00q001x00001\xfe, Q001x00009")
    assert [one.what for one in in_files(tmp_path, {"Q001x00001", "Q001x00003"})] == ["Q001x00001"]


def test_ids_that_must_be_left_follow_from_what_was_reported():
    done = [
        Done("u", made={"a", "b"}, erased={"b"}),
        Done("u", made={"c"}, erased={"a"}),
        Done("v", made={"d"}),
    ]
    assert Soak(2, 1, 0, done=done).left("u") == {"c"}
    assert Soak(2, 1, 0, done=[*done, Done("u", made={"e"}, erased_all=True)]).left("u") == set()


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_short_soak_is_measured_and_nothing_is_wrong(processes):
    options = ["--users", "2", "--minutes", "0", "--latency-ms", "1", "--processes", str(processes)]
    command = [sys.executable, "-m", "benchmarks.soak", *options]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=300).stdout)
    assert (told["sessions"], sum(told["faults"].values()), told["errors"]) == (2, 0, [])
    assert min(told[name] for name in ("calls", "share_of_latency", "cpu_ms_per_operation", "asked")) > 0
    assert len(told["memory_mb"]) == len(told["loop"]) == processes
    assert told["shown"] == told["asked"]
