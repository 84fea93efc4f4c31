"""Which agent somebody means: by its id, the short form that the list shows, a unique name, or its conversation."""

from __future__ import annotations

from shared.errors import ConfigError, StoreError, SubagentNotFoundError
from shared.store.reader import Reader
from shared.store.records import AgentRecord, ConversationRecord, RunRecord

_LISTED = 8  # agents that an error names


def short(agent_id: str) -> str:
    """An id without the part that all of them share."""
    return agent_id.removeprefix("subagent_")


def find_agent(reader: Reader, name: str) -> AgentRecord:
    """The agent that is meant; the id of a conversation stands for its main one."""
    if name in {each.id for each in reader.conversations()}:
        return _main(reader, name)
    try:
        found = reader.agent(name)
    except SubagentNotFoundError as error:
        return _by_short_id(reader, name, error)
    return found


def find_run(reader: Reader, name: str) -> tuple[AgentRecord, RunRecord]:
    """The same with its newest run; raises for a main conversation, which has none."""
    agent = find_agent(reader, name)
    run = reader.newest_runs([agent.key]).get(agent.key)
    if agent.is_main or run is None:
        raise ConfigError(
            f"'{name}' is the main agent of {agent.conversation}, not a run: `jaato runs show {agent.conversation}` "
            f"shows it, `jaato chat --resume {agent.conversation}` goes on with it"
        )
    return agent, run


def conversation_of(reader: Reader, agent: AgentRecord) -> ConversationRecord:
    """The conversation that an agent belongs to."""
    found = next((each for each in reader.conversations() if each.id == agent.conversation), None)
    if found is None:
        raise StoreError(f"{agent.agent_id} belongs to {agent.conversation}, which the store {reader.path} has lost")
    return found


def _main(reader: Reader, conversation: str) -> AgentRecord:
    found = next((agent for agent in reader.agents(conversation) if agent.is_main), None)
    if found is None:
        raise SubagentNotFoundError(f"the main agent of {conversation} is not stored: name one of its runs")
    return found


def _by_short_id(reader: Reader, name: str, error: SubagentNotFoundError) -> AgentRecord:
    agents = reader.agents()
    named = [agent for agent in agents if name in (agent.agent_id, agent.name)]
    if any(agent.is_main for agent in named):
        raise SubagentNotFoundError(f"every conversation has a '{name}': use the conversation's id") from error
    if named:
        raise error
    found = [agent for agent in agents if name and not agent.is_main and short(agent.agent_id).startswith(name)]
    if len(found) == 1:
        return found[0]
    likely = found or [agent for agent in agents if not agent.is_main]
    known = ", ".join(short(agent.agent_id) for agent in reversed(likely[-_LISTED:])) or "none yet"
    word = "Which of these" if found else "The newest"
    raise SubagentNotFoundError(f"no single run '{name}' in the store {reader.path}. {word}: {known}") from error
