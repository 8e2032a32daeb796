"""Finding an entry by the first letters of its id."""

from typing import TYPE_CHECKING

from memcycle.core.errors import BadInput, UnknownEntry

if TYPE_CHECKING:
    from memcycle.core.entry import Entry
    from memcycle.memory import Memory

SHORT = 8
"""Letters of an id that listings show."""
LEAST = 6
"""Letters of an id that a command takes at least: fewer are easily another's."""

_LISTED = 5


def the_entry(memory: "Memory", prefix: str, user: str | None, workspace: str) -> "Entry":
    """The one entry, of any status, whose id begins so.

    Raises:
        BadInput: too few letters, several such entries (all are named), or several users and none named.
        UnknownEntry: no such entry.
    """
    if len(prefix) < LEAST:
        raise BadInput(
            f"{prefix!r} is too short for an id: give {LEAST} letters or more, as `memories` shows them"
        )
    scope = memory.scope(only_user(memory) if user is None else user, workspace)
    found = memory.bank.find(scope, prefix.casefold())
    if not found:
        raise UnknownEntry(
            f"no memory {prefix!r} of user {scope.user!r} in workspace {workspace!r}; "
            f"`memcycle memories --user {scope.user} --all` lists them"
        )
    if len(found) > 1:
        listed = "; ".join(f"{entry.id} {entry.text[:40]!r}" for entry in found[:_LISTED])
        raise BadInput(f"{prefix!r} begins {len(found)} ids, give more letters: {listed}")
    return found[0]


def only_user(memory: "Memory") -> str:
    """The user of a home that has one.

    Raises:
        BadInput: it has several, or none.
    """
    users = memory.bank.users()
    if not users:
        raise UnknownEntry(f"{memory.settings.home} holds no memories yet; `memcycle ingest` puts some there")
    if len(users) > 1:
        raise BadInput(f"whose memory? say it with --user: {', '.join(users[:_LISTED])}")
    return users[0]
