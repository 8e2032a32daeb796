"""What `Memory.open` is told, made into what runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memcycle.core.errors import BadInput
from memcycle.core.settings import Settings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from memcycle.agents.roles import Roles
    from memcycle.prompts import PromptSet


def settings_of(settings: Settings | None, path: str | Path | None, *, may_stop: bool) -> Settings:
    """The settings of these arguments.

    Args:
        settings: By default those of the environment. path: the home, in place of theirs.
        may_stop: Whether a run could stop and go on, or none is ever made.

    Raises:
        BadInput: approval is asked for, where nothing could wait for it.
    """
    chosen = settings or Settings.from_env()
    if chosen.approval.is_asked and not may_stop:
        raise BadInput(
            "settings.approval needs runs that can stop and go on: open the memory with checkpoints, such as "
            "Memory.open(checkpoints='checkpoints.sqlite3'), or compile the graphs with a checkpointer"
        )
    return chosen if path is None else chosen.model_copy(update={"home": Path(path)})


def roles_of(
    model: "str | BaseChatModel",
    overrides: "Mapping[str, str | BaseChatModel] | None",
    prompts: "PromptSet | Mapping[str, str] | str | Path | None",
    model_args: Mapping[str, Any],
) -> "Roles | None":
    """The roles of these arguments, None where they ask for the rules: those are loaded on first use.

    Raises:
        BadInput: model arguments without a model by name.
        ModelUnavailable: unknown model name, or no key for it. PromptError: a prompt that cannot be used.
    """
    given = {key: value for key, value in model_args.items() if value is not None}
    if model == "rules" and not overrides and prompts is None:
        unused = sorted(set(given) - {"base_url", "api_key"})
        if unused:
            raise BadInput(f"unknown argument {', '.join(unused)}: model arguments need a model by name")
        return None
    from memcycle.agents.roles import Roles
    from memcycle.prompts import PromptSet

    overlay = (
        prompts if prompts is None or isinstance(prompts, PromptSet) else PromptSet.shipped().overlay(prompts)
    )
    return Roles.from_model(model, overrides=overrides, prompts=overlay, **given)
