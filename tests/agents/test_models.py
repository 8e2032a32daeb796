"""Named models, and all roles on them."""

import importlib.util
import sys
from types import ModuleType

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from memcycle.agents.models import open_model
from memcycle.agents.roles import OUTPUTS, Roles
from memcycle.agents.runner import ModelRole
from memcycle.core.errors import BadInput, ModelUnavailable
from memcycle.prompts import PromptSet

URL = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


def test_arguments_win_over_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "env-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://env.test/v1")
    from_env = open_model("openai:small")
    assert (from_env.openai_api_base, from_env.openai_api_key) == ("http://env.test/v1", SecretStr("env-key"))
    explicit = open_model(
        "openai:small", base_url=URL, api_key="own", timeout=5, max_retries=0, temperature=0
    )
    assert (explicit.openai_api_base, explicit.openai_api_key) == (URL, SecretStr("own"))
    assert (explicit.request_timeout, explicit.max_retries, explicit.temperature) == (5, 0, 0)


def test_defaults(monkeypatch):
    monkeypatch.setenv("OPENAI_API_BASE", URL)
    model = open_model("openai:org/some-model:7b", api_key=None)
    assert (model.model_name, model.openai_api_base) == ("org/some-model:7b", URL)
    assert (model.request_timeout, model.max_retries, model.temperature) == (60, 2, None)
    assert model.openai_api_key is not None, "servers of one's own need none, but the client sends one"


@pytest.mark.parametrize(
    ("name", "args", "says"),
    [
        ("openai:gpt", {}, "OPENAI_API_KEY"),
        ("openai:gpt", {"api_key": ""}, "OPENAI_API_KEY"),
        ("gpt4", {}, "openai:NAME"),
        (" ", {}, "PROVIDER:NAME"),
        ("anthropic:", {}, "PROVIDER:NAME"),
        ("openai:", {}, "openai:NAME"),
        ("other:model", {}, "'rules'"),
        ("openai:gpt", {"base_url": "localhost:8000"}, "http://"),
        ("openai:gpt", {"base_url": URL, "max_retries": "many"}, "arguments"),
    ],
)
def test_models_that_cannot_be_opened_say_what_to_do(name, args, says):
    with pytest.raises(ModelUnavailable, match=says) as refused:
        open_model(name, **args)
    assert "\n" not in str(refused.value)


def test_a_bad_argument_does_not_show_the_key():
    with pytest.raises(ModelUnavailable) as refused:
        open_model("openai:gpt", base_url=URL, api_key="sk-hidden", max_retries="many")
    assert "sk-hidden" not in str(refused.value)


@pytest.fixture
def langchain(monkeypatch):
    """Stands in for LangChain's `chat_models`: what it is asked for, and what it answers with."""
    asked = []
    module = ModuleType("langchain.chat_models")
    module.asked, module.answer = asked, FakeListChatModel(responses=["x"])

    def init_chat_model(model, **given):
        asked.append((model, given))
        if isinstance(module.answer, Exception):
            raise module.answer
        return module.answer

    module.init_chat_model = init_chat_model
    monkeypatch.setitem(sys.modules, "langchain", ModuleType("langchain"))
    monkeypatch.setitem(sys.modules, "langchain.chat_models", module)
    return module


@pytest.mark.parametrize("name", ["anthropic:claude-x", "google_genai:g-1", "ollama:llama3:8b", "claude-x"])
def test_other_names_are_opened_by_langchain(langchain, monkeypatch, name):
    monkeypatch.setenv("OPENAI_API_KEY", "env-key")
    monkeypatch.setenv("OPENAI_BASE_URL", URL)
    assert open_model(name, base_url=None, api_key=None) is langchain.answer
    assert langchain.asked == [(name, {})], "what is OpenAI's stays with OpenAI"


def test_other_models_get_what_is_given(langchain):
    given = {"base_url": URL, "api_key": "own", "timeout": 5, "temperature": 0}
    open_model("anthropic:claude-x", **given, max_tokens=None)
    assert langchain.asked == [("anthropic:claude-x", given)]


def test_a_name_without_provider_that_is_openais_is_opened_as_openais(langchain):
    langchain.answer = ChatOpenAI(model="gpt-4o", api_key="k")
    model = open_model("gpt-4o", base_url=URL)
    assert (model.model_name, model.openai_api_base, model.request_timeout) == ("gpt-4o", URL, 60)
    assert model is not langchain.answer


@pytest.mark.skipif(importlib.util.find_spec("langchain") is None, reason="langchain is not installed")
def test_langchain_itself_reads_names_and_refuses_them():
    with pytest.raises(ModelUnavailable, match="'gpt-4o' needs a key: set OPENAI_API_KEY"):
        open_model("gpt-4o")
    assert open_model("gpt-4o", base_url=URL).request_timeout == 60
    azure = open_model(
        "azure_openai:gpt", azure_endpoint="https://a.test", api_version="2024-10-21", api_key="k"
    )
    assert type(azure).__name__ == "AzureChatOpenAI"


@pytest.mark.parametrize(
    ("refusal", "says"),
    [
        (
            ImportError("It requires the langchain-x package: `pip install langchain-x`"),
            "pip install langchain-x",
        ),
        (RuntimeError("no credentials\nat all"), "cannot be opened with these arguments: no credentials$"),
        (ValueError("Unable to infer model provider for model='x:m'"), "unknown model 'x:m'; accepted"),
        (ValueError("region must be given"), "arguments: region must be given"),
    ],
)
def test_what_langchain_refuses_is_told_in_one_line(langchain, refusal, says):
    langchain.answer = refusal
    with pytest.raises(ModelUnavailable, match=says) as refused:
        open_model("x:m")
    assert "\n" not in str(refused.value)


def test_without_langchain_other_models_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain", None)
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(ModelUnavailable, match=r"'anthropic:claude-x' needs .*: pip install langchain "):
        open_model("anthropic:claude-x")
    with pytest.raises(ModelUnavailable, match="unknown model 'claude-x'"):
        open_model("claude-x")
    assert open_model("openai:small", base_url=URL).model_name == "small"


def test_roles_on_models_of_several_providers(langchain):
    roles = Roles.from_model(
        "rules", overrides={"judge": "anthropic:claude-x", "grader": "openai:small"}, api_key="k"
    )
    assert roles.judge.model is langchain.answer
    assert roles.grader.model_name == "small"
    assert langchain.asked == [("anthropic:claude-x", {"api_key": "k"})]


def test_all_roles_share_one_model():
    roles = Roles.from_model("openai:small", base_url=URL)
    made = [getattr(roles, name) for name in roles.names()]
    assert roles.names() == list(OUTPUTS)
    assert set(roles.names()) == set(PromptSet.shipped().roles())
    assert all(isinstance(role, ModelRole) for role in made)
    assert len({id(role.model) for role in made}) == 1
    assert roles.model_name == "openai:small"


def test_overrides_by_role():
    own = FakeListChatModel(responses=["x"])
    roles = Roles.from_model(
        "openai:small",
        overrides={"judge": "openai:large", "answerer": own, "retriever": "rules"},
        base_url=URL,
    )
    assert roles.judge.model.model_name == "large"
    assert roles.answerer.model is own
    assert roles.by_rules("retriever")
    assert roles.constructor.model.model_name == "small"


@pytest.mark.parametrize("name", ["prober", "grader", "repairer", "consolidator"])
def test_a_role_of_the_session_on_a_model_of_its_own(name):
    roles = Roles.from_model("openai:small", overrides={name: "openai:large"}, base_url=URL)
    on_large = [role for role in roles.names() if getattr(roles, role).model_name == "large"]
    assert on_large == [name]
    alone = Roles.from_model("rules", overrides={name: "openai:large"}, base_url=URL)
    assert [role for role in alone.names() if not alone.by_rules(role)] == [name]


def test_a_chat_model_object_is_taken_as_it_is():
    own = FakeListChatModel(responses=["x"])
    roles = Roles.from_model(own)
    assert roles.constructor.model is own
    assert roles.model_name == "FakeListChatModel"


def test_rules_by_name_with_one_role_on_a_model():
    roles = Roles.from_model("rules", overrides={"answerer": FakeListChatModel(responses=["x"])})
    assert roles.model_name == "rules"
    assert [name for name in roles.names() if not roles.by_rules(name)] == ["answerer"]


def test_bad_overrides_and_types():
    with pytest.raises(BadInput, match=r"'proofreader'.*answerer.*prober"):
        Roles.from_model("rules", overrides={"proofreader": "rules"})
    with pytest.raises(ModelUnavailable, match="int"):
        Roles.from_model(7)


def test_own_prompts():
    prompts = PromptSet.shipped().overlay({"guide": "Look at $turns"})
    roles = Roles.from_model("openai:small", prompts=prompts, base_url=URL)
    assert roles.guide.prompt_version() == prompts.version("guide")
