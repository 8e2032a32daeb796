"""Prompts as text files: loaded, checked, overlaid, rendered."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import NamedTuple, Self

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from memcycle.core.errors import PromptError
from memcycle.core.turn import sound


class Placeholders(NamedTuple):
    """Names that a role's prompt must use, and names it may use.

    The shipped prompt says which: what a role cannot work without stands in it as `${name}`, the rest, which
    another prompt may leave out, as `$name`.
    """

    required: frozenset[str]
    optional: frozenset[str]


_DIVIDER = re.compile(r"^---[ \t]*$", re.MULTILINE)


class _Prompt(NamedTuple):
    text: str
    system: Template | None
    human: Template
    used: frozenset[str]


class PromptSet:
    """One prompt a role. Immutable; an overlay is a new set.

    A prompt is text with `$name` placeholders (`string.Template`; write `$$` for a dollar sign), so braces
    need no care. A line that holds only `---` ends the instructions (system message) and begins what
    changes from call to call (human message); a prompt without one is a human message only.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        """A set of exactly these prompts, by role.

        Raises:
            PromptError: an unknown role, an unknown or missing placeholder, a stray `$`, an empty part.
        """
        self._prompts = {role: _parse(role, text) for role, text in texts.items()}

    @classmethod
    def shipped(cls) -> "PromptSet":
        """The prompts that come with memcycle."""
        return _SHIPPED

    def overlay(self, changes: "Path | str | Mapping[str, str]") -> Self:
        """This set with some prompts replaced.

        Args:
            changes: A folder with files named `<role>.txt` (UTF-8), or prompt text by role name.

        Raises:
            PromptError: as on construction; also a folder or file that cannot be read.
        """
        texts = dict(changes) if isinstance(changes, Mapping) else read_folder(Path(changes))
        return type(self)({**{role: prompt.text for role, prompt in self._prompts.items()}, **texts})

    def roles(self) -> list[str]:
        """Names of the roles that have a prompt."""
        return list(self._prompts)

    def text(self, role: str) -> str:
        """The prompt of a role as written."""
        return self._prompt(role).text

    def version(self, role: str) -> str:
        """Short hash of the prompt's text, recorded on what the role writes."""
        return hashlib.blake2b(self.text(role).encode(), digest_size=6).hexdigest()

    def render(self, role: str, **values: str) -> list[BaseMessage]:
        """The messages of a role's prompt with its placeholders filled in.

        Values go in as they are: a `$name` or a brace inside one is plain text.

        Raises:
            PromptError: no prompt for this role, or a placeholder of it without a value.
        """
        prompt = self._prompt(role)
        if missing := sorted(prompt.used - set(values)):
            raise PromptError(f"prompt of role {role!r}: no value for {_dollars(missing)}")
        human = HumanMessage(sound(prompt.human.substitute(values)).strip())
        if prompt.system is None:
            return [human]
        return [SystemMessage(prompt.system.substitute(values).strip()), human]

    def _prompt(self, role: str) -> _Prompt:
        if role not in self._prompts:
            raise PromptError(
                f"no prompt for role {role!r}; there are prompts for {', '.join(self._prompts)}"
            )
        return self._prompts[role]


def read_folder(folder: Path) -> dict[str, str]:
    """Prompt texts of the files named `<role>.txt`, by role, unchecked.

    Raises:
        PromptError: no such folder, or a file that cannot be read.
    """
    if not folder.is_dir():
        raise PromptError(f"prompt folder {folder} does not exist; it should hold files named <role>.txt")
    return {path.stem: _read(path, path.stem) for path in sorted(folder.glob("*.txt"))}


def _read(path: Path, role: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(
            f"prompt of role {role!r}: cannot read {path.name} as UTF-8 text ({error})"
        ) from error


def _parse(role: str, text: str) -> _Prompt:
    """The prompt in its parts, after all checks."""
    if role not in PLACEHOLDERS:
        raise PromptError(f"prompt for unknown role {role!r}; roles are {', '.join(PLACEHOLDERS)}")
    if not isinstance(text, str):
        raise PromptError(f"prompt of role {role!r}: expected text, got {type(text).__name__}")
    text = sound(text)
    known, template = PLACEHOLDERS[role], Template(text)
    used = set(template.get_identifiers())
    try:
        template.substitute(dict.fromkeys(used, ""))
    except ValueError as error:
        raise PromptError(
            f"prompt of role {role!r}: a stray $ ({error}); write $$ for a dollar sign"
        ) from None
    if unknown := sorted(used - known.required - known.optional):
        accepted = _dollars(sorted(known.required | known.optional))
        raise PromptError(
            f"prompt of role {role!r}: unknown placeholder {_dollars(unknown)}; "
            f"it may use {accepted}; write $$ for a dollar sign"
        )
    if missing := sorted(known.required - used):
        raise PromptError(f"prompt of role {role!r}: required placeholder {_dollars(missing)} is missing")
    head, *rest = _DIVIDER.split(text, maxsplit=1)
    human = rest[0] if rest else head
    if not human.strip():
        raise PromptError(f"prompt of role {role!r}: nothing stands after the line ---")
    system = Template(head) if rest and head.strip() else None
    return _Prompt(text, system, Template(human), frozenset(used))


def _dollars(names: list[str]) -> str:
    return ", ".join(f"${name}" for name in names)


def _declared(text: str) -> Placeholders:
    """What a shipped prompt says of its placeholders."""
    found = list(Template.pattern.finditer(text))
    required = frozenset(match["braced"] for match in found if match["braced"])
    return Placeholders(required, frozenset(match["named"] for match in found if match["named"]) - required)


_TEXTS = read_folder(Path(__file__).parent)
PLACEHOLDERS = {role: _declared(text) for role, text in _TEXTS.items()}
"""By role name."""
# Read along with the code: under a server's event loop a later first use would block it.
_SHIPPED = PromptSet(_TEXTS)
