"""What settings refuse."""

import math

import pytest
from pydantic import ValidationError

from memcycle.core.settings import YEAR, Settings


@pytest.mark.parametrize("seconds", [0, -1, math.inf, math.nan, 1e12, YEAR + 1])
def test_a_silence_that_no_clock_can_wait_for_is_refused(seconds):
    with pytest.raises(ValidationError, match="idle_after"):
        Settings(idle_after=seconds)


def test_a_setting_that_is_gone_is_ignored_and_said(caplog):
    assert Settings.model_validate({"token_vectors": True, "shards": 2}) == Settings(shards=2)
    assert "token_vectors is ignored" in caplog.text


def test_a_silence_of_up_to_a_year_is_taken():
    for seconds in [0.001, 60, YEAR, None]:
        assert Settings(idle_after=seconds).idle_after == seconds, seconds
