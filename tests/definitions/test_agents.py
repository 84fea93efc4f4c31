"""Markdown agents of every known host become profiles, with no more rights than their authors wrote."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.profile_files import Project, codes

from shared.definitions.agents import read_agent
from shared.definitions.catalogue import ProfileCatalogue
from shared.definitions.profile import SubagentProfile
from shared.definitions.profile_file import Reading
from shared.definitions.source import Source
from shared.errors import ConfigError

EVERYTHING: tuple[Any, Any] = (None, "inherit")
NOTHING: tuple[Any, Any] = ((), ())


def _read(front: str, *, body: str = "Do it.\n", path: str = "/p/.jaato/agents/x.md") -> Reading:
    return read_agent(f"---\n{front}\n---\n{body}", stem="x", source=Source("project", path, False))


def _profile(front: str, **options: str) -> SubagentProfile:
    reading = _read(front, **options)
    assert reading.profile is not None, reading.problems
    return reading.profile


def _agent(rights: str, **options: str) -> SubagentProfile:
    return _profile(f"name: x\ndescription: d\n{rights}", **options)


def _errors(front: str, **options: str) -> list[str]:
    reading = _read(front, **options)
    assert reading.profile is None
    return [problem.code for problem in reading.problems if problem.severity == "error"]


# -- tools: four states, and every shape ---------------------------------------------------------


def test_absent_null_empty_and_unreadable_tools_are_four_things() -> None:
    absent = _agent("")
    assert (absent.tools, absent.plugins) == EVERYTHING
    null = _read("name: x\ndescription: d\ntools:")
    assert null.profile is not None
    assert (null.profile.tools, null.profile.plugins) == NOTHING
    assert codes(null.problems) == ["tools-null"]
    empty = _read("name: x\ndescription: d\ntools: []")
    assert empty.profile is not None
    assert (empty.profile.tools, empty.profile.plugins) == NOTHING
    assert empty.problems == ()
    for wrong in ("5", "true", "[[Read]]", "[Read, 1]", "[Read, null]", "{Read: yes please}", "[{Read: true}]"):
        assert _errors(f"name: x\ndescription: d\ntools: {wrong}") == ["tools-unreadable"], wrong


@pytest.mark.parametrize(
    ("written", "tools", "plugins"),
    [
        ("tools: Read, Grep", ("read_file", "search_files"), ("file_edit",)),
        ("tools: Read Grep", ("read_file", "search_files"), ("file_edit",)),
        ("tools: [Read, Bash]", ("read_file", "cli"), ("file_edit", "cli")),
        ("tools:\n- read\n- bash", ("read_file", "cli"), ("file_edit", "cli")),
        ("tools: ['Read, Grep', LS]", ("read_file", "search_files", "list_files"), ("file_edit",)),
        ("Tools: Read", ("read_file",), ("file_edit",)),
        ("allowedTools: [Read]", ("read_file",), ("file_edit",)),
        ("allowed-tools: Read, WebSearch", ("read_file", "web_search"), ("file_edit", "web_search")),
        ("tools: Read, Bash\nallowedTools: Read, Grep", ("read_file",), ("file_edit",)),
        ("tools: read_file, cli", ("read_file", "cli"), ("file_edit", "cli")),
        ('tools: "*"', None, "inherit"),
        ("tools: ['*']", None, "inherit"),
    ],
)
def test_shapes_of_tools(written: str, tools: Any, plugins: Any) -> None:
    profile = _agent(written)
    assert (profile.tools, profile.plugins) == (tools, plugins)


def test_a_part_of_a_tool_is_never_widened_to_all_of_it() -> None:
    reading = _read("name: x\ndescription: d\ntools: Read, Bash(git add *, git commit *)")
    assert reading.profile is not None
    assert reading.profile.tools == ("read_file",)
    assert reading.profile.unmapped_tools == ("Bash(git add *, git commit *)",)
    assert codes(reading.problems) == ["tool-pattern"]
    denied = _agent("disallowedTools: Bash(rm *)")
    assert denied.disallowed_tools == ("cli",)
    assert _agent("tools: Read, '*'").tools == ("read_file",)


def test_names_of_agents_in_brackets_limit_whom_it_may_spawn() -> None:
    profile = _agent("tools: Read, Agent(reviewer, tester)")
    assert profile.allow_agents == ("reviewer", "tester")
    assert "spawn_subagent" in (profile.tools or ())
    assert profile.plugins == ("file_edit", "subagent")


def test_unmapped_names_are_kept_and_give_nothing() -> None:
    profile = _agent("tools: Read, Quux, mcp__github__search, mcp__db, WebFetch")
    assert profile.tools == ("read_file",)
    assert profile.unmapped_tools == ("Quux", "github__search", "db__*", "WebFetch")


def test_denied_tools() -> None:
    profile = _agent("disallowedTools: Write, Edit, mcp__github, WebFetch, mcp__db__drop")
    assert (profile.tools, profile.plugins) == EVERYTHING
    assert profile.disallowed_tools == ("write_file", "edit_file", "github__*", "db__dro[p]")
    assert _agent("tools: Read, Bash\ndisallowed-tools: [Bash]").plugins == ("file_edit",)
    assert _agent("disallowedTools: Quux").unmapped_denied == ("Quux",)
    assert _errors("name: x\ndisallowedTools:") == ["null-value"]
    assert _errors("name: x\ndisallowedTools: {a: b}") == ["tools-unreadable"]
    assert _errors("name: x\ndisallowedTools: 'Bash (, ('") == ["tools-unreadable"]


@pytest.mark.parametrize(
    "key", ["tols: Read", "tool: Read", "alowedTools: Read", "dissallowedTools: Bash", "toolz: [Read]"]
)
def test_a_misspelt_right_is_not_left_out(key: str) -> None:
    reading = _read(f"name: x\ndescription: d\n{key}")
    assert reading.profile is None
    assert "did you mean" in reading.problems[0].text


def test_an_unknown_key_that_holds_tools_is_not_left_out() -> None:
    assert _errors("name: x\ndescription: d\nabilities: Read, Bash") == ["unknown-field"]
    assert _profile("name: x\ndescription: d\nabilities: Read, Bash\ntools: Read").tools == ("read_file",)
    assert _profile("name: x\ndescription: d\nabilities: cooking, fishing").tools is None


@pytest.mark.parametrize(
    ("mode", "denied", "said"),
    [
        ("default", (), []),
        ("plan", ("write_file", "edit_file", "undo_edit", "cli"), []),
        ("bypassPermissions", (), ["permission-mode"]),
        ("acceptEdits", (), ["permission-mode"]),
    ],
)
@pytest.mark.parametrize("key", ["permissionMode", "permission-mode"])
def test_permission_modes_never_widen(key: str, mode: str, denied: tuple[str, ...], said: list[str]) -> None:
    reading = _read(f"name: x\ndescription: d\n{key}: {mode}", path="/p/.claude/agents/x.md")
    assert reading.profile is not None
    assert (reading.profile.disallowed_tools, codes(reading.problems)) == (denied, said)
    assert not reading.profile.auto_approved
    assert _errors(f"name: x\n{key}: plam") == ["wrong-value"]


# -- opencode ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "tools", "denied", "unmapped"),
    [
        ("tools: {write: false, bash: false}", None, {"write_file", "cli"}, ()),
        ("tools: {'*': false, read: true, github-triage: true}", ("read_file",), set(), ("github-triage",)),
        ("tools: {'*': false}", (), set(), ()),
        ("tools: {bash: false, '*': true}", None, set(), ()),
        ("tools: {'github*': false}", None, {"github*"}, ()),
        ("permission: {edit: deny}", None, {"write_file", "edit_file"}, ()),
        ("permission: {edit: ask, bash: ask}", None, {"write_file", "edit_file", "cli"}, ()),
        ("permission: {bash: {'*': ask, 'git diff': allow}}", None, {"cli"}, ()),
        ("permission: {bash: {'*': allow}}", None, set(), ()),
        ("permission: {'*': deny, read: allow, grep: allow}", ("read_file", "search_files"), set(), ()),
        ("permission: {read: allow, '*': deny}", (), set(), ()),
        ("permission: deny", (), set(), ()),
        ("permission: {webfetch: deny, external_directory: ask}", None, set(), ()),
        ("permission: {'*': deny, bash: allow}\ntools: {bash: false}", ("cli",), {"cli"}, ()),
        ("permissions: {allow: [Read, Bash], deny: [Bash]}", ("read_file", "cli"), {"cli"}, ()),
        ("permissions: {allow: [Read], ask: [Write]}", ("read_file",), {"write_file"}, ()),
    ],
)
def test_rules_by_tool(written: str, tools: Any, denied: set[str], unmapped: tuple[str, ...]) -> None:
    profile = _agent(f"mode: subagent\n{written}")
    assert profile.tools == tools
    assert set(profile.disallowed_tools) == denied
    assert profile.unmapped_tools == unmapped


@pytest.mark.parametrize(
    "wrong",
    [
        "permission:",
        "permission: {}",
        "permission: [a]",
        "permission: {bash: maybe}",
        "permission: {bash: {}}",
        "permission: {bash: {x: 1}}",
        "permission: {bash: true}",
        "permissions: {allow: allow}",
    ],
)
def test_permissions_that_cannot_be_read_are_refused(wrong: str) -> None:
    assert _errors(f"name: x\ndescription: d\n{wrong}") == ["tools-unreadable"]


def test_opencode_files_are_named_by_their_file_and_may_be_hidden_or_switched_off() -> None:
    path = "/p/.opencode/agents/x.md"
    reading = _read("description: d\nmode: subagent\nsteps: 7\nmodel: anthropic/claude-x\ntop_p: 0.5", path=path)
    profile = reading.profile
    assert profile is not None
    assert (profile.name, profile.max_turns, profile.model, profile.provider) == ("x", 7, "claude-x", "anthropic")
    assert codes(reading.problems) == ["field-ignored", "name-missing"]
    assert _profile("description: d\nhidden: true", path=path).visibility == "internal"
    assert _profile("description: d\nmode: primary", path=path).visibility == "internal"
    off = _read("description: d\ndisable: true", path=path)
    assert (off.profile, codes(off.problems)) == (None, ["name-missing", "disabled"])


def test_a_switched_off_agent_holds_its_name(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("r.md", "---\nname: r\ndescription: d\ndisable: true\n---\nb", into=".jaato/agents")
    project.write("r.yaml", "name: r\ndescription: d", into=str(project.home / "profiles"))
    assert project.catalogue().find("r") is None
    with pytest.raises(ConfigError, match="switched off"):
        project.catalogue().get("r")


# -- the other dialects --------------------------------------------------------------------------


def test_claude() -> None:
    profile = _profile(
        "name: rev\ndescription: d\ntools: Read\nmodel: sonnet\nmaxTurns: 4\neffort: max\nskills: [a, b]\ncolor: red\n"
        "initialPrompt: hi\nbackground: true",
        path="/p/.claude/agents/sub/rev.md",
    )
    assert (profile.name, profile.provider, profile.max_turns) == ("rev", "anthropic", 4)
    assert profile.model is not None
    assert profile.model.startswith("claude-sonnet")
    assert (profile.reasoning_effort, profile.skills) == ("high", ("a", "b"))
    assert _profile("name: x\ndescription: d\nmodel: inherit").model is None


def test_hooks_and_servers_in_an_agent_are_never_run() -> None:
    reading = _read("name: x\ndescription: d\nhooks: {a: b}\nmcpServers: [c]\nisolation: worktree")
    assert [(problem.code, problem.severity) for problem in reading.problems] == [("field-ignored", "warning")] * 3


def test_mamba_means_no_tools_by_saying_nothing() -> None:
    path = "/p/.mamba/agents/x.md"
    profile = _profile("name: x\ndescription: d", path=path)
    assert (profile.tools, profile.plugins, profile.max_turns) == ((), (), 50)
    assert _profile("name: x\ndescription: d\ntools: [Read]\nmax-turns: 3", path=path).max_turns == 3
    assert _errors("description: d", path=path) == ["name-missing"]
    assert _profile("name: x\ndescription: d\ndisallowed-tools: [Bash]").tools == (), "told by its fields"


def test_netclaw() -> None:
    path = "/home/me/.netclaw/agents/x.md"
    profile = _profile(
        "name: research\ndescription: d\ntools: [web_search, file_read]\nmodelRole: Main\ntimeoutSeconds: 90\n"
        "visibility: UserFacing\nemitStructuredFindings: true",
        path=path,
    )
    assert profile.tools == ("web_search", "read_file")
    assert (profile.idle_timeout_seconds, profile.timeout_seconds) == (90.0, None)
    assert (profile.visibility, profile.emit_findings, profile.output_schema) == ("user-facing", True, None)
    assert _profile("name: x\ndescription: d\nvisibility: internal", path=path).visibility == "internal"
    assert _profile("name: x\ndescription: d", path=path).tools == ()
    assert _errors("name: x", path=path) == ["description-missing"]
    assert _errors("description: d", path=path) == ["name-missing"]
    assert _errors("name: x\ndescription: d", path=path, body="\n \n") == ["body-empty"]
    assert _errors("name: x\ndescription: d\nemitStructuredFindings: maybe", path=path) == ["wrong-value"]
    assert _errors("name: x\ndescription: d\nvisibility: secret", path=path) == ["wrong-value"]


def test_gemini() -> None:
    path = "/p/.gemini/agents/x.md"
    profile = _profile(
        "name: x_y\ndescription: d\nkind: local\ntools: [read_file, run_shell_command, mcp_*]\ntimeout_mins: 5\n"
        "max_turns: 12\ntemperature: 0.4\nmodel: gemini-2.5-pro",
        path=path,
    )
    assert profile.tools == ("read_file", "cli")
    assert profile.unmapped_tools == ("*__*",)
    assert (profile.timeout_seconds, profile.max_turns, profile.temperature) == (300.0, 12, 0.4)
    assert (profile.model, profile.provider) == ("gemini-2.5-pro", "google_genai")
    assert _profile("name: x\ndescription: d", path=path).max_turns == 30
    assert _errors("name: x\ndescription: d\nkind: remote", path=path) == ["wrong-value"]
    assert _errors("name: x\ndescription: d\ntimeout_mins: soon", path=path) == ["wrong-value"]


def test_ally() -> None:
    profile = _profile(
        'name: "math"\ndescription: "d"\ntemperature: 0.3\nreasoning_effort: "medium"\ntools: ["read", "add"]\n'
        'usage_guidelines: |\n  **When:** numbers\ncan_delegate_to_agents: false\ncreated_at: "2024-01-01T00:00:00Z"',
        path="/home/me/.ally/agents/math.md",
    )
    assert (profile.tools, profile.unmapped_tools) == (("read_file",), ("add",))
    assert (profile.temperature, profile.reasoning_effort, profile.allow_agents) == (0.3, "medium", ())


def test_pi() -> None:
    profile = _agent("tools: read, grep, find, ls, bash", path="/p/.pi/agents/x.md")
    assert profile.tools == ("read_file", "search_files", "list_files", "cli")


def test_our_own_fields_in_markdown() -> None:
    profile = _profile(
        "name: x\ndescription: d\nplugins: [cli]\nmax_turns: 3\nbudget: {total_tokens: 5}\nprovider: script\nmodel: m"
    )
    assert (profile.plugins, profile.tools, profile.max_turns) == (("cli",), None, 3)
    assert (profile.model, profile.provider) == ("m", "script")
    assert profile.budget is not None
    assert profile.budget.total_tokens == 5


# -- the rest of a file --------------------------------------------------------------------------


def test_the_body_is_the_instructions_as_written() -> None:
    body = "\n\n  # Title $ARGUMENTS ${cwd}\r\n\ttext  \n---\nmore\n\n"
    assert _profile("name: x\ndescription: d", body=body).system_instructions == body.lstrip("\r\n").rstrip()
    empty = _read("name: x\ndescription: d", body="")
    assert empty.profile is not None
    assert empty.profile.system_instructions is None
    assert codes(empty.problems) == ["body-empty"]


@pytest.mark.parametrize(
    ("front", "code", "line"),
    [
        ("description: d", "name-missing", None),
        ("name: Big Name\ndescription: d", "name-format", 2),
        ("name: x", "description-missing", None),
        (f"name: x\ndescription: {'d' * 1025}", "description-too-long", 3),
        ("name: x\ndescription: d\nmodel: [a, b]", "model-unknown", 4),
        ("name: x\ndescription: d\nmodel: ours | 'theirs'", "model-unknown", 4),
        ("name: x\ndescription: d\nmodel: nowhere/model", "model-unknown", 4),
        ("name: x\ndescription: on: fire", "yaml-repaired:description", 3),
    ],
)
def test_what_is_tolerated_is_said(front: str, code: str, line: int | None) -> None:
    reading = _read(front)
    assert reading.profile is not None
    assert [(problem.code, problem.line, problem.severity) for problem in reading.problems] == [(code, line, "warning")]


@pytest.mark.parametrize(
    ("front", "code"),
    [
        ("name: a/b\ndescription: d", "name-unsafe"),
        ("name: ..\ndescription: d", "name-unsafe"),
        ("name: 1.10\ndescription: d", "wrong-value"),
        ("name: on\ndescription: d", "wrong-value"),
        ("name: x\ndescription: [d]", "wrong-value"),
        ("name: x\ndescription: d\nmaxTurns: many", "wrong-value"),
        ("name: x\ndescription: d\nmaxTurns: 3\nsteps: 4", "duplicate-key"),
        ("name: x\ndescription: d\nskills: 5", "wrong-value"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(front: str, code: str) -> None:
    reading = _read(front)
    assert reading.profile is None
    found = [problem for problem in reading.problems if problem.severity == "error"]
    assert [problem.code for problem in found] == [code]
    assert found[0].line is not None


@pytest.mark.parametrize(
    "line",
    [
        "can_delegate_to_aents: false",
        "allow_agent: []",
        "hiden: true",
        "visibilty: internal",
        "plugin: [file_edit]",
        "denied: Bash",
        "disallowed: [Bash]",
        "forbidden: Write",
        "bash: {'*': ask}",
        "p\u202eermission: {edit: deny}",
        "col\ufeffor: red",
    ],
)
def test_a_field_that_may_be_meant_to_take_something_away_is_not_left_out(line: str) -> None:
    assert _errors(f"name: x\ndescription: d\ntools: Read, Bash\n{line}") == ["unknown-field"]


def test_a_name_with_invisible_characters_is_no_tool() -> None:
    assert _errors("name: x\ndescription: d\ntools: [Read, 'Ba\u200bsh']") == ["tools-unreadable"]
    assert _errors("name: x\ndescription: d\ndisallowedTools: ['Ba\u200bsh']") == ["tools-unreadable"]


def test_whom_an_agent_may_spawn_is_named_and_no_pattern() -> None:
    assert _errors("name: x\ndescription: d\ntools: Read, Agent(?elper)") == ["tools-unreadable"]
    assert _agent("tools: Read, Agent(helper, other)").allow_agents == ("helper", "other")


def test_disabled_says_the_same_as_disable() -> None:
    assert _read("name: x\ndescription: d\ndisabled: true").profile is None
    assert _read("name: x\ndescription: d\ndisabled: false").profile is not None


@pytest.mark.parametrize(
    "line", ["toolsz Read, Grep", "tool Read", "too\ufeffls: Read", "tools8 Read, Grep", "disallowedTool Bash"]
)
def test_what_a_mended_text_swallows_is_no_rights_key_with_a_slip(line: str) -> None:
    assert _errors(f"name: x\ndescription: Use when: it rains\n{line}\nmodel: sonnet") == ["yaml-unreadable"]


# -- folders -------------------------------------------------------------------------------------

_FILE = "---\nname: {0}\ndescription: from {0}\n---\nbody\n"


def test_folders_of_other_hosts_are_read_only_when_asked_for(tmp_path: Path) -> None:
    project = Project(tmp_path)
    far = tmp_path / "far"
    places = {
        "claude": [".claude/agents/deep", str(far / ".claude/agents")],
        "agents": [".agents"],
        "opencode": [".opencode/agents", ".opencode/agent", str(far / ".config/opencode/agents")],
        "gemini": [".gemini/agents"],
        "mamba": [".mamba/agents", str(far / ".mamba/agents")],
        "netclaw": [str(far / ".netclaw/agents")],
        "ally": [str(far / ".ally/agents")],
        "pi": [".pi/agents"],
    }
    project.write("own.md", _FILE.format("own"), into=".jaato/agents")
    for host, folders in places.items():
        for index, folder in enumerate(folders):
            project.write("a.md", _FILE.format(f"{host}-{index}"), into=folder)

    def names(*hosts: str) -> set[str]:
        found = project.catalogue(agent_dirs=hosts, user_home=far).list()
        return {profile.name for profile in found if profile.source.kind != "builtin"}

    assert names() == {"own"}
    for host, folders in places.items():
        assert names(host) == {"own", *(f"{host}-{index}" for index in range(len(folders)))}
    assert len(names(*places)) == 1 + sum(map(len, places.values()))
    with pytest.raises(ConfigError, match="claude"):
        names("claud")


_LEVEL = "---\nname: {name}\ndescription: from {level}\n---\nbody\n"


def _levels(tmp_path: Path, *, git: str | None, home: str | None = None) -> list[tuple[str, str]]:
    """What is found from work/inner/deep, with a file at every level, a repository and a home at one of them each."""
    work = tmp_path / "work"
    for level in (".", "inner", "inner/deep"):
        for host in (".claude", ".opencode", ".gemini"):
            folder = work / level / host / "agents"
            folder.mkdir(parents=True)
            for name in ("same", f"{host[1:]}-{Path(level).name or 'work'}"):
                given = {"name": f"{host[1:]}-same" if name == "same" else name, "level": level}
                (folder / f"{name}.md").write_text(_LEVEL.format(**given))
    if git is not None:
        (work / git / ".git").mkdir()
    far = work / home if home is not None else tmp_path / "far"
    catalogue = ProfileCatalogue(
        work / "inner/deep", home=tmp_path / "own", user_home=far, agent_dirs=["claude", "opencode", "gemini"]
    )
    found = catalogue.list()
    return [(each.name, each.description) for each in found if each.source.kind != "builtin"]


def test_hosts_that_climb_are_followed_to_the_root_of_the_repository_and_nearer_wins(tmp_path: Path) -> None:
    assert _levels(tmp_path, git="inner") == [
        ("claude-deep", "from inner/deep"),
        ("claude-inner", "from inner"),
        ("claude-same", "from inner/deep"),
        ("gemini-deep", "from inner/deep"),
        ("gemini-same", "from inner/deep"),
        ("opencode-deep", "from inner/deep"),
        ("opencode-inner", "from inner"),
        ("opencode-same", "from inner/deep"),
    ]


@pytest.mark.parametrize(
    ("git", "home", "levels"),
    [
        (".", None, {".", "inner", "inner/deep"}),
        ("inner/deep", None, {"inner/deep"}),
        (None, None, {"inner/deep"}),
        (".", "inner/deep", {"inner/deep"}),
        (".", "inner", {"inner/deep", "inner"}),  # from the home, as the user's own
    ],
)
def test_without_a_repository_or_beyond_the_home_nobody_climbs(
    tmp_path: Path, git: str | None, home: str | None, levels: set[str]
) -> None:
    found = {text.removeprefix("from ") for name, text in _levels(tmp_path, git=git, home=home) if "claude" in name}
    assert found == levels


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_that_somebody_else_put_above_the_project_is_not_climbed_to(tmp_path: Path) -> None:
    (tmp_path / "work/.claude/agents").mkdir(parents=True)
    (tmp_path / "work/.claude/agents/x.md").write_text(_FILE.format("planted"))
    (tmp_path / "work/.git").mkdir()
    os.chown(tmp_path / "work/.git", 12345, -1)
    (tmp_path / "work/inner").mkdir()
    catalogue = ProfileCatalogue(
        tmp_path / "work/inner", home=tmp_path / "own", user_home=tmp_path / "far", agent_dirs=["claude"]
    )
    assert catalogue.find("planted") is None


def test_links_are_measured_against_the_folder_they_were_found_from(tmp_path: Path) -> None:
    (tmp_path / "work/inner").mkdir(parents=True)
    (tmp_path / "work/.git").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x.md").write_text(_FILE.format("outside"))
    (tmp_path / "work/.claude").mkdir()
    (tmp_path / "work/.claude/agents").symlink_to(tmp_path / "outside")
    catalogue = ProfileCatalogue(
        tmp_path / "work/inner", home=tmp_path / "own", user_home=tmp_path / "far", agent_dirs=["claude"]
    )
    assert catalogue.find("outside") is None
    assert codes(catalogue.problems()) == ["link-outside"]


def test_agents_of_other_hosts_are_weaker_than_ours_and_never_trusted(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("r.md", "---\nname: r\ndescription: ours\n---\nb", into=str(project.home / "agents"))
    project.write("r.md", "---\nname: r\ndescription: theirs\n---\nb", into=".claude/agents")
    project.write("s.md", "---\nname: s\ndescription: d\nauto_approved: true\n---\nb", into=".claude/agents")
    catalogue = project.catalogue(agent_dirs=["claude"], trust_workspace=True, user_home=tmp_path / "far")
    assert catalogue.get("r").description == "ours"
    assert [loser.name for loser in catalogue.shadowed] == ["r"]
    theirs = catalogue.get("s")
    assert (theirs.auto_approved, theirs.source.trusted) == (False, False)


def test_changes_deep_inside_are_noticed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    catalogue = project.catalogue(agent_dirs=["claude"], user_home=tmp_path / "far")
    assert catalogue.find("deep") is None
    path = project.write("a.md", _FILE.format("deep"), into=".claude/agents/one/two")
    assert catalogue.get("deep").description == "from deep"
    path.write_text(_FILE.format("other"))
    assert (catalogue.find("deep"), catalogue.get("other").name) == (None, "other")
    os.unlink(path)
    assert catalogue.find("other") is None


def test_links_out_of_the_project_are_refused(tmp_path: Path) -> None:
    project = Project(tmp_path)
    outside = tmp_path / "outside.md"
    outside.write_text(_FILE.format("outside"))
    folder = project.write("a.md", _FILE.format("inside"), into=".claude/agents").parent
    (folder / "link.md").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    catalogue = project.catalogue(agent_dirs=["claude"], user_home=tmp_path / "far")
    assert catalogue.find("outside") is None
    assert catalogue.find("inside") is not None
    assert codes(catalogue.problems()) == ["link-outside"]


def test_a_readme_is_no_agent_and_other_pages_are_said_to_be_none(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("README.md", "# Read me", into=".jaato/agents")
    project.write("NOTES.md", "# Notes", into=".jaato/agents")
    problems = project.catalogue().problems()
    assert [(problem.code, problem.severity) for problem in problems] == [("no-frontmatter", "info")]
