"""Whom and what a question names: memory that holds those names counts for more (EvolveMem 3.1)."""

import logging
from collections.abc import Iterable

from memcycle.agents.rules.labels import entities_of, persons_of
from memcycle.core.errors import StoreError
from memcycle.core.scope import Scope
from memcycle.graph.environment import Env

_log = logging.getLogger(__name__)


def names_in(question: str, known: Iterable[str] = ()) -> list[str]:
    """Persons, places and things that a question names, in order of appearance.

    Args:
        known: Names known to be of persons; they are found whatever their case.
    """
    persons = persons_of(question, known)
    return list(dict.fromkeys((*persons, *entities_of(question, persons))))


def mention(env: Env, scope: Scope, question: str, known: Iterable[str] = ()) -> None:
    """Notes the names for the next maintenance. That they cannot be noted now keeps nobody from an answer."""
    names = names_in(question, known)
    if not names:
        return
    try:
        env.bank().mention(scope, names)
    except StoreError as error:
        _log.warning("%d names of a question were not noted: %s", len(names), error)
