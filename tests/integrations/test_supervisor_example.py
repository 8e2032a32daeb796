"""The worked example: two agents, one user's shared memory, a private workspace each."""

from langgraph.checkpoint.memory import InMemorySaver

from examples.supervisor import Caller, build_desk
from memcycle.core.scope import Scope
from tests.integrations.conftest import AGENT, prompt, thread

ANN = Caller("ann")


def texts(memory, workspace):
    return [entry.text for entry in memory.memories(user="ann", workspace=workspace, granularity="raw")]


async def test_two_agents_share_a_users_memory_and_keep_a_workspace_each(memory, server, chat_model):
    server.script(AGENT, "A train, then.", "Rice without nuts.", "By train.")
    graph = build_desk(chat_model, memory).compile(checkpointer=InMemorySaver())
    assert {"recall:plan", "travel:model", "kitchen:model", "remember:stage"} <= set(
        graph.get_graph(xray=True).nodes
    )

    graph.invoke({"ask": "I never fly and I hate nuts."}, thread("one"), context=ANN)
    out = await graph.ainvoke({"ask": "What can I cook without nuts?"}, thread("two"), context=ANN)
    assert out["answer"] == "Rice without nuts."
    assert "- I never fly and I hate nuts." in prompt(server)
    assert "A train, then." not in prompt(server)
    graph.invoke({"ask": "How do I get to Graz?"}, thread("two"), context=ANN)
    assert "A train, then." in prompt(server)
    assert "Rice" not in prompt(server)

    assert texts(memory, "shared") == [
        "I never fly and I hate nuts.", "What can I cook without nuts?", "How do I get to Graz?",
    ]  # fmt: skip
    assert texts(memory, "kitchen") == ["What can I cook without nuts?", "Rice without nuts."]
    assert "Rice without nuts." not in texts(memory, "travel")
    sessions = memory.bank.sessions(Scope(user="ann", workspace="travel"))
    assert [info.session for info in sessions] == ["one", "two"]
