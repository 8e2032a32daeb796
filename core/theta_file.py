"""Theta as a JSON file: read with every complaint at once, written whole or not at all."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memcycle.core.errors import BadInput
from memcycle.core.theta_space import Dimension, complaint, flattened, tree


def read_theta(
    path: Path, known: Mapping[str, Dimension], overridable: Mapping[str, Dimension]
) -> dict[str, Any]:
    """What a file says, nested.

    Args:
        path: A JSON object; nested, or with paths such as `weights.bm25` as keys.
        known: The dimensions. overridable: those that a category of questions may override.

    Raises:
        BadInput: not to be read, or keys and values that do not fit, all of them.
    """
    content = read_object(path)
    complaints = complaints_of(content, known, overridable)
    if complaints:
        raise BadInput(f"theta {path}: " + "; ".join(complaints))
    return tree(flattened(content))


def complaints_of(
    content: Mapping[str, Any], known: Mapping[str, Dimension], overridable: Mapping[str, Dimension]
) -> list[str]:
    """What is wrong with the content of a file, in words, key by key."""
    found = (complaint(path, value, known, overridable) for path, value in flattened(content).items())
    return [said for said in found if said is not None]


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        BadInput: there is none to be read.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BadInput(f"theta {path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"theta {path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise BadInput(f"theta {path}: expected a JSON object, got {type(content).__name__}")
    return content


def write_theta(path: Path, content: Mapping[str, Any]) -> None:
    """Writes a configuration.

    Raises:
        BadInput: the file cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise BadInput(f"theta cannot be written to {path}: {error.strerror}") from None
