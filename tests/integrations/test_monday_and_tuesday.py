"""What is said on Monday is known on Tuesday: another thread, another process, and nobody ends a session."""

import json
import subprocess
import sys

import pytest

DOORS = ["middleware", "tools", "nested", "plain"]


def a_day(home, minutes, thread, text):
    """What came of a day in a process of its own."""
    command = [sys.executable, "-m", "tests.integrations.a_day", str(home), str(minutes), thread, text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """Monday, a quarter of an hour later, and forty minutes after that."""
    home = tmp_path_factory.mktemp("home")
    return [
        a_day(home, 0, "monday", "I teach fencing in Linz."),
        a_day(home, 15, "tuesday", "Where do I teach fencing?"),
        a_day(home, 55, "wednesday", "I like tea."),
    ]


@pytest.mark.parametrize("door", DOORS)
def test_the_next_thread_knows_it_at_once(days, door):
    monday, tuesday, _ = days
    assert monday["sessions"][door] == {"monday": "open"}
    assert "Linz" in tuesday["sent"][door]
    assert tuesday["sessions"][door] == {"monday": "open", "tuesday": "open"}


@pytest.mark.parametrize("door", DOORS)
def test_a_later_run_ends_what_has_gone_idle_one_session_a_run(days, door):
    wednesday = days[2]["sessions"][door]
    assert (wednesday["monday"], wednesday["wednesday"]) == ("committed", "open")
    # The nested door runs twice a day.
    assert wednesday["tuesday"] == ("committed" if door == "nested" else "open")
