"""Matcher: adds the skills that a user's message is about to that message."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence

from shared.errors import JaatoError, SkillError
from shared.plugins.skills.forking import profile_for
from shared.runtime import JaatoRuntime
from shared.session import JaatoSession
from shared.skills.info import SkillInfo
from shared.skills.manager import SkillManager
from shared.skills.matching import best_matches

log = logging.getLogger(__name__)

_QUESTION = """Which of these skills does the message below need? Answer with their names only, separated by commas, at
most {most}; answer "none" if it needs none.

{skills}

<message>
{message}
</message>"""
MAX_MESSAGE = 4_000


class Matcher:
    """Keywords first; a model is asked only where one is configured and keywords find less than they may."""

    def __init__(
        self,
        manager: SkillManager,
        offered: Callable[[], Sequence[SkillInfo]],
        *,
        most: int = 2,
        classifier: str | None = None,
    ) -> None:
        self._manager, self._offered = manager, offered
        self._most, self._classifier = most, classifier

    def extended(self, message: str, runtime: JaatoRuntime | None = None) -> str | None:
        """The message with the matching skills below it; None if none matches."""
        blocks = [block for info in self.matches(message, runtime) if (block := self._block(info, runtime))]
        return "\n\n".join([message, *blocks]) if blocks else None

    def matches(self, message: str, runtime: JaatoRuntime | None = None) -> list[SkillInfo]:
        """The skills that a message is about, best first."""
        offered = list(self._offered())
        found = best_matches(message, offered, most=self._most)
        session = runtime.main_session if runtime is not None else None
        if self._classifier is None or session is None or len(found) >= self._most:
            return found
        rest = [info for info in offered if info not in found]
        return [*found, *self._asked(message, rest, session, self._most - len(found))]

    def _asked(self, message: str, skills: list[SkillInfo], session: JaatoSession, most: int) -> list[SkillInfo]:
        lines = "\n".join(f"- {info.name}: {info.description[:300]}" for info in skills)
        question = _QUESTION.format(most=most, skills=lines, message=message[:MAX_MESSAGE])
        runtime, model = session.runtime, str(self._classifier)
        try:
            agent = runtime.build_agent(session, model=model, provider_name=session.provider_name)
            answer = session.generate(question, purpose="skill-match", caller=agent.caller)
        except JaatoError as error:  # the message goes on without: a match is a convenience
            log.warning("the model '%s' could not be asked which skills fit: %s", model, error)
            return []
        named = {word.strip(" `'\".").lower() for word in re.split(r"[,\n]", answer)}
        return [info for info in skills if info.name.lower() in named][:most]

    def _block(self, info: SkillInfo, runtime: JaatoRuntime | None) -> str | None:
        forks, profile = profile_for(info, runtime)
        if forks:
            whom = f" of the agent '{profile}'" if profile else ""
            return f"[The skill '{info.name}'{whom} fits this message: run it with the tool `skill`.]"
        try:
            skill, text = self._manager.render(info.name, invoked_by="model")
            if info.is_guarded or skill.tools:  # a text alone would be without what belongs to it
                return f"[The skill '{info.name}' fits this message: load it with the tool `skill`.]"
        except SkillError as error:
            log.info("a matching skill is left out: %s", error)
            return None
        return f'<skill name="{info.name}">\n{text.strip()}\n</skill>'
