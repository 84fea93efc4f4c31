"""The fields of agents of other hosts that give no rights, and which of ours each one becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.definitions.agent_models import model_and_provider
from shared.definitions.profile_fields import EFFORTS, Unfit, shown
from shared.definitions.source import Severity


@dataclass
class Remark:
    """Something to be said about a field that was taken or left."""

    code: str
    text: str
    level: Severity = "warning"


@dataclass
class Taken:
    """What one field becomes: values of our fields, remarks, and whether the agent is switched off."""

    values: dict[str, Any] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)
    disabled: bool = False


Take = Callable[[str, Any], Taken]


def _as(name: str) -> Take:
    return lambda key, value: Taken({name: value})


def _quietly(key: str, value: Any) -> Taken:
    return Taken()


def _left(why: str, level: Severity = "warning") -> Take:
    return lambda key, value: Taken(remarks=[Remark("field-ignored", f"'{key}' is not taken over: {why}", level)])


def _model(key: str, value: Any) -> Taken:
    found = model_and_provider(value) if isinstance(value, str) else (None, None) if value is None else None
    if found is None:
        text = f"'{key}' names no model that is known here ({shown(value)}): the caller's is used"
        return Taken(remarks=[Remark("model-unknown", text)])
    model, provider = found
    return Taken({name: word for name, word in (("model", model), ("provider", provider)) if word is not None})


def _effort(key: str, value: Any) -> Taken:
    word = value.lower() if isinstance(value, str) else value
    if word is None or word in EFFORTS:
        return Taken({"reasoning_effort": word})
    nearest = {"minimal": "low", "xhigh": "high", "max": "high"}.get(word) if isinstance(word, str) else None
    text = f"'{key}: {shown(value)}' is not known here: {nearest or 'the default'} is used"
    return Taken({"reasoning_effort": nearest}, [Remark("effort-unknown", text)])


def _minutes(key: str, value: Any) -> Taken:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unfit(f"must be a number of minutes, not {shown(value)}")
    return Taken({"timeout_seconds": value * 60})


def _visibility(key: str, value: Any) -> Taken:
    word = {"userfacing": "user-facing", "internal": "internal"}.get(
        value.replace("-", "").replace("_", "").lower() if isinstance(value, str) else ""
    )
    return Taken({"visibility": word or value})


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unfit(f"must be true or false, not {shown(value)}")
    return value


def _hidden(key: str, value: Any) -> Taken:
    return Taken({"visibility": "internal"} if _truth(value) else {})


def _disable(key: str, value: Any) -> Taken:
    return Taken(disabled=_truth(value))


def _mode(key: str, value: Any) -> Taken:
    if value in ("subagent", "all"):
        return Taken()
    text = f"'{key}: {shown(value)}' is no agent to delegate to: it is not offered to a model"
    return Taken({"visibility": "internal"}, [Remark("not-a-subagent", text, "info")])


def _kind(key: str, value: Any) -> Taken:
    if value not in (None, "local"):
        raise Unfit(f"must be local, not {shown(value)}: agents on other machines cannot be run from here")
    return Taken()


def _skills(key: str, value: Any) -> Taken:
    names = [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value
    return Taken({"skills": [] if value is None else names})


def _role(key: str, value: Any) -> Taken:
    if isinstance(value, str) and value.lower() == "main":
        return Taken()
    text = f"'{key}: {shown(value)}': models have no roles here, the caller's is used"
    return Taken(remarks=[Remark("model-unknown", text)])


def _delegates(key: str, value: Any) -> Taken:
    if isinstance(value, bool):
        return Taken({} if value else {"allow_agents": []})
    return Taken({"allow_agents": value})


#: By key without regard to style (`rights_keys.plain`); keys that are spelt like our own fields come before these.
AGENT_FIELDS: Mapping[str, Take] = {
    "model": _model,
    "effort": _effort,
    "reasoningeffort": _effort,
    "maxturns": _as("max_turns"),
    "steps": _as("max_turns"),
    "maxsteps": _as("max_turns"),
    "timeoutseconds": _as("idle_timeout_seconds"),  # netclaw's is the time without any progress
    "timeoutmins": _minutes,
    "visibility": _visibility,
    "hidden": _hidden,
    **dict.fromkeys(("disable", "disabled"), _disable),
    "mode": _mode,
    "kind": _kind,
    "skills": _skills,
    "emitstructuredfindings": _as("emit_findings"),
    "modelrole": _role,
    "candelegatetoagents": _delegates,
    "outputschema": _as("output_schema"),
    **dict.fromkeys(
        (
            "color",
            "emoji",
            "vibe",
            "icon",
            "createdat",
            "updatedat",
            "created",
            "updated",
            "date",
            "version",
            "author",
            "license",
            "tags",
            "keywords",
            "category",
            "displayname",
            "title",
            "metadata",
            "argumenthint",
        ),
        _quietly,
    ),
    **dict.fromkeys(("hooks",), _left("agent files of other hosts run no code here")),
    **dict.fromkeys(("mcpservers",), _left("set up MCP servers in the settings of the mcp plugin")),
    "isolation": _left("the agent works in the caller's folder"),
    "requirements": _left("nothing here checks which tools were used"),
    "visiblefromagents": _left("use allow_agents in the profiles of the callers"),
    **dict.fromkeys(
        ("memory", "background", "initialprompt", "topp", "canseeagents", "usageguidelines", "systeminstructions"),
        _left("there is nothing like it in a profile that is read from markdown", "info"),
    ),
}
