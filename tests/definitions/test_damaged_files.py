"""Whole files of every host and format, damaged from seeds: no crash, no silence, no right that was not there.

The rights of a damaged file that still loads lie within those of the sound one: its tools, whom it may spawn, and
whether it spares a question. What is cut off a YAML profile between two lines leaves a sound file of its own, which
nobody can tell from one that was written so; front matter and JSON have an end that can be missed.
"""

from __future__ import annotations

import zlib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from support.damage import DAMAGES, damaged

from shared.definitions.files import MAX_BYTES
from shared.definitions.folder import DefinitionFolder
from shared.definitions.formats import loader_for
from shared.definitions.profile import SubagentProfile
from shared.definitions.profile_file import Reading
from shared.definitions.source import Source
from shared.definitions.tool_names import OWNERS

ROUNDS = 60
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

_BODY = "\nYou do one thing.\n\n---\n\n## How\n\ntools: use them well.\n- Be brief: always.\n"
FILES = {
    ".claude/agents/reader.md": "---\nname: reader\ndescription: Reads. Use when: it rains\n"
    "tools: Read, Grep, Agent(helper, other)\nmodel: sonnet\npermissionMode: plan\n---\n" + _BODY,
    ".claude/agents/denied.md": "---\nname: denied\ndescription: |\n  Reads\n  and more\ndisallowedTools:\n  - Bash\n"
    "  - Write\n  - Edit\nmaxTurns: 5\n---\n" + _BODY,
    ".opencode/agents/plan.md": "---\ndescription: Plans\nmode: subagent\nhidden: true\npermission:\n  edit: deny\n"
    "  bash:\n    '*': ask\n    'git log*': allow\n  webfetch: deny\n---\n" + _BODY,
    ".opencode/agents/switches.md": "---\ndescription: Looks\nmode: primary\ntools:\n  '*': false\n  read: true\n"
    "  grep: true\ntemperature: 0.1\n---\n" + _BODY,
    ".gemini/agents/gem.md": "---\nname: gem\ndescription: Searches\nkind: local\ntools:\n  - read_file\n"
    "  - grep_search\nmax_turns: 7\ntimeout_mins: 3\n---\n" + _BODY,
    ".mamba/agents/snake.md": "---\nname: snake\ndescription: Waits\ntools: [read_file, cli]\n"
    "disallowed-tools: [cli]\npermission-mode: plan\nskills: [a, b]\n---\n" + _BODY,
    ".netclaw/agents/claw.md": "---\nname: claw\ndescription: Finds\ntools: [file_read, web_search]\n"
    "modelRole: Main\ntimeoutSeconds: 60\nvisibility: Internal\nemitStructuredFindings: true\n---\n" + _BODY,
    ".ally/agents/math.md": '---\nname: "math"\ndescription: "Counts"\ntemperature: 0.3\ntools: ["read", "grep"]\n'
    "can_delegate_to_agents: false\ncreated_at: 2024-01-01T00:00:00Z\n---\n" + _BODY,
    ".pi/agents/scout.md": "---\nname: scout\ndescription: Scouts\ntools: read, find, ls\nmodel: haiku\n---\n" + _BODY,
    ".jaato/agents/own.md": "---\nname: own\ndescription: Ours\nplugins: [file_edit]\ntools: [read_file]\n"
    "visibility: internal\nallow_agents: [scout]\nauto_approved: false\n---\n" + _BODY,
    ".jaato/profiles/own.yaml": "name: yam\ndescription: Ours\nplugins: [file_edit, cli]\ntools:\n- read_file\n"
    "- cli\ndisallowed_tools: [cli]\nvisibility: internal\nallow_agents: []\nbudget: {spawns: 0}\n",
    ".jaato/profiles/own.json": '{\n  "name": "jay",\n  "description": "Ours",\n  "plugins": ["file_edit"],\n'
    '  "tools": ["read_file", "list_files"],\n  "allow_agents": [],\n  "visibility": "internal"\n}\n',
}
PUBLIC = sorted(
    path for kind in ("agents", "profiles") for path in (CORPUS / kind).rglob("*") if loader_for(path.name) is not None
)


def rights(profile: SubagentProfile) -> set[str]:
    """The tools that come with the package and that a child of this profile may have."""
    return {
        tool
        for tool, plugin in OWNERS.items()
        if (isinstance(profile.plugins, str) or plugin in profile.plugins)
        and (profile.tools is None or any(fnmatchcase(tool, name) for name in profile.tools))
        and not any(fnmatchcase(tool, name) for name in profile.disallowed_tools)
    }


def is_stopped(profile: SubagentProfile) -> bool:
    """Whether every spawn is refused: it denies a tool under a name that nobody has."""
    denied = (*profile.unmapped_denied, *profile.disallowed_tools)
    return any(name not in OWNERS and not is_pattern(name) for name in denied)


def is_pattern(name: str) -> bool:
    return any(char in name for char in "*?[")


def widened(sound: SubagentProfile, other: SubagentProfile) -> list[str]:
    """Which rights one profile has and the other has not; a misspelt name of an agent gives none."""
    agents, allowed = set(other.allow_agents), set(sound.allow_agents)
    more_agents = any(map(is_pattern, agents - allowed))
    found = {
        "tools": not rights(other) <= rights(sound),
        "allow_agents": "*" not in allowed and more_agents and "spawn_subagent" in rights(other),
        "auto_approved": other.auto_approved and not sound.auto_approved,
    }
    return [name for name, is_wider in found.items() if is_wider and not is_stopped(other)]


class Copies:
    """A folder with one file, read from the disk as a catalogue reads it."""

    def __init__(self, root: Path, path: str) -> None:
        self.file = root / path
        self.file.parent.mkdir(parents=True)

    def reading(self, data: bytes) -> Reading:
        self.file.write_bytes(data)
        folder = DefinitionFolder(self.file.parent, Source("project", None, False))
        folder.look()
        (reading,) = folder.readings
        return reading


def check(copies: Copies, sound: bytes, seed: str) -> str:
    """Damage a file, read it, and compare; returns the kind of damage."""
    base, is_yaml = copies.reading(sound).profile, copies.file.suffix == ".yaml"
    kind, data = damaged(sound, seed)
    reading = copies.reading(data)
    for problem in reading.problems:
        assert str(problem).isprintable(), (seed, kind)
    if reading.profile is None:
        assert reading.problems, f"refused without a word: {seed} {kind}"
    elif base is not None and not (kind == "ravaged" or (is_yaml and kind in ("cut_off", "head_lost"))):
        assert widened(base, reading.profile) == [], (seed, kind, data[:600])
    assert reading.profile is None or len(data) <= MAX_BYTES
    return kind


@pytest.mark.parametrize("path", FILES)
def test_damage_is_told_or_harmless(tmp_path: Path, path: str) -> None:
    copies = Copies(tmp_path, path)
    sound = FILES[path].encode()
    assert copies.reading(sound).profile is not None
    kinds = {check(copies, sound, f"{path} {number}") for number in range(ROUNDS)}
    assert len(kinds) > len(DAMAGES) // 2


@pytest.mark.skipif(not PUBLIC, reason="no corpus of public definition files beside the checkout")
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: str(path.relative_to(CORPUS)))
def test_damage_of_public_files_is_told_or_harmless(tmp_path: Path, path: Path) -> None:
    copies = Copies(tmp_path, f"x/{path.name}")
    sound = path.read_bytes()
    for number in range(10):
        check(copies, sound, f"{zlib.crc32(sound)} {number}")
