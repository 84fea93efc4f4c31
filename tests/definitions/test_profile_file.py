"""Profile files: what loads, what is refused, and how it is explained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.profile_files import Project, codes, lint_text

from shared.definitions.lint import lint
from shared.definitions.profile_file import NO_TEMPERATURE
from shared.providers import BUILTIN, get_provider
from shared.providers.base import ProviderConfig


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


FULL: dict[str, Any] = {
    "$schema": "profile.schema.json",
    "name": "full",
    "description": "Everything at once",
    "plugins": ["cli", "file_edit"],
    "tools": ["cli", "read_*"],
    "disallowed_tools": ["write_file"],
    "plugin_configs": {"references": {"preselected": ["adr-001"], "exclude_tools": ["selectReferences"]}},
    "system_instructions": "Be brief.",
    "skills": ["review"],
    "model": "gemini-2.5-flash",
    "provider": "google_genai",
    "fallback_models": ["anthropic:claude-x"],
    "temperature": 0.2,
    "reasoning_effort": "low",
    "max_output_tokens": 2000,
    "max_turns": 15,
    "timeout_seconds": 60,
    "idle_timeout_seconds": 30,
    "budget": {"total_tokens": 1000, "cost_usd": 0.5, "tool_calls": 3, "spawns": 0},
    "auto_approved": True,
    "visibility": "internal",
    "output_schema": {"type": "object", "properties": {"date": {"type": "string"}}},
    "gc": {"type": "hybrid", "threshold_percent": 80.0, "preserve_recent_turns": 5, "summarize_middle_turns": 10},
    "icon": ["/-\\", "| |", "\\-/"],
    "icon_name": "gear",
    "allow_agents": ["summarizer"],
    "max_children": 2,
    "max_depth": 3,
}


@pytest.mark.parametrize("suffix", [".json", ".yaml", ".yml", ".YAML", ".Json"])
def test_every_field_comes_through_in_every_format(project: Project, suffix: str) -> None:
    text = json.dumps(FULL) if suffix.lower() == ".json" else yaml.safe_dump(FULL)
    project.write(f"full{suffix}", text)
    catalogue = project.catalogue(trust_workspace=True)
    profile = catalogue.get("full").as_dict()
    assert catalogue.problems() == ()
    for field, value in FULL.items():
        if field not in ("$schema", "gc"):
            assert profile[field] == value, field
    assert profile["gc"] == FULL["gc"] | {"notify_on_gc": True, "max_turns": None, "plugin_config": {}}


def test_the_name_is_the_stem_unless_the_file_says_another(project: Project) -> None:
    project.write("by-stem.yaml", "description: d")
    project.write("other.json", {"name": "declared", "description": "d"})
    names = {profile.name for profile in project.catalogue().list() if profile.source.kind == "project"}
    assert names == {"by-stem", "declared"}


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_bom_and_line_ends_do_not_matter(project: Project, ends: str, mark: bytes) -> None:
    text = ends.join(["name: wind", "description: d", "system_instructions: |", "  one", "  two", ""])
    project.write("a.yaml", mark + text.encode())
    project.write("b.json", mark + ends.join(['{"name": "rain",', '"description": "d"}']).encode())
    catalogue = project.catalogue()
    assert catalogue.get("wind").system_instructions == "one\ntwo\n"
    assert catalogue.get("rain").description == "d"


def test_dates_stay_text_and_versions_in_quotes_too(project: Project) -> None:
    project.write("a.yaml", "description: 2026-01-01\nplugin_configs: {cli: {since: 2026-01-01 10:00:00, mark: =}}")
    profile = project.catalogue().get("a")
    assert profile.description == "2026-01-01"
    assert profile.plugin_configs == {"cli": {"since": "2026-01-01 10:00:00", "mark": "="}}


def test_keys_are_text_as_they_were_written(project: Project) -> None:
    project.write("a.yaml", "plugin_configs: {cli: {on: 1, 007: 2, ~: 3, 1.0: 4}}")
    assert project.catalogue().get("a").plugin_configs == {"cli": {"on": 1, "007": 2, "~": 3, "1.0": 4}}


BROKEN: dict[str, tuple[str | bytes, int | None, str, str]] = {
    # file: content, line, code, part of the text
    "colon.yaml": ("name: a\ndescription: Use this: always\n", 2, "yaml-unreadable", "in quotes"),
    "tab.yaml": ("name: a\n\tdescription: x\n", 2, "yaml-unreadable", "indent with spaces"),
    "two.yaml": ("name: a\n---\nname: b\n", 2, "yaml-unreadable", "one profile"),
    "unclosed.yaml": ("plugins: [cli\nname: x\n", 2, "yaml-unreadable", "not valid YAML"),
    "star.yaml": ("name: *nobody\n", 1, "yaml-unreadable", "begins with '*'"),
    "twice.yaml": (
        "tools: []\nname: a\ntools: [cli]\n",
        3,
        "duplicate-key",
        "'tools' is written twice, first in line 1",
    ),
    "deep-twice.yaml": ("plugin_configs:\n  cli:\n    a: 1\n    a: 2\n", 4, "duplicate-key", "'plugin_configs.cli.a'"),
    "python.yaml": ("name: !!python/object/apply:os.system ['true']\n", 1, "yaml-tag", "python"),
    "binary.yaml": ("name: a\ndescription: !!binary aGk=\n", 2, "yaml-tag", "binary"),
    "custom.yaml": ("name: a\nmodel: !env MODEL\n", 2, "yaml-tag", "!env"),
    "control.yaml": (b"name: a\ndescription: \x07\n", None, "yaml-unreadable", "not valid YAML"),
    "empty.yaml": ("", 1, "not-an-object", "got nothing"),
    "comment.yaml": ("# nothing here\n", 1, "not-an-object", "got nothing"),
    "list.yaml": ("- name: a\n", 1, "not-an-object", "a list of 1"),
    "text.yaml": ("just words\n", 1, "not-an-object", "'just words'"),
    "empty.json": ("", 1, "json-unreadable", "the file is empty"),
    "list.json": ("[]", 1, "not-an-object", "a list of 0"),
    "comma.json": ('{\n "name": "a",\n}', 3, "json-unreadable", "comma"),
    "remark.json": ('{\n // why\n "name": "a"}', 2, "json-unreadable", "no comments"),
    "cut.json": ('{\n "name": "a', 2, "json-unreadable", "not valid JSON"),
    "nan.json": ('{"timeout_seconds": NaN}', None, "json-unreadable", "NaN"),
    "twice.json": ('{"tools": [],\n "name": "a",\n "tools": ["cli"]}', 3, "duplicate-key", "first in line 1"),
    "deep-twice.json": ('{"plugin_configs": {"cli":\n{"a": 1,\n"a": 2}}}', 3, "duplicate-key", "plugin_configs.cli.a"),
    "latin.yaml": ("name: a\ndescription: caf\u00e9\n".encode("latin-1"), 2, "not-utf8", "UTF-8"),
    "wide.json": ('{"name": "a"}'.encode("utf-16"), 1, "not-utf8", "UTF-8"),
    "digits.yaml": (f"max_turns: {'9' * 5000}\n", None, "yaml-unreadable", "not valid YAML"),
    "digits.json": (f'{{"max_turns": {"9" * 5000}}}', None, "json-unreadable", "not valid JSON"),
    "infinite.json": ('{"name": "a",\n "timeout_seconds": 1e999}', 2, "wrong-value", "above 0"),
    "number.yaml": ("description: d\nname: 123\n", 2, "wrong-value", "put it in quotes"),
    "switch.yaml": ("name: on\n", 1, "wrong-value", "put it in quotes"),
    "slash.yaml": ("name: ../../etc/passwd\n", 1, "name-unsafe", "must not be"),
    "dots.json": ('{"name": ".."}', 1, "name-unsafe", "must not be"),
    "bell.json": ('{"name": "a\\u0007"}', 1, "name-unsafe", "must not be"),
    "typo.yaml": ("name: a\nplugin: [cli]\n", 2, "unknown-field", "Did you mean 'plugins'?"),
    "camel.json": ('{"name": "a",\n "maxTurns": 5}', 2, "unknown-field", "Did you mean 'max_turns'?"),
    "strange.yaml": ("name: a\nqqqq: 1\n", 2, "unknown-field", "Known: name, description"),
    "truth.yaml": ("name: a\nyes: 1\n", 2, "unknown-field", "unknown field 'yes'"),
    "string.yaml": ("name: a\nplugins: cli\n", 2, "wrong-value", "such as [cli]"),
    "commas.yaml": ("name: a\nplugins: []\ntools: Read, Grep\n", 3, "wrong-value", "a list of names"),
    "map.yaml": ("name: a\ntools: {read: true}\n", 2, "wrong-value", "a list of names"),
    "entry.yaml": ("plugins:\n  - cli\n  - 7\n", 3, "wrong-value", "entry 2 is 7"),
    "null-tools.yaml": ("name: a\ntools:\n", 2, "null-value", "write [] for no tools"),
    "null-denied.json": ('{"disallowed_tools": null}', 1, "null-value", "to deny none"),
    "null-agents.yaml": ("allow_agents:\n", 1, "null-value", "write [] for none"),
    "null-visibility.yaml": ("visibility: ~\n", 1, "null-value", "internal"),
    "zero.json": ('{"name": "a",\n\n "max_turns": 0}', 3, "wrong-value", "at least 1"),
    "approved.yaml": ("auto_approved: 'yes'\n", 1, "wrong-value", "true or false"),
    "icon.yaml": ("icon:\n  - a\n  - b\n", 1, "wrong-value", "exactly three"),
    "gc.yaml": ("gc: [hybrid]\n", 1, "wrong-value", "name of a strategy"),
    "gc-value.yaml": ("gc:\n  type: hybrid\n  max_turns: 0\n", 1, "wrong-value", "'max_turns' must be"),
    "budget.yaml": ("budget:\n  spawns: 1\n  total_tokens: -5\n", 3, "wrong-value", "total_tokens"),
    "configs.json": ('{"plugin_configs":\n {"a": {},\n "b": 5}}', 3, "wrong-value", "settings for 'b'"),
    "list-key.yaml": ("name: a\n? [b]\n: c\n", 2, "yaml-unreadable", "unhashable"),
    "hex.yaml": (f"name: a\nmax_turns: 0x{'f' * 9000}\n", 2, "wrong-value", "at least 1"),
    "hex-config.yaml": (f"plugin_configs: {{cli: {{a: 0x{'f' * 9000}}}}}\n", 1, "wrong-value", "JSON values only"),
    "dear.json": (f'{{"budget": {{"cost_usd": {"9" * 400}}}}}', 1, "wrong-value", "cost_usd"),
    "ages.json": (f'{{"timeout_seconds": {"9" * 400}}}', 1, "wrong-value", "up to 1,000,000,000"),
    "half.json": ('{"description": "\\ud800"}', 1, "wrong-value", "half a character"),
    "half-config.json": ('{"plugin_configs": {"a":\n{"b": ["\\udc00"]}}}', 2, "wrong-value", "half a character"),
    "gc-nan.yaml": ("gc: {plugin_config: {a: .nan}}\n", 1, "wrong-value", "JSON values only"),
    "allowed.json": ('{"name": "a",\n "allowedTools": ["Read"]}', 2, "unknown-field", "Did you mean 'tools'?"),
    "permission.yaml": ("permission: {edit: deny}\n", 1, "unknown-field", "unknown field 'permission'"),
    "outer.yaml": ("output_schema: {$ref: 'file:///etc/passwd'}\n", 1, "wrong-value", "no schema"),
    "schema.yaml": ("output_schema:\n  type: strnig\n", 1, "wrong-value", "no schema"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_line_code_and_reason(tmp_path: Path, name: str) -> None:
    content, line, code, part = BROKEN[name]
    found = [problem for problem in lint_text(tmp_path, name, content) if problem.severity == "error"]
    assert codes(found) == [code]
    assert (found[0].line, found[0].path) == (line, str(tmp_path / name))
    assert part in found[0].text
    where = str(tmp_path / name) if line is None else f"{tmp_path / name}:{line}"
    assert str(found[0]).startswith(f"{where}: {code}: ")
    assert str(found[0]).isprintable()


def test_a_folder_with_every_kind_of_broken_file_loads_all_the_others(project: Project) -> None:
    for name, (content, *_) in BROKEN.items():
        project.write(name, content)
    project.write("a-good.yaml", "description: first")
    project.write("zz-good.json", {"description": "last"})
    catalogue = project.catalogue()
    loaded = [profile.name for profile in catalogue.list() if profile.source.kind == "project"]
    assert loaded == ["a-good", "zz-good"]
    refused = {Path(problem.path).name for problem in catalogue.problems() if problem.severity == "error"}
    assert refused == set(BROKEN)


def test_all_mistakes_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    text = "name: a/b\nplugins: cli\nmax_turn: 3\nmax_turns: 0\nicon: [x, y]\n"
    found = lint_text(tmp_path, "x.yaml", text)
    assert [(problem.line, problem.field) for problem in found] == [
        (1, "name"),
        (2, "plugins"),
        (3, "max_turn"),
        (4, "max_turns"),
        (5, "icon"),
    ]


@pytest.mark.parametrize(
    ("content", "field", "code", "severity"),
    [
        ({"model": "m"}, "model", "model-without-provider", "warning"),
        ({"model": "m", "provider": "antropic"}, "provider", "unknown-provider", "warning"),
        ({"provider": "anthropic", "temperature": 0.5}, "temperature", "temperature-dropped", "warning"),
        ({"plugins": None}, "plugins", "null-value", "warning"),
        ({"name": None}, "name", "null-value", "warning"),
        ({"gc": {"type": "hybrid", "target_percent": 60}}, "gc", "gc-unknown-setting", "warning"),
        ({"gc": "budget"}, "gc", "gc-unknown-type", "warning"),
        ({"description": " "}, "description", "description-missing", "info"),
    ],
)
def test_what_is_doubtful_loads_and_is_mentioned(
    project: Project, content: dict[str, Any], field: str, code: str, severity: str
) -> None:
    project.write("x.json", {"description": "d", **content})
    catalogue = project.catalogue()
    assert catalogue.get("x").name == "x"
    [problem] = catalogue.problems()
    assert (problem.field, problem.code, problem.severity) == (field, code, severity)
    assert problem.line is not None


def test_a_misspelt_provider_is_guessed(tmp_path: Path) -> None:
    [problem] = lint_text(tmp_path, "x.json", {"description": "d", "model": "m", "provider": "antropic"})
    assert "Did you mean 'anthropic'?" in problem.text


def test_collection_settings_of_other_versions_leave_the_rest_as_written(project: Project) -> None:
    project.write("x.json", {"gc": {"type": "budget", "target_percent": 60, "preserve_recent_turns": 7}})
    gc = project.catalogue().get("x").gc
    assert gc is not None
    assert (gc.type, gc.preserve_recent_turns) == ("truncate", 7)


def test_a_strategy_may_be_given_by_name_alone(project: Project) -> None:
    project.write("x.yaml", "description: d\ngc: hybrid")
    catalogue = project.catalogue()
    gc = catalogue.get("x").gc
    assert gc is not None
    assert gc.type == "hybrid"
    assert catalogue.problems() == ()


def test_the_list_of_providers_without_temperature_is_what_their_traits_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "k")
    providers = {
        name: get_provider(name, ProviderConfig(api_key="k")) for name in BUILTIN if name not in ("script", "local")
    }
    without = {name for name, provider in providers.items() if not provider.traits.accepts_temperature}
    assert without == NO_TEMPERATURE


@pytest.mark.parametrize(
    "bomb",
    [
        "[" * 500_000,
        "- " * 300_000 + "a",
        "{a: " * 200_000,
        "? " * 300_000,
        "a: &a ["
        + "x, " * 9
        + "]\n"
        + "".join(f"{n}: &{n} [{f'*{p}, ' * 9}]\n" for p, n in zip("abcdefgh", "bcdefghi", strict=True)),
        "plugin_configs: &a {cli: {again: *a}}",
        "&a [*a]",
        "description: " + "x" * 2_000_000,
    ],
    ids=["flow", "block", "maps", "keys", "laughs", "circle", "self", "huge"],
)
@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_hostile_text_ends_in_one_refusal(tmp_path: Path, bomb: str, suffix: str) -> None:
    [problem] = lint_text(tmp_path, f"x{suffix}", bomb)
    assert problem.severity == "error"
    if suffix == ".yaml":
        assert problem.code in ("too-complex", "too-large")


@pytest.mark.parametrize(
    "text",
    [
        "name: !" + "x" * 900_000 + " a",
        "k" * 500_000 + ": 1",
        '"' + "k" * 400 + '": 1\n' * 3,
        "".join(f"key{index}: 1\n" for index in range(5000)),
        "a: 1\n" * 5000,
        "gc: {" + ", ".join(f"x{index}: 1" for index in range(900)) + "}\nplugins: cli",
    ],
    ids=["tag", "key", "twice", "unknown", "duplicates", "warnings-first"],
)
def test_a_report_stays_short_whatever_the_file_does(tmp_path: Path, text: str) -> None:
    found = lint_text(tmp_path, "x.yaml", text)
    assert any(problem.severity == "error" for problem in found)
    assert len(found) <= 21
    assert all(len(str(problem)) < 1000 for problem in found)


def test_aliases_in_reason_are_welcome(project: Project) -> None:
    project.write(
        "x.yaml", "skills: &names [a, b]\nallow_agents: *names\nplugin_configs: {cli: &c {a: 1}, mcp: {<<: *c}}"
    )
    profile = project.catalogue().get("x")
    assert profile.allow_agents == ("a", "b")
    assert profile.plugin_configs["mcp"] == {"a": 1}


def test_deep_json_is_refused_before_anything_walks_through_it(tmp_path: Path) -> None:
    text = '{"plugin_configs": {"a": ' + '{"a":' * 60 + "1" + "}" * 62
    assert codes(lint_text(tmp_path, "x.json", text)) == ["too-complex"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
        max_leaves=15,
    )
)
def test_json_and_yaml_read_the_same_value(tmp_path: Path, value: Any) -> None:
    config = {"description": "d", "plugin_configs": {"any": {"value": value}}}
    folder = tmp_path / ".jaato/profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "one.json").write_text(json.dumps(config, indent=1))
    (folder / "two.yaml").write_text(yaml.safe_dump(config, allow_unicode=False))
    assert lint(folder) == []
    from shared.definitions.discovery import discover_profiles

    found = discover_profiles(base_path=tmp_path)
    assert found["one"].plugin_configs == found["two"].plugin_configs == {"any": {"value": value}}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(st.binary(max_size=60) | st.text(alphabet="{}[]:,-&*!?|>#'\"\n ab1~", max_size=40).map(str.encode))
def test_any_bytes_give_a_profile_or_an_error(tmp_path: Path, data: bytes) -> None:
    for suffix in (".json", ".yaml"):
        path = tmp_path / f"x{suffix}"
        path.write_bytes(data)
        for problem in lint(path):
            assert str(problem).isprintable()
