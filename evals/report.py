"""The report of a run in Markdown: what was run, the figures in tables, a plot."""

from collections.abc import Mapping, Sequence
from typing import Any

from memcycle.evals.baselines import BASELINES, FULL_CONTEXT
from memcycle.evals.markdown import cell, share, table, tenth, whole
from memcycle.evals.plan import LENIENT_KS, OBSERVATIONS, Plan, versions
from memcycle.evals.plot import Series, line_plot
from memcycle.evals.record import Record, StoredConversation

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
        points = [
            (float(budget), found)
            for budget, found in figures["recall_at_tokens"].items()
            if found is not None
        ]
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
    found = versions()
    rows = [
        ("data", f"`{plan.file}`, SHA-256 `{plan.sha256[:16]}`"),
        ("conversations", ", ".join(plan.conversations)),
        (
            "questions",
            f"{summary['n']}, {summary['n_evidence']} of them with gold turns"
            + (f"; at most {plan.limit} a conversation" if plan.limit else ""),
        ),
        ("stored", f"{sum(one.turns for one in stored):,} turns, {sum(one.facts for one in stored):,} facts"),
        ("facts", facts),
        *_unlucky(stored),
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
    return f"    {command}\n\n" + table(("", ""), [(name, value) for name, value in rows])


def _unlucky(stored: Sequence[StoredConversation]) -> list[tuple[str, str]]:
    """Facts of the data set that do not count, if any."""
    unsourced, refused = sum(one.unsourced for one in stored), sum(one.refused for one in stored)
    if not unsourced + refused:
        return []
    return [("of these facts", f"{unsourced} name no turn, {refused} were not taken by the store")]


def _groups(summary: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """All questions, then each category that has any with gold turns."""
    by_category = [(name, own) for name, own in summary["by_category"].items() if own["n_evidence"]]
    return [("all", summary), *by_category]


def _recall_table(plan: Plan, summary: Mapping[str, Any]) -> str:
    heads = ("", "questions", *(f"at {k}" for k in plan.ks), *(f"all of them at {k}" for k in plan.ks))
    rows = [
        (
            name,
            str(own["n_evidence"]),
            *(share(own["recall"][str(k)]) for k in plan.ks),
            *(share(own["all_evidence"][str(k)]) for k in plan.ks),
        )
        for name, own in _groups(summary)
    ]
    entries = ("all, entries as they are", str(summary["n_evidence"]))
    cells = (*(share(summary["recall_as_entries"][str(k)]) for k in plan.ks), *[""] * len(plan.ks))
    return (
        table(heads, [*rows, (*entries, *cells)])
        + "\n\nEntries as they are: a fact beside the turn it was read from takes a place of its own."
    )


def _budget_table(plan: Plan, summary: Mapping[str, Any]) -> str:
    heads = (
        "",
        *(f"{budget:,}" for budget in plan.budgets),
        f"{plan.k} entries in {plan.token_budget:,}",
        "tokens of these",
    )
    rows = [
        (
            name,
            *(share(own["recall_at_tokens"][str(budget)]) for budget in plan.budgets),
            share(own["shown"]["recall"]),
            whole(own["shown"]["tokens"]),
        )
        for name, own in _groups(summary)
    ]
    return table(heads, rows)


def _ways(summary: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    asked = [(_words(name), own) for name, own in summary["baselines"].items() if own is not None]
    return [(SUBJECT, summary), *asked]


def _lenient_table(summary: Mapping[str, Any]) -> str:
    heads = (
        "",
        *(f"lenient, any session at {k}" for k in LENIENT_KS),
        *(f"strict, turns at {k}" for k in LENIENT_KS),
        *(f"strict, all turns at {k}" for k in LENIENT_KS),
    )
    rows = [
        (
            name,
            *(share(own["session_any"][str(k)]) for k in LENIENT_KS),
            *(share(own["recall"][str(k)]) for k in LENIENT_KS),
            *(share(own["all_evidence"][str(k)]) for k in LENIENT_KS),
        )
        for name, own in _ways(summary)
        if name != _words(FULL_CONTEXT)
    ]
    return table(heads, rows)


def _baselines(plan: Plan, summary: Mapping[str, Any]) -> str:
    heads = (
        "",
        *(f"at {k}" for k in plan.ks),
        *(f"{budget:,} tokens" for budget in plan.budgets),
        "shown",
        "tokens shown",
    )
    rows = [
        (
            name,
            *(share(own["recall"][str(k)]) for k in plan.ks),
            *(share(own["recall_at_tokens"][str(budget)]) for budget in plan.budgets),
            share(own["shown"]["recall"]),
            whole(own["shown"]["tokens"]),
        )
        for name, own in _ways(summary)
    ]
    left_out = [_words(name) for name in BASELINES if summary["baselines"].get(name) is None]
    note = f" Not asked, since nothing of the kind is stored: {', '.join(left_out)}." if left_out else ""
    return (
        "## Beside plain ways of searching\n\n"
        "Over the same stored entries, with the same embedder and the same count of tokens: naive RAG is "
        "dense over turns, BM25 and dense are over all that is stored, RRF and weighted sum (min-max) "
        "unite these two, facts only is dense over facts, as langmem and mem0 retrieve; a fact counts for "
        "its turn." + note + "\n\n" + table(heads, rows)
    )


def _answers(plan: Plan, summary: Mapping[str, Any]) -> str:
    heads = ("", "questions", "F1", "BLEU-1", "judged right")
    rows = [
        (name, str(own["n"]), share(own["f1"]), share(own["bleu1"]), share(own["accuracy"]))
        for name, own in [("all", summary), *summary["by_category"].items()]
    ]
    abstained = summary["abstained"]
    return (
        "## Answers\n\n"
        'Token F1 as LoCoMo\'s own code counts it; an answer that abstains counts as "not mentioned". Over '
        "all, F1 and BLEU-1 leave the adversarial questions out. "
        + (
            "A judge compared each answer with the gold. "
            if plan.judge
            else "No judge compared the answers. "
        )
        + "\n\n"
        + table(heads, rows)
        + "\n\nAbstained: on "
        + f"{share(abstained['right'])} of the questions whose answer was never mentioned (right), "
        + f"on {share(abstained['wrong'])} of the others (wrong)."
    )


def _cost(summary: Mapping[str, Any]) -> str:
    times = table(
        ("milliseconds", "median", "95th percentile"),
        [
            (name, tenth(own["p50"]), tenth(own["p95"]))
            for name, own in summary["milliseconds"].items()
            if own["p50"] is not None
        ],
    )
    usage = summary["usage"]
    if not usage:
        return f"## Cost\n\nNo model was called.\n\n{times}"
    rows = [
        (role, *(f"{count[key]:,}" for key in ("calls", "input_tokens", "output_tokens")))
        for role, count in sorted(usage.items())
    ]
    calls = tenth(summary["calls_per_question"])
    return (
        f"## Cost\n\n{times}\n\nCalls a question, on average, judging included: {calls}. In all:\n\n"
        + table(("role", "calls", "tokens read", "tokens written"), rows)
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
