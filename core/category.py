"""Kinds of questions, as memcycle itself tells them apart (`core.language.questions.question_category`)."""

from typing import Literal, get_args

Category = Literal["temporal", "inference", "multi", "yes_no", "single"]
"""A time is asked for; a likely conclusion; several facts at once; yes or no; one fact."""
CATEGORIES: tuple[Category, ...] = get_args(Category)
