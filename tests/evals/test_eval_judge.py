"""The judge of answers: its verdicts, and what it is when it fails."""

import pytest

from memcycle.agents.grader import Grade, GraderOutput
from memcycle.core.errors import ModelUnavailable, RoleFailed
from memcycle.evals.ask import COUNTED_AS, AnswerJudge
from tests.loopback import model_server
from tests.scripted import Scripted


def scripted(*outputs):
    judge = AnswerJudge("rules")
    judge._grader = Scripted(*outputs)
    return judge


def graded(correct):
    return GraderOutput(grades=[Grade(n=1, correct=correct)])


def test_by_rules():
    judge = AnswerJudge("rules")
    assert (
        judge.judge("What did Bo build?", "a wooden kite", "Bo built a wooden kite.")["verdict"] == "CORRECT"
    )
    wrong = {"verdict": "WRONG", "judge_error": None, "usage": {}}
    assert judge.judge("What did Bo build?", "a wooden kite", "a stone wall") == wrong


def test_it_sees_question_gold_and_answer_alone():
    judge = scripted(graded(True), graded(False))
    assert judge.judge("Who?", "Ann", "It was Ann")["verdict"] == "CORRECT"
    assert judge.judge("Who?", "Ann", "Bo")["verdict"] == "WRONG"
    [item] = judge._grader.seen[0].items
    assert item.model_dump() == {"n": 1, "question": "Who?", "gold": "Ann", "answer": "It was Ann"}


def test_a_judge_that_fails_gives_no_verdict_and_says_why():
    for output in [RoleFailed("grader", "no JSON"), GraderOutput(grades=[Grade(n=2, correct=True)])]:
        judged = scripted(output).judge("Who?", "Ann", "Ann")
        assert judged["verdict"] is None, output
        assert judged["judge_error"], output


def test_a_name_that_is_no_model():
    with pytest.raises(ModelUnavailable):
        AnswerJudge("gpt")


@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_a_models_calls_are_counted_apart(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with model_server() as server:
        judged = AnswerJudge("openai:any", base_url=server.url).judge(
            "What is it?", "a red kite", "a red kite"
        )
    assert judged["verdict"] == "CORRECT"
    assert judged["usage"][COUNTED_AS]["calls"] == 1
    assert judged["usage"][COUNTED_AS]["input_tokens"] > 0
