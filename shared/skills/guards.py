"""SkillGuards: what skills in use forbid and watch — tools they disallow, programs they run around calls."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.cancel import CancelToken
from shared.errors import ToolDenied
from shared.file_tree import TreeRefused, read_tree
from shared.hooks import Agents, Handler, HookBus
from shared.permissions.call import Call
from shared.permissions.rules import Rules
from shared.skills.command_hook import PASSES, HookAnswer, run_hook
from shared.skills.hook_entries import SkillHook, read_hooks
from shared.skills.info import Skill
from shared.skills.tool_rules import denied_rules
from shared.skills.trust import fingerprint

if TYPE_CHECKING:
    from shared.runtime import JaatoRuntime

log = logging.getLogger(__name__)

_SLACK_SECONDS = 5.0  # beyond a program's own time limit, for ending it
_SURE_SECONDS = 120.0  # a refusal takes no time, and must not be skipped on a machine that is very busy
_DOUBTFUL = "doubtful"
Remove = Callable[[], None]


def guards_for(runtime: JaatoRuntime) -> SkillGuards:
    """Guards on the hook bus that a runtime has when a skill is put to use."""
    return SkillGuards(lambda: runtime.hooks, runtime.workspace)


class SkillGuards:
    """Puts the guards of a skill on the hook bus for the agent that uses it, and takes them back."""

    def __init__(self, bus: Callable[[], HookBus], workspace: Path) -> None:
        self._bus, self._workspace = bus, workspace
        self._lock = threading.Lock()
        self._standing: dict[tuple[str, str], tuple[Remove, ...]] = {}

    def begin(self, skill: Skill, agent_id: str = "main", *, until: CancelToken | None = None) -> tuple[str, ...]:
        """Stand guard for an agent, until the skill is put out of use or the token fires; tells what it cannot do."""
        made, problems = self._set_up(skill, agent_id)
        with self._lock:
            former = self._standing.pop((skill.name, agent_id), ())
            if made:
                self._standing[(skill.name, agent_id)] = made
        _all(former)
        if made and until is not None:
            forget = until.on_cancel(partial(self._leave, skill.name, agent_id))
            with self._lock:
                if self._standing.get((skill.name, agent_id)) is made:
                    self._standing[(skill.name, agent_id)] = (*made, forget)
        return problems

    @contextmanager
    def standing(self, skill: Skill, agents: Callable[[str | None], bool]) -> Iterator[None]:
        """Stand guard for some agents while a block of code runs."""
        made, problems = self._set_up(skill, agents)
        for problem in problems:
            log.warning("skill '%s': %s", skill.name, problem)
        try:
            yield
        finally:
            _all(made)

    def end(self, name: str) -> None:
        """Stand guard for a skill no longer, whichever agent uses it."""
        with self._lock:
            keys = [key for key in self._standing if key[0] == name]
            gone = [self._standing.pop(key) for key in keys]
        for each in gone:
            _all(each)

    def end_all(self) -> None:
        """Stand guard for no skill any more."""
        with self._lock:
            gone, self._standing = list(self._standing.values()), {}
        for each in gone:
            _all(each)

    def _leave(self, name: str, agent_id: str) -> None:
        with self._lock:
            gone = self._standing.pop((name, agent_id), ())
        _all(gone)

    def _set_up(self, skill: Skill, agents: Agents) -> tuple[tuple[Remove, ...], tuple[str, ...]]:
        handlers, problems = self._handlers(skill)
        bus = self._bus()
        return tuple(bus.register(at, each, agent_id=agents, timeout=limit) for at, each, limit in handlers), problems

    def _handlers(self, skill: Skill) -> tuple[list[tuple[str, Handler, float | None]], tuple[str, ...]]:
        found: list[tuple[str, Handler, float | None]] = []
        if rules := denied_rules(skill.info.disallowed_tools):
            found.append(("before_tool_call", _Denial(skill.name, rules, self._workspace), _SURE_SECONDS))
        if not skill.info.sets_hooks:
            return found, ()
        hooks, problems = read_hooks(skill.info.details.hooks if skill.info.details is not None else None)
        state = _state(skill.info.folder)
        if state is _DOUBTFUL:
            return found, ("its hooks are not run: its folder holds a link or something else that cannot be checked",)
        for hook in hooks:
            handler = _Watch(skill, hook, self._workspace, state).handler
            found.append((hook.point, handler, hook.timeout_seconds + _SLACK_SECONDS))
        return found, problems


class _Denial:
    """Refuses the tools that a skill disallows."""

    def __init__(self, skill: str, rules: Rules, workspace: Path) -> None:
        self._skill, self._rules, self._workspace = skill, rules, workspace

    def __call__(self, tool_name: str, args: Mapping[str, Any]) -> None:
        if (match := self._rules.denies(Call(tool_name, args, workspace=self._workspace))) is not None:
            raise ToolDenied(
                f"{tool_name} is not to be used with the skill '{self._skill}' ({match.rule}); the user can end "
                f"the skill with: skills deactivate {self._skill}"
            )


class _Watch:
    """One hook of a skill in use; it falls silent when a file of the skill changes."""

    def __init__(self, skill: Skill, hook: SkillHook, workspace: Path, state: str | None) -> None:
        self._skill, self._hook, self._workspace, self._state = skill, hook, workspace, state
        self._lock = threading.Lock()
        self._spent = False

    @property
    def handler(self) -> Handler:
        """What the bus calls."""
        handlers: Mapping[str, Handler] = {
            "before_tool_call": self._before,
            "after_tool_call": self._after,
            "message_received": self._received,
            "message_sending": self._sending,
        }
        return handlers.get(self._hook.point, self._subagent)

    def _before(self, tool_name: str, args: Mapping[str, Any], agent_id: str, cancel: CancelToken) -> None:
        answer = self._about(tool_name, args, agent_id, cancel)
        if answer.refuses:
            raise ToolDenied(
                f"{tool_name} was refused by a hook of the skill '{self._skill.name}'{_behind(answer.text)}"
            )

    def _after(
        self, tool_name: str, args: Mapping[str, Any], result: Any, agent_id: str, cancel: CancelToken
    ) -> str | None:
        answer = self._about(tool_name, args, agent_id, cancel, tool_response=result)
        if not answer.text and not answer.refuses:
            return None
        shown = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
        what = "objects" if answer.refuses else "says"
        return f"{shown}\n\n[A hook of the skill '{self._skill.name}' {what}{_behind(answer.text)}]"

    def _received(self, content: str, conversation_id: str, cancel: CancelToken) -> str | None:
        answer = self._run({"session_id": conversation_id, "prompt": content}, cancel)
        if answer.refuses:
            return f"[A hook of the skill '{self._skill.name}' refused the user's message{_behind(answer.text)}]"
        return f"{content}\n\n{answer.text}" if answer.text else None

    def _sending(self, content: str, conversation_id: str, cancel: CancelToken) -> str:
        self._run({"session_id": conversation_id, "stop_hook_active": False}, cancel)
        return content

    def _subagent(self, cancel: CancelToken, **facts: Any) -> None:
        self._run({"session_id": facts.get("parent_id"), **facts}, cancel)

    def _about(self, tool: str, args: Mapping[str, Any], agent_id: str, cancel: CancelToken, **more: Any) -> HookAnswer:
        name = self._hook.name_for(tool)
        if name is None:
            return PASSES
        given = dict(args)
        if name != tool and isinstance(path := args.get("path"), str):
            given.setdefault("file_path", str(self._workspace / path))  # as scripts for that host expect it
        return self._run({"session_id": agent_id, "tool_name": name, "tool_input": given, **more}, cancel)

    def _run(self, facts: Mapping[str, Any], cancel: CancelToken) -> HookAnswer:
        folder = self._skill.info.folder
        if _state(folder) != self._state:
            log.warning("a file of the skill '%s' has changed, so its hooks are no longer run", self._skill.name)
            return PASSES
        with self._lock:
            spent, self._spent = self._spent, True
        if spent and self._hook.once:
            return PASSES
        return run_hook(self._hook, facts, folder=folder, workspace=self._workspace, cancel=cancel)


def _state(folder: str) -> str | None:
    """The fingerprint of a skill's files; None for one from code."""
    if not folder:
        return None
    try:
        return fingerprint(read_tree(folder))
    except TreeRefused as error:
        log.info("the files of a skill cannot be vouched for: %s", error)
        return _DOUBTFUL


def _behind(text: str) -> str:
    return f": {text}" if text else ""


def _all(removes: tuple[Remove, ...]) -> None:
    for remove in removes:
        remove()
