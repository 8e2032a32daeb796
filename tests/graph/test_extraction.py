"""Extraction guards of bulk import: tried again, split, covered, with partial results kept."""

import pytest

from memcycle import build_remember
from memcycle.agents.constructor import ConstructorOutput, FactDraft
from memcycle.agents.episode_trigger import EpisodeTriggerOutput
from memcycle.agents.fact_judge import FactJudgeOutput
from memcycle.agents.guide import GuideOutput
from memcycle.agents.judge import JudgeOutput
from memcycle.core.errors import RoleFailed
from memcycle.core.settings import Settings
from memcycle.core.world import World
from memcycle.stores.bank import Bank
from tests.fakes import FakeEmbeddings
from tests.graph.conftest import ANA, Cycle, world
from tests.scripted import Always, Scripted

FAILED = RoleFailed("constructor", "no JSON")
TOWNS = ("Graz", "Linz", "Wien", "Bregenz", "Eisenstadt", "Salzburg")
SAID = [f"I bought a heavy copper kettle at the market in {town}" for town in TOWNS]


class Busy(Exception):
    """What a provider raises."""

    status_code = 503


class TooLong(Exception):
    """What a provider raises on a prompt that it cannot take."""

    status_code = 413


@pytest.fixture
def waits():
    return []


@pytest.fixture
def cycle(tmp_path, waits):
    ours = world()
    settings = Settings(home=tmp_path / "home", shards=2)
    clock = World(now=ours.now, new_id=ours.new_id, sleep=waits.append)
    with Bank.open(settings, embeddings=FakeEmbeddings(), world=clock) as bank:
        yield Cycle(bank)


def facts_of(value):
    """A fact for each turn shown, in the turn's own words."""
    return ConstructorOutput(
        facts=[FactDraft(text=turn.text.replace("I ", "Ana "), turn=turn.n) for turn in value.turns]
    )


def cut_after(count):
    def reply(value):
        output = ConstructorOutput(facts=facts_of(value).facts[:count])
        output._cut = True
        return output

    return reply


def remember(cycle, constructor, *said, bulk=True, **theta):
    roles = {
        "constructor": constructor,
        "guide": Always(GuideOutput()),
        "judge": Always(JudgeOutput(relevant=[0], sufficient=True)),
        "episode_trigger": Always(EpisodeTriggerOutput(boundaries=[])),
        "fact_judge": Always(FactJudgeOutput(verdicts=[])),
    }
    from dataclasses import replace

    from memcycle.agents.roles import Roles

    graph = build_remember(replace(Roles.rules(), **roles), cycle.bank)
    changes = {f"extraction.{name}": value for name, value in theta.items()}
    context = {"user": "ana", "session": "s1", "bulk": bulk, "theta": changes}
    value = {"turns": cycle.turns(*said)} if said else {}
    return graph.invoke(value, context=context)["result"]


def test_a_failing_window_is_tried_again_with_growing_waits(cycle, waits):
    result = remember(cycle, Scripted(FAILED, Busy(), facts_of), *SAID[:2], retries=3, wait=2)
    assert waits == [2.0, 4.0]
    assert (len(result["facts"]), result["unextracted"]) == (2, [])


def test_online_nothing_is_tried_again(cycle, waits):
    result = remember(cycle, Scripted(FAILED), *SAID[:2], bulk=False)
    assert (result["unextracted"], waits) == (["Ds1:1", "Ds1:2"], [])
    with pytest.raises(Busy):
        remember(cycle, Scripted(Busy()), bulk=False)


def test_what_a_provider_raises_for_good_is_raised_and_the_turns_wait(cycle, waits):
    with pytest.raises(Busy):
        remember(cycle, Scripted(Busy(), Busy()), *SAID[:2], retries=1)
    with pytest.raises(PermissionError):
        remember(cycle, Scripted(PermissionError()), retries=3)
    assert waits == [1.0]
    assert len(remember(cycle, Scripted(facts_of))["facts"]) == 2


def test_a_window_that_is_too_long_is_read_in_smaller_ones_at_once(cycle, waits):
    constructor = Scripted(TooLong(), facts_of, facts_of, facts_of)
    result = remember(cycle, constructor, *SAID, split=2)
    assert [[turn.n for turn in value.turns] for value in constructor.seen[1:]] == [[1, 2], [3, 4], [5, 6]]
    assert [turn.n for turn in constructor.seen[2].window] == [1, 2]
    assert (len(result["facts"]), waits) == (6, [])
    assert any("smaller windows" in warning for warning in result["warnings"])


def too_long_from(tokens):
    """A Constructor that takes so many words."""

    def reply(value):
        if sum(len(turn.text.split()) for turn in (*value.turns, *value.window)) > tokens:
            raise TooLong
        return facts_of(value)

    return Always(reply)


@pytest.mark.parametrize("bulk", [False, True])
def test_what_is_too_long_is_halved_down_to_pieces_of_a_turn(cycle, bulk):
    document = " ".join(f"I planted tree number {n} behind the house." for n in range(120))
    result = remember(cycle, too_long_from(200), *SAID, document, bulk=bulk, coverage=0)
    assert result["unextracted"] == []
    facts = cycle.facts()
    assert len(facts) == len(SAID) + 8
    assert all(f"number {n} " in " ".join(facts) for n in range(120))


def test_a_turn_of_which_a_piece_failed_for_the_moment_waits(cycle):
    document = " ".join(f"I planted tree number {n} behind the house." for n in range(120))
    takes = too_long_from(500).outputs[0]

    def reply(value):
        if "number 119 " in value.turns[0].text and len(value.turns[0].text) < len(document):
            raise Busy
        return takes(value)

    result = remember(cycle, Always(reply), document, retries=0, coverage=0)
    assert result["unextracted"] == ["Ds1:1"]
    assert len(cycle.facts()) == 1
    assert remember(cycle, too_long_from(500), coverage=0)["unextracted"] == []


def test_a_model_that_takes_nothing_raises_nothing(cycle):
    result = remember(cycle, too_long_from(0), *SAID[:2], bulk=False)
    assert result["unextracted"] == ["Ds1:1", "Ds1:2"]
    assert any("longer than the model takes" in warning for warning in result["warnings"])


def test_a_cut_window_is_split_and_what_was_complete_is_kept_where_nothing_better_is_read(cycle):
    constructor = Scripted(cut_after(4), facts_of, FAILED, facts_of)
    result = remember(cycle, constructor, *SAID, split=2, retries=0)
    assert sorted(cycle.facts()) == sorted(text.replace("I ", "Ana ") for text in SAID)
    assert result["unextracted"] == ["Ds1:3", "Ds1:4"]


def test_turns_that_could_not_be_read_wait_and_the_others_are_done(cycle):
    constructor = Scripted(FAILED, facts_of, FAILED, facts_of)
    result = remember(cycle, constructor, *SAID, split=2, retries=0)
    assert result["unextracted"] == ["Ds1:3", "Ds1:4"]
    states = cycle.bank.turn_states(ANA, [f"Ds1:{n}" for n in range(1, 7)])
    assert [states[f"Ds1:{n}"] for n in range(1, 7)] == [
        "processed", "processed", "unextracted", "unextracted", "processed", "processed",
    ]  # fmt: skip
    again = Scripted(facts_of)
    assert remember(cycle, again)["unextracted"] == []
    assert [turn.text for turn in again.seen[0].turns] == SAID[2:4]


def test_a_provider_that_fails_after_some_windows_costs_only_the_rest(cycle):
    constructor = Scripted(TooLong(), facts_of, Busy(), Busy())
    result = remember(cycle, constructor, *SAID, split=2, retries=0)
    assert len(result["facts"]) == 2
    assert result["unextracted"] == ["Ds1:3", "Ds1:4", "Ds1:5", "Ds1:6"]
    assert any("Busy" in warning for warning in result["warnings"])


def test_turns_of_which_facts_hold_too_little_are_read_once_more_by_themselves(cycle):
    def but_third(value):
        return ConstructorOutput(facts=[fact for fact in facts_of(value).facts if fact.turn != 3])

    constructor = Scripted(but_third, facts_of)
    result = remember(cycle, constructor, *SAID[:2], "Our dog Bruno ate my blue woollen slippers", *SAID[3:])
    assert (result["reextracted"], result["uncovered"]) == (["Ds1:3"], [])
    aimed = constructor.seen[1]
    assert [turn.n for turn in aimed.turns] == [3]
    assert [turn.n for turn in aimed.window][-2:] == [1, 2]
    assert "slippers" in aimed.guidance.keep[0]
    assert len(cycle.facts()) == 6


@pytest.mark.parametrize("reply", [ConstructorOutput(facts=[]), FAILED])
def test_what_stays_uncovered_is_named(cycle, reply):
    constructor = Scripted(ConstructorOutput(facts=[]), reply)
    result = remember(cycle, constructor, SAID[0], "Sounds great!", retries=0)
    assert (result["reextracted"], result["uncovered"]) == (["Ds1:1"], ["Ds1:1"])


def test_the_coverage_check_can_be_switched_off(cycle):
    result = remember(cycle, Scripted(ConstructorOutput(facts=[])), SAID[0], coverage=0)
    assert (result["reextracted"], result["uncovered"]) == ([], [])


def test_facts_that_were_known_are_not_stored_twice(cycle):
    def all_but_first_words(value):
        return ConstructorOutput(facts=[FactDraft(text="Ana has a kettle", turn=1)])

    result = remember(cycle, Scripted(all_but_first_words, all_but_first_words), SAID[0])
    assert result["uncovered"] == ["Ds1:1"]
    assert cycle.facts() == ["Ana has a kettle"]


def test_by_rules_uncovered_turns_are_named_and_not_read_again(cycle):
    context = {"user": "ana", "session": "s1", "bulk": True, "theta": {"extraction.coverage": 1}}
    result = build_remember(bank=cycle.bank).invoke({"turns": cycle.turns(*SAID)}, context=context)["result"]
    assert result["reextracted"] == []
    assert result["unextracted"] == []
    assert result["facts"]


def test_bulk_windows_overlap_by_what_theta_says(cycle):
    remember(cycle, Scripted(facts_of), *SAID[:5], coverage=0)
    constructor = Scripted(facts_of)
    remember(cycle, constructor, SAID[5], overlap=4, coverage=0)
    before = [turn.text for turn in constructor.seen[0].window]
    assert before == SAID[:5]  # theta.window is six turns
    wide = Scripted(facts_of)
    remember(cycle, wide, "We sold three green canoes in Linz", overlap=20, coverage=0)
    assert len(wide.seen[0].window) == 6
