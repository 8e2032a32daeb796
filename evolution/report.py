"""The report of an evolution in Markdown, and its scores over the rounds as a plot."""

import json
from collections.abc import Iterable, Mapping, Sequence
from math import fsum, sqrt
from statistics import fmean, stdev
from typing import Any

from memcycle.core.theta import Theta
from memcycle.evals.records import versions
from memcycle.evals.report import Rounds, Series, line_plot, share, table, whole
from memcycle.evolution.lab import Lab
from memcycle.evolution.space import capped, drawn, fingerprint
from memcycle.evolution.task import QuestionRecord, Split, in_words, score, value


def trajectory(summary: Mapping[str, Any]) -> str:
    """Training and guard scores by round, and the held-out figures at its ends."""
    rows = summary["rounds"]
    last = max(float(rows[-1]["round"]), 1.0)
    series = [
        Series("guard", tuple((float(row["round"]), row["guard"]) for row in rows)),
        Series("train", tuple((float(row["round"]), row["train"]) for row in rows)),
        Series("held out: start", ((0.0, summary["start"]["held_out"]),)),
        Series("held out: best", ((float(summary["best"]["round"]), summary["best"]["held_out"]),)),
    ]
    if summary["random"] is not None:
        series.append(Series("held out: random", ((last, summary["random"]["held_out"]),)))
    return line_plot(
        series, title="Score by round", x_label="round", y_label="score", axis=Rounds(last), unit="round"
    )


def report(lab: Lab, summary: Mapping[str, Any], command: str) -> str:
    """The whole report."""
    return (
        "\n\n".join(
            part
            for part in (
                "# Evolution of a retrieval configuration",
                _setting(lab, command),
                _held_out(summary),
                _rounds(summary["rounds"]),
                f"![Scores by round]({lab.folder.plot.name})",
                _diagnoses(lab, summary["rounds"]),
                _changed(summary["changed"]),
                _ablation(summary["ablation"]),
                "Versions: " + ", ".join(f"{name} {number}" for name, number in versions().items()) + ".",
            )
            if part
        )
        + "\n"
    )


def _setting(lab: Lab, command: str) -> str:
    task = lab.task
    splits = ", ".join(
        f"{split.replace('_', ' ')}: {sum(map(len, own.values()))} questions of {', '.join(own)}"
        for split, own in task.splits.items()
    )
    blank = " The Diagnoser was shown blanked records." if task.blank else ""
    return "\n\n".join(
        (
            f"Objective: {in_words(task.objective, balanced=task.balanced)}, at {task.token_budget} tokens "
            f"of evidence at most. Start: `{task.start_name}`. Data: {task.file} ({task.sha256[:12]}); "
            f"{splits}.",
            f"Facts by {task.facts}, recall by {task.model}, diagnosis by {task.diagnoser}, "
            f"{'answers judged by ' + task.judge if task.judge else 'no judge'}; seed {task.seed}.{blank} "
            "The diagnosis saw the training questions alone, the guard decided by its own, and held-out "
            "questions were asked once of each configuration that is reported.",
            f"```sh\n{command}\n```" if command else "",
        )
    ).strip()


def _held_out(summary: Mapping[str, Any]) -> str:
    rows = [("start", summary["start"]), ("best", summary["best"])]
    rows += [(name, own) for name, own in summary["beside"].items()]
    if summary["random"] is not None:
        rows.append((f"random search, {len(summary['random']['seeds'])} seeds", summary["random"]))
    gain = summary["gain"]
    lines = table(
        ("configuration", "held out", "95 % interval", "tokens"),
        [
            (name, share(own["held_out"]), _interval(own["interval"]), whole(own.get("tokens")))
            for name, own in rows
        ],
    )
    said = f"Gain of the best over the start, paired: {_signed(gain['gain'])} {_interval(gain['interval'])}."
    return f"## Held out\n\n{lines}\n\n{said}"


def _rounds(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = table(
        ("round", "train", "guard", "decision", "why", "configuration"),
        [
            (
                str(row["round"]),
                share(row["train"]),
                share(row["guard"]),
                row["decision"],
                row["why"],
                row["theta"][:8] + (" (best)" if row["best"] else ""),
            )
            for row in rows
        ],
    )
    return f"## Rounds\n\n{lines}"


def _diagnoses(lab: Lab, rows: Iterable[Mapping[str, Any]]) -> str:
    parts = []
    for row in rows:
        path = lab.folder.round(row["round"]) / "diagnosis.json"
        if path.is_file():
            parts.append(_diagnosis(row["round"], json.loads(path.read_text("utf-8"))))
    return "\n\n".join(["## Diagnoses", *parts]) if parts else ""


def _diagnosis(number: int, diagnosis: Mapping[str, Any]) -> str:
    patterns = ", ".join(f"{one['name']} {one['count']}" for one in diagnosis["patterns"]) or "no failure"
    proposal = diagnosis["proposal"]
    reasons = {one["path"]: one for one in diagnosis["changes"]}
    lines = [
        f"- `{path}` {value}: {reasons[path]['reason']}" if path in reasons else f"- `{path}` {value}"
        for path, value in proposal["applied"].items()
    ]
    lines += [f"- clamped `{one['path']}`: {one['asked']} to {one['given']}" for one in proposal["clamped"]]
    lines += [f"- wished for, not there: `{one['path']}`: {one['reason']}" for one in proposal["proposed"]]
    lines += [f"- refused `{one['path']}`: {one['why']}" for one in proposal["refused"]]
    failed = [f"- the Diagnoser failed: {diagnosis['failed']}"] if diagnosis["failed"] else []
    return "\n".join([f"Round {number}: {patterns}.", "", *(failed or lines or ["- nothing proposed"])])


def _changed(changed: Mapping[str, Sequence[Any]]) -> str:
    if not changed:
        return "## What changed\n\nNothing: the start is the best."
    rows = [(f"`{path}`", str(old), str(new)) for path, (old, new) in changed.items()]
    return "## What changed\n\n" + table(("dimension", "start", "best"), rows)


def _ablation(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    rows = [
        (
            row["mechanism"],
            row["switched"],
            share(row["score"]),
            _signed(row["gain"]),
            _interval(row["interval"]),
        )
        for row in found["rows"]
    ]
    head = f"## Ablation\n\nThe best scores {share(found['score'])} on {found['split'].replace('_', ' ')}."
    return f"{head}\n\n" + table(("mechanism", "switched", "score", "change", "95 % interval"), rows)


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.3f}"


def _interval(ends: Sequence[float] | None) -> str:
    return "" if ends is None else f"[{ends[0]:.3f}, {ends[1]:.3f}]"


_Z, _T = 1.96, {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""Two-sided 95 % quantiles of the normal distribution, and of Student's t by the number of values."""


def held_out(lab: Lab, theta: Theta, memory: int = 0) -> dict[str, Any]:
    """A configuration on the held-out split: its score with a 95 % interval over the questions, by category,
    and the tokens of evidence it took. To be asked once of each configuration that is reported."""
    records = lab.evaluate(theta, "held_out", memory)
    mix, own = lab.task.objective, [value(one, lab.task.objective) for one in records]
    known = [one for one in own if one is not None]
    categories = sorted({record.category for record in records if record.category is not None})
    return {
        "held_out": score(records, mix, balanced=lab.task.balanced),
        "interval": interval(known, _Z),
        "n": len(known),
        "by_category": {
            name: score([one for one in records if one.category == name], mix, balanced=False)
            for name in categories
        },
        "tokens": round(fmean(sum(one.shown.tokens.values()) for one in records), 1) if records else None,
        "failed": sum(one.error is not None for one in records),
        "theta": fingerprint(theta),
    }


def interval(values: Sequence[float], quantile: float | None = None) -> list[float] | None:
    """The 95 % interval of a mean: by Student's t over few values, unless a quantile is given; None over
    fewer than two."""
    if len(values) < 2:  # noqa: PLR2004 - one value has no spread
        return None
    wide = quantile if quantile is not None else _T.get(len(values), _Z)
    half = wide * stdev(values) / sqrt(len(values))
    mean = fsum(values) / len(values)
    return [round(mean - half, 6), round(mean + half, 6)]


def paired(lab: Lab, one: Sequence[QuestionRecord], other: Sequence[QuestionRecord]) -> dict[str, Any]:
    """The mean gain of one configuration over another on the same questions, with its 95 % interval."""
    mix = lab.task.objective
    before = {record.key: value(record, mix) for record in other}
    pairs = [(value(record, mix), before.get(record.key)) for record in one]
    gains = [left - right for left, right in pairs if left is not None and right is not None]
    return {"gain": round(fmean(gains), 6) if gains else None, "interval": interval(gains, _Z)}


def random_search(lab: Lab, evaluations: int) -> dict[str, Any] | None:
    """The best of as many drawn configurations as evolution evaluated, by the same questions, once a seed.

    Each is scored on the training and on the guard split, all that evolution may learn from; the best of
    each seed is asked held out.
    """
    task, runs = lab.task, []
    for seed in task.random_seeds:
        tried = []
        for number in range(evaluations):
            theta = capped(drawn(task.start, f"{seed} random {number}"), task.token_budget)
            records = [*lab.evaluate(theta, "train"), *lab.evaluate(theta, "guard")]
            tried.append((score(records, task.objective, balanced=task.balanced), -number, theta))
        seen, _, theta = max(tried, key=lambda one: one[:2])
        runs.append({"seed": seed, "seen": seen, **held_out(lab, theta)})
    if not runs:
        return None
    scores = [float(run["held_out"]) for run in runs]
    return {
        "held_out": round(fmean(scores), 6),
        "interval": interval(scores),
        "evaluations": evaluations,
        "seeds": runs,
    }


def evaluated(rows: Sequence[Mapping[str, Any]]) -> int:
    """How many configurations the rounds evaluated; the same one again costs nothing."""
    return len({(row["theta"], row["memory"]) for row in rows})


_SIGNALS = {
    "lexical view": ("bm25", "window", "facts"),
    "dense view": ("dense", "dense_nameless", "context"),
    "structured signals": ("speaker", "date", "time_expression", "number", "capital"),
    "session signal": ("session",),
    "text signals": ("statement", "first_person", "idf_mass", "answer"),
    "time decay": ("recency",),
    "importance and reinforcement": ("importance", "reinforcement"),
}
_ON = {"time decay": 1.0, "importance and reinforcement": 1.0}
"""What a weight of those is switched to where all are 0."""
_SWITCHES: dict[str, tuple[str, Any, Any]] = {
    "entity swap": ("swap.on", True, False),
    "query decomposition": ("decomposition.on", True, False),
    "routing by shares": ("routing.mode", "shares", "exclusive"),
    "turns first": ("turns_first", 0.2, 0.0),
    "Retry rounds": ("k_r", 2, 0),
    "linear fusion": ("fusion", "linear", "rrf"),
}
_OF_ANSWERS: dict[str, tuple[str, Any, Any]] = {
    "reflection": ("reflection.rounds", 1, 0),
    "verification": ("verification", "multi_candidate", "off"),
    "answer style": ("answer_style", "concise", None),
    "refinement rounds": ("h", 3, 0),
}
"""By mechanism its dimension, and its value switched on and off."""


def variants(theta: Theta, *, answers: bool) -> list[tuple[str, str, Theta]]:
    """Every mechanism with `off` or `on`, whichever it is not, and the configuration with it switched so."""
    made = []
    for name, signals in _SIGNALS.items():
        used = any(theta.get(f"weights.{signal}") > 0 for signal in signals)
        if not used and name not in _ON:
            continue
        value = 0.0 if used else _ON[name]
        changed = theta.with_changes({f"weights.{signal}": value for signal in signals})[0]
        made.append((name, "off" if used else "on", changed))
    for name, (path, on, off) in (_SWITCHES | (_OF_ANSWERS if answers else {})).items():
        is_on = theta.get(path) not in (off, 0)
        changed = theta.with_changes({path: off if is_on else on})[0]
        made.append((name, "off" if is_on else "on", changed))
    if theta.overrides:
        made.append(("overrides by category", "off", theta.model_copy(update={"overrides": {}})))
    return made


def ablated(lab: Lab, theta: Theta, split: Split, memory: int = 0) -> dict[str, Any]:
    """The table: the configuration as it is, and with each mechanism switched; gains over it are paired."""
    task = lab.task
    whole = lab.evaluate(theta, split, memory)
    rows = []
    for name, switched, changed in variants(theta, answers=task.answers):
        records = lab.evaluate(changed, split, memory)
        rows.append(
            {
                "mechanism": name,
                "switched": switched,
                "score": score(records, task.objective, balanced=task.balanced),
                **paired(lab, records, whole),
                "theta": fingerprint(changed),
            }
        )
    return {"split": split, "score": score(whole, task.objective, balanced=task.balanced), "rows": rows}
