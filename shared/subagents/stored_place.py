"""The place of a stored agent in its tree: worked out from the tree itself, never taken from the file.

A store may have come with somebody's project. Depth decides how far an agent may nest, and its path is what people see
who are asked for permission: neither is believed.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.errors import StoreCorrupt, SubagentConfigError
from shared.store.records import AgentRecord
from shared.subagents.agent import PATH_SEPARATOR
from shared.subagents.rights import require_plain_name
from shared.subagents.tree import Tree


@dataclass(frozen=True)
class StoredPlace:
    """Below whom an agent stands, how deep, and how it is called in full."""

    parent_id: str
    depth: int
    path: str


def stored_place(tree: Tree, record: AgentRecord) -> StoredPlace:
    """Where an agent belongs; one whose parent is not there any more stands below the main session.

    So nobody can be above itself. Raises StoreCorrupt for a name or an id that nobody could have been given.
    """
    _require_plausible(tree, record)
    above = tree.get(record.parent_id) if record.parent_id is not None else None
    if above is not None:
        return StoredPlace(above.agent_id, above.depth + 1, f"{above.path}{PATH_SEPARATOR}{record.name}")
    return StoredPlace(tree.root, max(1, record.depth), f"{tree.root}{PATH_SEPARATOR}{record.name}")


def _require_plausible(tree: Tree, record: AgentRecord) -> None:
    try:
        require_plain_name(record.name)
        require_plain_name(record.agent_id)
    except SubagentConfigError as error:
        raise StoreCorrupt(f"the store holds an agent that nobody has made: {error}") from error
    profile, inline = record.spec.get("profile"), record.spec.get("inline")
    if not isinstance(profile, str | None) or not isinstance(inline, dict | None):
        raise StoreCorrupt(f"the store does not say what {record.agent_id} was made from: move it away")
    if record.agent_id == tree.root:
        raise StoreCorrupt(f"the store holds a subagent under the id of the main one ('{tree.root}'): move it away")
