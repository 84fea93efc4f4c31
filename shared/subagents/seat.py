"""Seat: the place of a session among agents, and Caller: a seat that asks for something."""

from __future__ import annotations

from dataclasses import dataclass

from shared.cancel import CancelToken
from shared.session import JaatoSession
from shared.subagents.agent import Subagent
from shared.subagents.inbox import Inbox
from shared.subagents.tree import Tree

KEY = "subagents"
SMALL_PART = 20  # of the context: as much as one announcement may take, however much was asked for


@dataclass(frozen=True)
class Seat:
    """A session's tree, the agent it is (None: the main session), and its inbox."""

    session: JaatoSession
    tree: Tree
    agent: Subagent | None
    inbox: Inbox

    @property
    def id(self) -> str:
        """The id under which its children know it."""
        return self.session.agent_id

    @property
    def depth(self) -> int:
        """0 for the main session."""
        return self.agent.depth if self.agent is not None else 0

    @staticmethod
    def of(session: JaatoSession, *, digest_tokens: int) -> Seat:
        """The seat of a session; one that has none is the main session of a new tree."""
        found = session.extras.get(KEY)
        if isinstance(found, Seat):
            return found
        return Seat.take(session, Tree(session.agent_id), None, digest_tokens=digest_tokens)

    @staticmethod
    def take(session: JaatoSession, tree: Tree, agent: Subagent | None, *, digest_tokens: int) -> Seat:
        """Give a session its seat; of two at once the first counts."""
        inbox = Inbox(tokens=lambda: min(digest_tokens, session.get_context_limit() // SMALL_PART))
        made = Seat(session, tree, agent, inbox)
        seat: Seat = session.extras.setdefault(KEY, made)
        if seat is made:
            session.mail.sources.append(seat.inbox.take)
        return seat


@dataclass(frozen=True)
class Caller:
    """Who asks, the token that ends the asking, and the tool call it asks with (none: the host does)."""

    seat: Seat
    cancel: CancelToken
    call_id: str = ""

    @property
    def session(self) -> JaatoSession:
        """The session that asks."""
        return self.seat.session

    @property
    def tree(self) -> Tree:
        """The agents around it."""
        return self.seat.tree

    @property
    def agent(self) -> Subagent | None:
        """The agent that asks; None for the main session."""
        return self.seat.agent
