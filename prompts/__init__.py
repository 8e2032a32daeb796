"""Prompts: one text file a role, and the set that loads, checks, overlays and renders them."""

from memcycle.prompts.prompt_set import PLACEHOLDERS, Placeholders, PromptSet

__all__ = ["PLACEHOLDERS", "Placeholders", "PromptSet"]
