"""`skills:` in a profile: their bodies are in the child's system prompt from the start."""

from __future__ import annotations

from pathlib import Path

from support.tools import steps

from shared.plugins.subagent import SubagentPlugin, SubagentProfile
from shared.testing import scripted_client


def _skill(workspace: Path, name: str, body: str) -> None:
    folder = workspace / ".jaato" / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: How to write {name}.\n---\n{body}\n")


def test_skills_of_a_profile_are_read_at_the_start(tmp_path: Path) -> None:
    _skill(tmp_path, "haiku", "Five, seven, five.")
    plugin, script = SubagentPlugin(), steps("An old silent pond")
    with scripted_client(script, plugin, workspace=tmp_path) as client:
        plugin.add_profile(SubagentProfile(name="poet", skills=["haiku"], system_instructions="Be calm."))
        answer = plugin.get_executors()["spawn_subagent"]({"task": "Write", "profile": "poet"})
        assert client.get_history() == []
    assert answer["status"] == "completed"
    system = script.requests[0].system
    assert "Five, seven, five." in system
    assert system.index("Be calm.") < system.index("Five, seven, five.")


def test_a_skill_that_is_not_there_is_refused_before_anything_starts(tmp_path: Path) -> None:
    _skill(tmp_path, "haiku", "Five, seven, five.")
    plugin, script = SubagentPlugin(), steps("never")
    with scripted_client(script, plugin, workspace=tmp_path):
        plugin.add_profile(SubagentProfile(name="poet", skills=["haikus"]))
        answer = plugin.get_executors()["spawn_subagent"]({"task": "Write", "profile": "poet"})
        assert plugin.get_executors()["list_active_subagents"]()["count"] == 0
    assert answer["success"] is False
    assert "haiku" in answer["error"]
    assert script.requests == []
