"""Reading a JSON answer that comes from outside; anything doubtful is an error, and so a denial."""

from __future__ import annotations

import json

from shared.errors import ConfigError
from shared.permissions.channel import ChannelFailed
from shared.permissions.request import Decision

MAX_REPLY = 64_000


def read_reply(data: bytes, request_id: str) -> Decision:
    """The decision in `{"decision": "allow" | "deny" | …, "request_id"?, "reason"?}`."""
    if len(data) > MAX_REPLY:
        raise ChannelFailed("the answer is too long")
    try:
        reply = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ChannelFailed("the answer is not valid JSON") from error
    if not isinstance(reply, dict) or not isinstance(reply.get("decision"), str):
        raise ChannelFailed('the answer needs a "decision", such as "allow" or "deny"')
    if reply.get("request_id", reply.get("id", request_id)) != request_id:
        raise ChannelFailed("the answer is for another request")
    comment = reply.get("reason", "")
    try:
        return Decision.parse(reply["decision"], comment=comment if isinstance(comment, str) else "")
    except ConfigError as error:
        raise ChannelFailed(str(error)) from error
