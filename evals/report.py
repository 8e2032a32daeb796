"""The report of a run in Markdown: what was run, the figures in tables, a plot."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from math import ceil, fsum
from statistics import median
from typing import Any

from memcycle.core.probe import Usage, add_usage
from memcycle.evals.baselines import BASELINES, FULL_CONTEXT
from memcycle.evals.plot import Series, line_plot
from memcycle.evals.records import (
    LENIENT_KS,
    OBSERVATIONS,
    Plan,
    Record,
    Scores,
    StoredConversation,
    versions,
)

_P95 = 0.95


def summarized(
    plan: Plan, records: Sequence[Record], stored: Sequence[StoredConversation], *, seconds: float
) -> dict[str, Any]:
    """The figures of a run.

    Recall and what else is said of evidence are means over the questions that have gold turns, adversarial
    ones left out; F1 and BLEU-1 over those with a gold answer, adversarial ones left out too unless there are
    no others, as in their own category. Accuracy is over all that can be judged; an answer the judge gave no
    verdict on counts as wrong.
    """
    spent: list[Usage] = [*(one.usage for one in stored), *(one.usage for one in records)]
    categories = sorted({record.category for record in records if record.category is not None})
    return {
        "data": plan.data,
        "conversations": list(plan.conversations),
        "n": len(records),
        "failed": sum(record.error is not None for record in records),
        **_figures(plan, records),
        "abstained": _abstained(plan, records),
        "by_category": {
            name: {
                "n": sum(record.category == name for record in records),
                **_figures(plan, [record for record in records if record.category == name]),
            }
            for name in categories
        },
        "baselines": {name: _baseline(plan, records, name) for name in BASELINES if plan.baselines},
        "usage": reduce(add_usage, spent, Usage()),
        "evidence_tokens": _mean(record.evidence_tokens for record in records),
        "calls_per_question": _mean(record.calls for record in records) if plan.answers else None,
        "milliseconds": {
            "search": _times(record.search_ms for record in records),
            "answer": _times(record.answer_ms for record in records),
        },
        "seconds": round(seconds, 1),
    }


def _figures(plan: Plan, records: Sequence[Record]) -> dict[str, Any]:
    plain = [record for record in records if not record.adversarial] or records
    return {
        **_evidence(plan, records, lambda record: record.scores),
        "f1": _mean(record.f1 for record in plain),
        "bleu1": _mean(record.bleu1 for record in plain),
        "accuracy": _accuracy(records),
        "first_cited": _first_cited(plan, records),
    }


def _evidence(
    plan: Plan, records: Sequence[Record], way: Callable[[Record], Scores | None]
) -> dict[str, Any]:
    """How one way of searching does, over the questions with gold turns that were asked so."""
    asked = [scores for record in records if record.gold_turns and (scores := way(record)) is not None]

    def by(field: str, keys: Iterable[int]) -> dict[str, float | None]:
        shares: list[Mapping[str, float]] = [getattr(scores, field) for scores in asked]
        return {str(key): _mean(one.get(str(key)) for one in shares) for key in keys}

    return {
        "n_evidence": len(asked),
        "recall": by("recall", plan.ks),
        "recall_as_entries": by("as_entries", plan.ks),
        "all_evidence": by("all_evidence", plan.ks),
        "any_gold": by("any_gold", plan.ks),
        "mrr": _mean(scores.reciprocal_rank for scores in asked),
        "recall_at_tokens": by("recall_at_tokens", plan.budgets),
        "session_any": by("session_any", LENIENT_KS),
        "shown": {
            "recall": _mean(scores.shown for scores in asked),
            "tokens": _mean(float(scores.tokens) for scores in asked),
        },
    }


def _baseline(plan: Plan, records: Sequence[Record], name: str) -> dict[str, Any] | None:
    """None where no question could be asked so, as with facts alone where there are none."""
    if not any(name in record.baselines for record in records):
        return None
    figures = _evidence(plan, records, lambda record: record.baselines.get(name))
    if name == FULL_CONTEXT:
        # It shows everything: there is no rank and no budget to speak of.
        nothing = {key: dict.fromkeys(value) for key, value in figures.items() if isinstance(value, dict)}
        return {**figures, **nothing, "mrr": None, "shown": figures["shown"]}
    return figures


def _first_cited(plan: Plan, records: Sequence[Record]) -> float | None:
    """Share of the questions with gold turns whose answer cites one of them first; abstaining cites none."""
    asked = [record for record in records if record.gold_turns] if plan.answers else []
    return _mean(
        float(not one.abstained and not set(one.gold_turns).isdisjoint(one.cited[:1])) for one in asked
    )


def _accuracy(records: Sequence[Record]) -> float | None:
    judged = [record for record in records if record.verdict is not None or record.judge_error is not None]
    return _mean(float(record.verdict == "CORRECT") for record in judged)


def _abstained(plan: Plan, records: Sequence[Record]) -> dict[str, float | None]:
    """Share of the adversarial questions, and of the others, that were answered with "nothing is known"."""
    if not plan.answers:
        return {"right": None, "wrong": None}
    return {
        "right": _mean(float(record.abstained or False) for record in records if record.adversarial),
        "wrong": _mean(float(record.abstained or False) for record in records if not record.adversarial),
    }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def _times(values: Iterable[float | None]) -> dict[str, float | None]:
    """Median and 95th percentile."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return {"p50": None, "p95": None}
    return {"p50": median(known), "p95": known[ceil(_P95 * len(known)) - 1]}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, all columns but the first to the right."""
    lines = [heads, ("---", *["---:"] * (len(heads) - 1)), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines)


def cell(text: str) -> str:
    """Text as a cell of a table holds it."""
    return " ".join(text.split()).replace("|", "\\|")


def number(value: float | None, form: str = ".3f") -> str:
    """A number, by default a share; a dash where there is none."""
    return "-" if value is None else f"{value:{form}}"


SUBJECT = "memcycle"
_LISTED = 10
"""Failed questions that are listed; the rest stand in the records."""


def report(
    plan: Plan,
    summary: Mapping[str, Any],
    records: Sequence[Record],
    stored: Sequence[StoredConversation],
    *,
    command: str,
    plot: str,
) -> str:
    """A run in words and tables.

    Args:
        plan: What was measured. summary: the figures.
        records: By question. stored: by conversation.
        command: The command line. plot: file name of the plot.
    """
    parts = [
        f"# Evaluation on {plan.data}",
        _run(plan, summary, stored, command),
        "## Evidence found\n\n"
        "Mean share of a question's gold turns among the first k distinct turns found. Raw turns count, and "
        "facts with a single source turn for that turn; nothing coarser does.\n\n"
        + _recall_table(plan, summary),
        "## Evidence within a budget of tokens\n\n"
        "The same share in what is shown when only the tokens of the entries' texts are limited.\n\n"
        + _budget_table(plan, summary)
        + f"\n\n![Share of gold turns against tokens of evidence]({plot})",
        "## Strict and lenient\n\n"
        "Lenient is a hit when any turn of any gold session is among the first k; many published figures are "
        "of this kind. Strict is the share of gold turns, and all of them together.\n\n"
        + _lenient_table(summary),
        *([_baselines(plan, summary)] if plan.baselines else []),
        *([_answers(plan, summary)] if plan.answers else []),
        _cost(summary),
        *_failures(records),
    ]
    return "\n\n".join(parts) + "\n"


def recall_plot(summary: Mapping[str, Any]) -> str:
    """Recall against tokens as SVG: memcycle and what it is compared with."""
    ways = {SUBJECT: summary, **summary["baselines"]}
    series = []
    for name, figures in ways.items():
        if figures is None:
            continue
        by_budget = figures["recall_at_tokens"].items()
        points = [(float(budget), found) for budget, found in by_budget if found is not None]
        shown = figures["shown"]
        if name == FULL_CONTEXT and shown["recall"] is not None:
            points = [(max(shown["tokens"], 1.0), shown["recall"])]
        series.append(Series(_words(name), tuple(points)))
    return line_plot(
        series,
        title="Share of gold turns against tokens of evidence",
        x_label="tokens of evidence",
        y_label="share of gold turns",
    )


def _run(plan: Plan, summary: Mapping[str, Any], stored: Sequence[StoredConversation], command: str) -> str:
    theta = plan.settings.theta
    facts = "the data set's observations, made by a model" if plan.facts == OBSERVATIONS else plan.facts
    unsourced, refused = sum(one.unsourced for one in stored), sum(one.refused for one in stored)
    unlucky = f"{unsourced} name no turn, {refused} were not taken by the store"
    limit = f"; at most {plan.limit} a conversation" if plan.limit else ""
    found = versions()
    rows = [
        ("data", f"`{plan.file}`, SHA-256 `{plan.sha256[:16]}`"),
        ("conversations", ", ".join(plan.conversations)),
        ("questions", f"{summary['n']}, {summary['n_evidence']} of them with gold turns{limit}"),
        ("stored", f"{sum(one.turns for one in stored):,} turns, {sum(one.facts for one in stored):,} facts"),
        ("facts", facts),
        *([("of these facts", unlucky)] if unsourced + refused else []),
        ("embedder", ", ".join(sorted({one.embedder for one in stored})) or plan.settings.embedder),
        ("answers", plan.model if plan.answers else "none asked for"),
        ("judge", plan.judge or "none"),
        ("shown to answer", f"{plan.k} entries and {plan.token_budget:,} tokens at most"),
        ("retrieval", f"theta version {theta.version}, whole in `config.json`"),
        ("seeds", "none: nothing is drawn at random"),
        ("tokens counted by", found.pop("tokens")),
        ("versions", ", ".join(f"{name} {number}" for name, number in found.items())),
        ("time", f"{summary['seconds']:,.0f} s, storing included"),
    ]
    return f"    {command}\n\n" + table(("", ""), rows)


def _groups(summary: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """All questions, then each category that has any with gold turns."""
    by_category = [(name, own) for name, own in summary["by_category"].items() if own["n_evidence"]]
    return [("all", summary), *by_category]


Column = tuple[str, tuple[str, ...], str]
"""Its head, where its figures stand in those of a row, and their format."""


def _at(field: str, keys: Iterable[int], head: str = "at {}") -> list[Column]:
    """A share at each k, or within each budget."""
    return [(head.format(f"{key:,}"), (field, str(key)), ".3f") for key in keys]


def _shown(share: str, tokens: str) -> list[Column]:
    return [(share, ("shown", "recall"), ".3f"), (tokens, ("shown", "tokens"), ",.0f")]


def _figure(own: Any, at: tuple[str, ...]) -> Any:
    return _figure(own[at[0]], at[1:]) if at else own


def _table(rows: Iterable[tuple[str, Mapping[str, Any]]], columns: Sequence[Column], first: str = "") -> str:
    lines = [(name, *(number(_figure(own, at), form) for _, at, form in columns)) for name, own in rows]
    return table((first, *(head for head, _, _ in columns)), lines)


def _recall_table(plan: Plan, summary: Mapping[str, Any]) -> str:
    nothing = dict.fromkeys(("all_evidence", "any_gold"), dict.fromkeys(summary["all_evidence"]))
    entries = {**summary, **nothing, "recall": summary["recall_as_entries"], "mrr": None}
    rows = [*_groups(summary), ("all, entries as they are", entries)]
    shares = [
        *_at("recall", plan.ks),
        *_at("all_evidence", plan.ks, "all of them at {}"),
        *_at("any_gold", plan.ks, "any of them at {}"),
        ("MRR", ("mrr",), ".3f"),
    ]
    return (
        _table(rows, [("questions", ("n_evidence",), "d"), *shares])
        + "\n\nEntries as they are: a fact beside the turn it was read from takes a place of its own."
    )


def _budget_table(plan: Plan, summary: Mapping[str, Any]) -> str:
    shown = _shown(f"{plan.k} entries in {plan.token_budget:,}", "tokens of these")
    return _table(_groups(summary), [*_at("recall_at_tokens", plan.budgets, "{}"), *shown])


def _ways(summary: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    asked = [(_words(name), own) for name, own in summary["baselines"].items() if own is not None]
    return [(SUBJECT, summary), *asked]


def _lenient_table(summary: Mapping[str, Any]) -> str:
    columns = [
        *_at("session_any", LENIENT_KS, "lenient, any session at {}"),
        *_at("recall", LENIENT_KS, "strict, turns at {}"),
        *_at("all_evidence", LENIENT_KS, "strict, all turns at {}"),
    ]
    return _table([way for way in _ways(summary) if way[0] != _words(FULL_CONTEXT)], columns)


def _baselines(plan: Plan, summary: Mapping[str, Any]) -> str:
    budgets = _at("recall_at_tokens", plan.budgets, "{} tokens")
    columns = [*_at("recall", plan.ks), *budgets, *_shown("shown", "tokens shown")]
    left_out = [_words(name) for name in BASELINES if summary["baselines"].get(name) is None]
    note = f" Not asked, since nothing of the kind is stored: {', '.join(left_out)}." if left_out else ""
    return (
        "## Beside plain ways of searching\n\n"
        "Over the same stored entries, with the same embedder and the same count of tokens: naive RAG is "
        "dense over turns, BM25 and dense are over all that is stored, RRF and weighted sum (min-max) "
        "unite these two, facts only is dense over facts, as langmem and mem0 retrieve; a fact counts for "
        f"its turn.{note}\n\n{_table(_ways(summary), columns)}"
    )


def _answers(plan: Plan, summary: Mapping[str, Any]) -> str:
    columns = [
        ("questions", ("n",), "d"),
        ("F1", ("f1",), ".3f"),
        ("BLEU-1", ("bleu1",), ".3f"),
        ("judged right", ("accuracy",), ".3f"),
        ("gold turn cited first", ("first_cited",), ".3f"),
    ]
    rows = [("all", summary), *summary["by_category"].items()]
    right, wrong = (number(summary["abstained"][way]) for way in ("right", "wrong"))
    judged = "A judge compared each answer with the gold" if plan.judge else "No judge compared the answers"
    return (
        "## Answers\n\n"
        'Token F1 as LoCoMo\'s own code counts it; an answer that abstains counts as "not mentioned". Over '
        "all, F1 and BLEU-1 leave the adversarial questions out. "
        f"{judged}.\n\n{_table(rows, columns)}\n\n"
        f"Abstained: on {right} of the questions whose answer was never mentioned (right), "
        f"on {wrong} of the others (wrong)."
    )


def _cost(summary: Mapping[str, Any]) -> str:
    rows = [(name, own) for name, own in summary["milliseconds"].items() if own["p50"] is not None]
    columns = [("median", ("p50",), ",.1f"), ("95th percentile", ("p95",), ",.1f")]
    times = _table(rows, columns, "milliseconds")
    usage = sorted(summary["usage"].items())
    if not usage:
        return f"## Cost\n\nNo model was called.\n\n{times}"
    heads = {"calls": "calls", "input_tokens": "tokens read", "output_tokens": "tokens written"}
    calls = number(summary["calls_per_question"], ",.1f")
    return (
        f"## Cost\n\n{times}\n\nCalls a question, on average, judging included: {calls}. In all:\n\n"
        + _table(usage, [(head, (key,), ",") for key, head in heads.items()], "role")
    )


def _failures(records: Sequence[Record]) -> list[str]:
    failed = [record for record in records if record.error is not None]
    ungraded = sum(record.judge_error is not None for record in records)
    parts = []
    if failed:
        lines = [
            f"- {record.conversation}, question {record.id}: {cell(record.error or '')}"
            for record in failed[:_LISTED]
        ]
        parts.append(f"## Crashed\n\n{len(failed)} questions; they count as wrong.\n\n" + "\n".join(lines))
    if ungraded:
        parts.append(f"{ungraded} answers were not judged since the judge failed; they count as wrong.")
    return parts


def _words(name: str) -> str:
    """A baseline's name as people write it."""
    return {"naive_rag": "naive RAG", "bm25": "BM25", "rrf": "RRF"}.get(name, name.replace("_", " "))
