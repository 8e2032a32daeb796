"""A pipeline: theta, switches, prompts and models as one folder to read, compare and run (MemPro).

`pipeline.json` has all but the prompts; `prompts/ROLE.txt` are those that are laid over the shipped ones;
`NOTE.md` says what the version is for, to people alone.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field, ValidationError

from memcycle.agents.roles import Roles
from memcycle.core.errors import BadInput, first_complaint
from memcycle.core.jsonl import read_object, write_file, write_object
from memcycle.core.scope import Data
from memcycle.core.settings import Settings
from memcycle.core.theta import Switches, Theta
from memcycle.prompts import PromptSet
from memcycle.prompts.prompt_set import read_folder

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    Model = str | BaseChatModel
    Prompts = PromptSet | Mapping[str, str] | str | Path | None

FILE, PROMPTS, NOTE = "pipeline.json", "prompts", "NOTE.md"
"""What a pipeline's folder holds."""


class Pipeline(Data):
    """One version of the whole of memcycle's program.

    Attributes:
        model: `rules` or a model's name, for all roles. models: names by role.
        prompts: Texts by role, laid over the shipped ones.
        parent: Version of the pipeline it was made from.
    """

    model: str = "rules"
    models: dict[str, str] = Field(default_factory=dict)
    theta: Theta = Field(default_factory=Theta)
    switches: Switches = Field(default_factory=Switches)
    prompts: dict[str, str] = Field(default_factory=dict)
    parent: str | None = None

    @property
    def version(self) -> str:
        """12 hexadecimal digits of what it does, recorded on every entry that it makes.

        Equal for equal pipelines, whoever their parent is and whatever their theta is called.
        """
        content = self.model_dump(mode="json", exclude={"parent": True, "theta": {"version"}})
        shipped = PromptSet.shipped()
        text = json.dumps([content, *map(shipped.version, shipped.roles())], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """The pipeline in a folder.

        Raises:
            BadInput: no such folder, or a key or value that does not fit, by name.
            PromptError: a prompt that cannot be used.
        """
        folder = Path(folder)
        if not (folder / FILE).is_file():
            raise BadInput(f"pipeline {folder}: no {FILE} there; `memcycle program init FOLDER` makes one")
        prompts = read_folder(folder / PROMPTS) if (folder / PROMPTS).is_dir() else {}
        PromptSet.shipped().overlay(prompts)
        content = read_object(folder / FILE)
        if "prompts" in content:
            raise BadInput(f"pipeline {folder / FILE}: prompts are files named {PROMPTS}/ROLE.txt")
        try:
            return cls.model_validate({**content, "prompts": prompts})
        except ValidationError as error:
            raise BadInput(f"pipeline {folder / FILE}: {first_complaint(error)}") from None

    def save(self, folder: Path | str, note: str = "") -> None:
        """Writes the folder; one that holds a pipeline keeps what it is.

        Args:
            note: What the version is for, in Markdown.

        Raises:
            BadInput: there is one already.
        """
        folder = Path(folder)
        if (folder / FILE).exists():
            raise BadInput(f"{folder} holds a pipeline: name another folder, or remove it")
        (folder / PROMPTS).mkdir(parents=True, exist_ok=True)
        for role, text in self.prompts.items():
            write_file(folder / PROMPTS / f"{role}.txt", text)
        if note:
            write_file(folder / NOTE, note)
        # What makes the folder a pipeline comes last.
        write_object(folder / FILE, self.model_dump(mode="json", exclude={"prompts"}))

    def over(self, settings: Settings) -> Settings:
        """These settings with the pipeline's theta and switches, and its version."""
        own = {"theta": self.theta, "switches": self.switches, "pipeline": self.version}
        return settings.model_copy(update=own)

    def filled_in(
        self, model: "Model | None", overrides: "Mapping[str, Model] | None", prompts: "Prompts" = None
    ) -> "tuple[Model, Mapping[str, Model], Prompts]":
        """Models and prompts that somebody names, with its own where they name none.

        Args:
            model: In place of all its models. overrides: by role. prompts: laid over its own; a whole
                `PromptSet` is in place of them.
        """
        own = self.models if model is None else {}
        if self.prompts and not isinstance(prompts, PromptSet):
            prompts = PromptSet.shipped().overlay(self.prompts).overlay(prompts or {})
        return model or self.model, {**own, **(overrides or {})}, prompts

    def roles(self, model: "Model | None" = None) -> Roles:
        """Its roles, on its own models or on this one.

        Raises:
            ModelUnavailable: a model that cannot be used. BadInput: no such role.
        """
        chosen, overrides, _ = self.filled_in(model, None)
        prompts = PromptSet.shipped().overlay(self.prompts)
        return Roles.from_model(chosen, overrides=overrides, prompts=prompts)


def pipeline_of(given: Pipeline | Path | str) -> Pipeline:
    """A pipeline, or the one in a folder."""
    return given if isinstance(given, Pipeline) else Pipeline.load(given)
