"""What settings refuse."""

import math

import pytest

from memcycle.core.errors import BadInput
from memcycle.core.settings import YEAR, Approval, Settings


@pytest.mark.parametrize("seconds", [0, -1, math.inf, math.nan, 1e12, YEAR + 1])
def test_a_silence_that_no_clock_can_wait_for_is_refused(seconds):
    with pytest.raises(BadInput, match="idle_after"):
        Settings(idle_after=seconds)


def test_the_environment_says_when_sessions_end_who_sees_them_and_what_is_asked():
    env = {"MEMCYCLE_IDLE_AFTER": "60", "MEMCYCLE_VISIBILITY": "session"}
    chosen = Settings.from_env(env | {"MEMCYCLE_APPROVAL": "delete, update,preference"})
    assert (chosen.idle_after, chosen.visibility) == (60, "session")
    assert chosen.approval == Approval(delete=True, update=True, kinds=("preference",))
    assert Settings.from_env({}) == Settings()
    for word in ("none", "OFF", " never "):
        assert Settings.from_env({"MEMCYCLE_IDLE_AFTER": word}).idle_after is None
    assert Settings.from_env(env, idle_after=5).idle_after == 5


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("APPROVAL", "delete,everything", "'everything': give delete, update, or a kind"),
        ("IDLE_AFTER", "soon", "idle_after"),
        ("IDLE_AFTER", "-1", "idle_after"),
        ("VISIBILITY", "everybody", "'user' or 'session'"),
    ],
)
def test_the_environment_is_read_strictly(name, value, why):
    with pytest.raises(BadInput, match=why):
        Settings.from_env({f"MEMCYCLE_{name}": value})


def test_what_is_asked_of_two_is_what_either_asks():
    both = Approval(delete=True, kinds=("preference",)) | Approval.of(["update", "preference", "episodic"])
    assert both == Approval(delete=True, update=True, kinds=("preference", "episodic"))


def test_a_setting_that_is_gone_is_ignored_and_said(caplog):
    assert Settings.model_validate({"token_vectors": True, "shards": 2}) == Settings(shards=2)
    assert "token_vectors is ignored" in caplog.text


def test_a_silence_of_up_to_a_year_is_taken():
    for seconds in [0.001, 60, YEAR, None]:
        assert Settings(idle_after=seconds).idle_after == seconds, seconds
