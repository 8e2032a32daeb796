"""What may take another's place: of the same matter, shown, later. Through remember, with scripted roles."""

from datetime import UTC, datetime

import pytest

from memcycle.agents.constructor import ConstructorOutput, FactDraft
from memcycle.agents.fact_judge import FactJudgeOutput, FactVerdict
from memcycle.agents.judge import JudgeOutput
from memcycle.agents.refresher import Refresh, RefresherOutput
from tests.graph.conftest import ANA, START
from tests.graph.test_remember_graph import PASS, QUIET, conflict_with, facts
from tests.scripted import Always, Scripted

FLAT, KETTLE = "Rents a flat by the canal", "Bought a red kettle"
SISTER = "My sister visited me by the canal."
NEW = Always(FactJudgeOutput(verdicts=[FactVerdict(n=1, supported=True)]))


def shown(draft: FactDraft, text: str) -> Scripted:
    """A Constructor that names the memory of that text."""

    def construct(value):
        target = next(view.n for view in value.memories if view.text == text)
        return ConstructorOutput(facts=[draft.model_copy(update={"target": target})])

    return Scripted(construct)


def knows(cycle, text: str, said: str, **fields) -> str:
    cycle.remember(said, constructor=facts(FactDraft(text=text, turn=1, **fields)), fact_judge=NEW, **QUIET)
    return next(entry.id for entry in cycle.bank.entries(ANA, granularity="fact") if entry.text == text)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("I bought a red kettle for the flat by the canal.", KETTLE),
        ("I painted the flat by the canal yellow.", "Painted the flat by the canal yellow"),
        (SISTER, "Her sister visited her in the flat by the canal"),
    ],
)
@pytest.mark.parametrize("how", ["deleted", "updated", "constructor", "fact check"])
def test_what_is_of_another_matter_retires_nothing_and_is_told(cycle, how, said, text):
    flat = knows(cycle, FLAT, "I rent a flat by the canal.")
    wrong = {
        "deleted": Refresh(op="DELETE", memory=0, quote="the flat by the canal"),
        "updated": Refresh(op="UPDATE", memory=0, text=text, turn=1),
    }.get(how)
    roles = {"constructor": facts(text), "fact_judge": NEW, "judge": PASS}
    if wrong is not None:
        roles |= {"judge": conflict_with(FLAT), "refresher": Scripted(RefresherOutput(edits=[wrong]))}
    elif how == "constructor" or said != SISTER:
        roles |= {"constructor": shown(FactDraft(text=text, turn=1, edit="UPDATE"), FLAT)}
    else:
        conflict = FactVerdict(n=1, supported=True, relation="conflict", near=0)
        roles |= {"fact_judge": Always(FactJudgeOutput(verdicts=[conflict]))}
    out = cycle.remember(said, **roles, **QUIET)
    assert sorted(cycle.facts()) == sorted([FLAT, text])
    assert cycle.bank.get(ANA, [flat])[0].status == "staged"
    [told] = [one for one in out["result"]["rejected"] if one["text"] == FLAT]
    assert "another matter" in told["why"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Lives in Linz", "Moved to Graz", "I lived in Linz, I moved to Graz."),
        ("Works at Siemens", "Works at Bosch now", "I work at Bosch now."),
        (FLAT, "Gave up the flat by the canal", "I gave up the flat by the canal."),
        ("Favourite tea is mint", "Favourite tea is sage", "My favourite tea is sage."),
    ],
)
@pytest.mark.parametrize("how", ["updated", "constructor"])
def test_a_real_change_passes(cycle, how, old, new, said):
    was = knows(cycle, old, f"I said: {old}")
    roles = {"constructor": facts(new), "fact_judge": NEW}
    if how == "updated":
        edit = Refresh(op="UPDATE", memory=0, text=new, turn=1)
        roles |= {"judge": conflict_with(old), "refresher": Scripted(RefresherOutput(edits=[edit]))}
    else:
        roles |= {"judge": PASS, "constructor": shown(FactDraft(text=new, turn=1, edit="UPDATE"), old)}
    cycle.remember(said, **roles, **QUIET)
    assert cycle.facts() == [new]
    assert cycle.bank.get(ANA, [was])[0].status == "superseded"


def test_a_verdict_on_a_fact_that_was_not_shown_is_told_and_not_followed(cycle):
    """The first fact is plainly said and far from what is stored: only the second was shown."""
    verdicts = [FactVerdict(n=1, supported=False, why="no"), FactVerdict(n=2, supported=True)]
    judge = Scripted(FactJudgeOutput(verdicts=verdicts))
    out = cycle.remember(
        "I keep geese. I sold the loom.",
        constructor=facts("Ana keeps geese", "Ana parted with weaving gear"),
        fact_judge=judge,
        **QUIET,
    )
    assert [fact.n for fact in judge.seen[0].facts] == [2]
    assert sorted(cycle.facts()) == ["Ana keeps geese", "Ana parted with weaving gear"]
    assert any("number 1, which was not shown" in warning for warning in out["result"]["warnings"])


def test_a_judge_that_names_what_was_not_shown_is_told(cycle):
    knows(cycle, FLAT, "I rent a flat by the canal.")
    wrong = JudgeOutput.model_validate(
        {
            "relevant": [9],
            "conflicts": [{"memory": 0, "turn": 7}, {"memory": 8, "turn": 1}],
            "sufficient": True,
        }
    )
    out = cycle.remember("I keep geese.", judge=Always(wrong), constructor=facts("Ana keeps geese"), **QUIET)
    told = " ".join(out["result"]["warnings"])
    assert all(one in told for one in ("memory 9", "turn 7", "memory 8"))
    assert sorted(cycle.facts()) == ["Ana keeps geese", FLAT]


LATE = datetime(2025, 6, 1, tzinfo=UTC)
EARLY = datetime(2023, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize("edit", ["ADD", "UPDATE"])
@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("I work nights.", "I work days."),
        ("I live in Graz.", "I live in Linz."),
        ("I am vegan.", "I am vegetarian."),
    ],
)
def test_older_evidence_that_comes_late_is_history(cycle, edit, later, earlier):
    now = knows(cycle, later, later, event_time=LATE, event_precision="day")
    draft = FactDraft(text=earlier, turn=1, event_time=EARLY, event_precision="day", edit=edit)
    maker = shown(draft, later) if edit == "UPDATE" else facts(draft)
    out = cycle.remember(earlier, judge=PASS, constructor=maker, fact_judge=NEW, **QUIET)
    assert cycle.facts() == [later]
    [before] = cycle.bank.get(ANA, out["result"]["facts"])
    assert (before.text, before.status, before.superseded_by) == (earlier, "superseded", now)
    assert (before.valid_from, before.valid_until) == (EARLY, LATE)
    assert before.id in cycle.bank.get(ANA, [now])[0].supersedes
    assert before.text in [str((event.after or {}).get("text")) for event in cycle.bank.history(ANA, now)]


def test_older_evidence_goes_between_what_is_there(cycle):
    """Of a chain it is closed where the next begins, not where the last does."""
    knows(cycle, "Works evenings", "I work evenings.", event_time=datetime(2024, 3, 1, tzinfo=UTC))
    update = FactDraft(
        text="Works nights", turn=1, edit="UPDATE", event_time=START.replace(year=2024, month=5)
    )
    cycle.remember(
        "I work nights.", judge=PASS, constructor=shown(update, "Works evenings"), fact_judge=NEW, **QUIET
    )
    early = FactDraft(text="Works days", turn=1, event_time=EARLY)
    out = cycle.remember("I work days.", judge=PASS, constructor=facts(early), fact_judge=NEW, **QUIET)
    [days] = cycle.bank.get(ANA, out["result"]["facts"])
    assert days.valid_until == datetime(2024, 3, 1, tzinfo=UTC)


def test_a_past_event_is_no_state_that_a_later_one_ended(cycle):
    knows(cycle, "Lives in Graz", "I live in Graz.", event_time=LATE)
    cycle.remember(
        "I moved to Graz in 2019.",
        judge=PASS,
        constructor=facts(
            FactDraft(text="Moved to Graz in 2019", turn=1, event_time=EARLY.replace(year=2019))
        ),
        fact_judge=NEW,
        **QUIET,
    )
    assert sorted(cycle.facts()) == ["Lives in Graz", "Moved to Graz in 2019"]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Correction: we climbed it on 22 April.", "Ana climbed the Grimming on 22 April"),
        ("We climbed it not on the 23rd, but on the 22nd.", "Ana climbed the Grimming on 22 April"),
        ("Nicht am 23., sondern am 22. April.", "Ana climbed the Grimming on 22 April"),
    ],
)
def test_a_correction_replaces_whatever_day_it_speaks_of(cycle, said, text):
    wrong = "Ana climbed the Grimming on 23 April"
    day = datetime(2024, 4, 23, tzinfo=UTC)
    knows(cycle, wrong, "We climbed the Grimming on 23 April.", event_time=day, event_precision="day")
    right = FactDraft(text=text, turn=1, event_time=day.replace(day=22), event_precision="day", edit="UPDATE")
    cycle.remember(said, judge=PASS, constructor=shown(right, wrong), fact_judge=NEW, **QUIET)
    assert cycle.facts() == [text]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("The flights are on 22 April.", "Correction: the flights are on 23 April, not 22 April."),
        ("The flights are on 23 April.", "Sorry, the flights are on 22 April, not on 23 April."),
        ("My locker number is 12.", "Correction: my locker number is 21."),
    ],
)
def test_a_correction_replaces_without_a_model(cycle, first, then):
    cycle.remember(first)
    assert cycle.facts() == [first]
    cycle.remember(then)
    assert cycle.facts() == [then]
