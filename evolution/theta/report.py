"""The report of an evolution in Markdown, and its scores over the rounds as a plot."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memcycle.evals.plot import Series, line_plot
from memcycle.evals.records import versions
from memcycle.evals.report import number, table
from memcycle.evolution.lab import Lab, between


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
    return line_plot(series, title="Score by round", x_label="round", y_label="score", log=False)


def report(lab: Lab, summary: Mapping[str, Any], command: str) -> str:
    """The whole report."""
    parts = (
        "# Evolution of a retrieval configuration",
        _setting(lab, command),
        _held_out(summary),
        _rounds(summary["rounds"]),
        f"![Scores by round]({lab.folder.run.plot.name})",
        _diagnoses(lab, summary["rounds"]),
        _changed(summary["changed"]),
        _ablation(summary["ablation"]),
        "Versions: " + ", ".join(f"{name} {number}" for name, number in versions().items()) + ".",
    )
    return "\n\n".join(filter(None, parts)) + "\n"


def _setting(lab: Lab, command: str) -> str:
    task = lab.task
    blank = " The Diagnoser was shown blanked records." if task.blank else ""
    told = f"\n\n```sh\n{command}\n```" if command else ""
    return (
        f"Objective: {task.aim}, at {task.token_budget} tokens of evidence at most. "
        f"Start: `{task.start_name}`. Data: {task.file} ({task.sha256[:12]}); {task.questions}.\n\n"
        f"Facts by {task.facts}, recall by {task.model}, diagnosis by {task.diagnoser}, "
        f"{'answers judged by ' + task.judge if task.judge else 'no judge'}; seed {task.seed}.{blank} "
        "The diagnosis saw the training questions alone, the guard decided by its own, and held-out "
        f"questions were asked once of each configuration that is reported.{told}"
    )


def _held_out(summary: Mapping[str, Any]) -> str:
    rows = [("start", summary["start"]), ("best", summary["best"])]
    rows += [(name, own) for name, own in summary["beside"].items()]
    if summary["random"] is not None:
        rows.append((f"random search, {len(summary['random']['seeds'])} seeds", summary["random"]))
    gain, interval = number(summary["gain"]["gain"], "+.3f"), between(summary["gain"]["interval"])
    lines = table(
        ("configuration", "held out", "95 % interval", "tokens"),
        [
            (name, number(own["held_out"]), between(own["interval"]), number(own.get("tokens"), ",.0f"))
            for name, own in rows
        ],
    )
    return f"## Held out\n\n{lines}\n\nGain of the best over the start, paired: {gain} {interval}."


def _rounds(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = table(
        ("round", "train", "guard", "decision", "why", "configuration"),
        [
            (
                str(row["round"]),
                number(row["train"]),
                number(row["guard"]),
                row["decision"],
                row["why"],
                row["theta"][:8] + (" (best)" if row["best"] else ""),
            )
            for row in rows
        ],
    )
    return f"## Rounds\n\n{lines}"


def _diagnoses(lab: Lab, rows: Iterable[Mapping[str, Any]]) -> str:
    paths = {row["round"]: lab.folder.round(row["round"]) / "diagnosis.json" for row in rows}
    parts = [
        _diagnosis(n, json.loads(path.read_text("utf-8"))) for n, path in paths.items() if path.is_file()
    ]
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
            number(row["score"]),
            number(row["gain"], "+.3f"),
            between(row["interval"]),
        )
        for row in found["rows"]
    ]
    head = f"## Ablation\n\nThe best scores {number(found['score'])} on {found['split'].replace('_', ' ')}."
    return f"{head}\n\n" + table(("mechanism", "switched", "score", "change", "95 % interval"), rows)
