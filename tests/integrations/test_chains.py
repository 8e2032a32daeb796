"""The retriever and the instructions, in plain chains and inside graphs."""

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough
from langgraph.graph import START, MessagesState, StateGraph

from memcycle.core.errors import BadInput, StoreBusy
from memcycle.integrations import MemoryRetriever, memory_instructions
from memcycle.integrations.messages import NOTHING, UNAVAILABLE


@pytest.fixture
def filled(memory):
    memory.add("I adopted a cat yesterday.", user="ann", session="main", now="2024-05-08T12:00:00Z")
    return memory


async def test_documents_carry_what_they_rest_on(filled):
    retriever = MemoryRetriever(memory=filled, user="ann", session="main", k=5)
    found = retriever.invoke("When did I adopt a cat?")
    assert [doc.page_content for doc in found] == [
        doc.page_content for doc in await retriever.ainvoke("When did I adopt a cat?")
    ]
    raw = next(doc for doc in found if doc.metadata["granularity"] == "raw")
    fact = next((doc for doc in found if doc.metadata["granularity"] == "fact"), raw)
    assert raw.id == filled.get(raw.id, user="ann").id
    assert (raw.metadata["turns"], raw.metadata["speaker"]) == (["Dmain:1"], "user")
    assert raw.metadata["time"].startswith("2024-05-08T12:00")
    assert 0 < raw.metadata["score"] <= 1
    assert set(fact.metadata) == {"granularity", "turns", "score", "event_time", "speaker", "time"}


def test_a_retriever_for_many_users(filled):
    shared = MemoryRetriever(memory=filled, session="main").configurable_fields(
        user=ConfigurableField(id="user_id")
    )
    assert shared.invoke("cat", {"configurable": {"user_id": "ann"}})
    assert shared.invoke("cat", {"configurable": {"user_id": "bob"}}) == []
    with pytest.raises(BadInput, match="no user"):
        shared.invoke("cat")


def test_a_retriever_raises_what_fails(filled, monkeypatch):
    def fails(*_, **__):
        raise StoreBusy("open elsewhere")

    monkeypatch.setattr(filled, "recall", fails)
    with pytest.raises(StoreBusy):
        MemoryRetriever(memory=filled, user="ann").invoke("cat")


ANN = {"configurable": {"user_id": "ann", "thread_id": "main"}}


@pytest.mark.parametrize(
    "value",
    [
        "When did I adopt a cat?",
        {"question": "When did I adopt a cat?", "other": 1},
        {"input": "When did I adopt a cat?"},
        {"messages": [HumanMessage("When did I adopt a cat?"), AIMessage("Hm.")]},
        [AIMessage("Hi."), HumanMessage("When did I adopt a cat?")],
        HumanMessage("When did I adopt a cat?"),
        ChatPromptTemplate.from_messages([("user", "When did I adopt a cat?")]).invoke({}),
    ],
)
async def test_instructions_from_whatever_a_chain_passes_on(filled, value):
    told = memory_instructions(filled)
    assert "I adopted a cat yesterday." in told.invoke(value, ANN)
    assert "- Wed 2024-05-08 user: I adopted a cat yesterday." in await told.ainvoke(value, ANN)


def test_instructions_in_a_chain(filled):
    seen = []
    prompt = ChatPromptTemplate.from_messages([("system", "{memory}"), ("user", "{question}")])
    model = RunnableLambda(lambda value: seen.append(value.to_string()) or value)
    chain = (
        RunnablePassthrough.assign(memory=memory_instructions(filled))
        | prompt
        | model
        | FakeListChatModel(responses=["7 May."])
    )
    assert chain.invoke({"question": "When did I adopt a cat?"}, ANN).text == "7 May."
    assert "I adopted a cat yesterday." in seen[0]


def test_instructions_in_a_graph_read_its_context(filled):
    told = memory_instructions(filled, scope=lambda context: {"user": context["tenant"], "session": "main"})
    builder = StateGraph(MessagesState, context_schema=dict)
    builder.add_node("prompt", told | (lambda block: {"messages": [AIMessage(block)]}))
    builder.add_edge(START, "prompt")
    out = builder.compile().invoke({"messages": [HumanMessage("My cat?")]}, context={"tenant": "ann"})
    assert "I adopted a cat yesterday." in out["messages"][-1].text


async def test_instructions_tell_nothing_from_unavailable(filled, monkeypatch):
    told = memory_instructions(filled)
    bob = {"configurable": {"user_id": "bob"}}
    assert NOTHING in told.invoke("cat?", bob)
    assert NOTHING in await told.ainvoke({"question": ""}, bob)

    def fails(*_, **__):
        raise StoreBusy("open elsewhere")

    monkeypatch.setattr(filled, "recall", fails)
    monkeypatch.setattr(filled, "arecall", fails)
    assert UNAVAILABLE in told.invoke("cat?", bob)
    assert UNAVAILABLE in await told.ainvoke("cat?", bob)
