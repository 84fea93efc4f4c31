"""ProfileCatalogue: sources, precedence, trust, and files that change while it lives."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from support.profile_files import Project, codes

from shared.definitions.catalogue import ProfileCatalogue
from shared.definitions.profile import SubagentProfile
from shared.definitions.source import Source
from shared.errors import ConfigError


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def _say(text: str) -> str:
    return f"name: shared-name\ndescription: {text}\n"


# -- precedence ----------------------------------------------------------------------------------


def test_the_strongest_source_wins_and_the_others_stay_visible(project: Project, tmp_path: Path) -> None:
    project.write("a.yaml", _say("project"))
    project.write("b.yaml", _say("user"), into=str(project.home / "profiles"))
    extras = [tmp_path / "extra1", tmp_path / "extra2"]
    for extra in extras:
        project.write("c.yaml", _say(extra.name), into=str(extra))
    from_plugin = SubagentProfile(name="shared-name", description="plugin", source=Source("plugin", None, False))
    brought = {"tools": (from_plugin,)}
    catalogue = project.catalogue(extra_dirs=extras, plugin_profiles=lambda: brought)
    catalogue.add(SubagentProfile(name="shared-name", description="code"))

    seen = []
    removals = [
        lambda: catalogue.remove("shared-name"),
        lambda: os.unlink(project.root / ".jaato/profiles/a.yaml"),
        lambda: os.unlink(project.home / "profiles/b.yaml"),
        lambda: os.unlink(extras[0] / "c.yaml"),
        lambda: os.unlink(extras[1] / "c.yaml"),
    ]
    for remove in removals:
        winner = catalogue.get("shared-name")
        seen.append(winner.description)
        losers = [loser for loser in catalogue.shadowed if loser.name == "shared-name"]
        assert all(f"overridden by {winner.source}" in loser.reason for loser in losers)
        assert len(losers) == 6 - len(seen)
        remove()
    seen.append(catalogue.get("shared-name").description)
    assert seen == ["code", "project", "user", "extra1", "extra2", "plugin"]


def test_a_ready_made_profile_gives_way_to_any_other(project: Project) -> None:
    assert project.catalogue().get("summarizer").source.kind == "builtin"
    project.write("x.yaml", "name: summarizer\ndescription: mine", into=str(project.home / "agents"))
    assert project.catalogue().get("summarizer").source.kind == "user"


def test_both_project_folders_are_one_scope(project: Project) -> None:
    one = project.write("one.yaml", _say("one"))
    two = project.write("two.json", {"name": "shared-name"}, into=".jaato/agents")
    catalogue = project.catalogue()
    with pytest.raises(ConfigError, match="2 profiles of the project scope are named 'shared-name'") as caught:
        catalogue.get("shared-name")
    assert str(one) in str(caught.value)
    assert str(two) in str(caught.value)
    duplicates = [problem for problem in catalogue.problems() if problem.code == "duplicate-name"]
    assert {problem.path for problem in duplicates} == {str(one), str(two)}


def test_after_one_of_two_is_renamed_both_load(project: Project) -> None:
    project.write("one.yaml", _say("one"))
    two = project.write("two.yaml", _say("two"))
    catalogue = project.catalogue()
    assert catalogue.find("shared-name") is None
    two.write_text("name: second\ndescription: two")
    assert catalogue.get("shared-name").description == "one"
    assert catalogue.get("second").description == "two"


def test_a_broken_file_does_not_uncover_a_weaker_one_with_more_rights(project: Project) -> None:
    project.write("x.yaml", "name: careful\nplugins: [cli]", into=str(project.home / "profiles"))
    path = project.write("careful.yaml", "plugins: []\ntools: []\ndescription: narrow: broken")
    catalogue = project.catalogue()
    assert catalogue.find("careful") is None
    with pytest.raises(ConfigError, match=r"careful.yaml:3: yaml-unreadable"):
        catalogue.get("careful")
    path.write_text("plugins: []\ntools: []\ndescription: narrow")
    assert catalogue.get("careful").plugins == ()


def test_profiles_dir_replaces_the_projects_folder_only(project: Project) -> None:
    project.write("standard.yaml", "description: d")
    project.write("agent.yaml", "description: d", into=".jaato/agents")
    project.write("own.yaml", "description: d", into="team/profiles")
    catalogue = project.catalogue(profiles_dir="team/profiles")
    names = {profile.name for profile in catalogue.list() if profile.source.kind == "project"}
    assert names == {"own", "agent"}


def test_without_discovery_only_code_and_plugins_count(project: Project) -> None:
    project.write("x.yaml", "description: d")
    brought: dict[str, tuple[SubagentProfile, ...]] = {}
    catalogue = project.catalogue(auto_discover=False, plugin_profiles=lambda: brought)
    assert catalogue.list() == ()
    catalogue.add({"description": "d", "plugins": ["cli"]}, name="coded")
    brought = {"p": (SubagentProfile(name="from-plugin"),)}
    assert [profile.name for profile in catalogue.list()] == ["coded", "from-plugin"]
    brought = {}
    assert [profile.name for profile in catalogue.list()] == ["coded"]


def test_only_definition_files_of_the_folder_itself_are_read(project: Project) -> None:
    project.write("x.yaml", "description: d")
    for name in ("notes.txt", "README.md", "x.yaml~", ".hidden.yaml", "y.yaml.bak", "sub/deep.yaml"):
        project.write(name, "plugins: [broken")
    catalogue = project.catalogue()
    assert [profile.name for profile in catalogue.list() if profile.source.kind == "project"] == ["x"]
    assert catalogue.problems() == ()


def test_a_workspace_that_is_the_home_folder_has_the_users_profiles_once(tmp_path: Path) -> None:
    folder = tmp_path / ".jaato/profiles"
    folder.mkdir(parents=True)
    (folder / "x.yaml").write_text("description: d\nauto_approved: true")
    catalogue = ProfileCatalogue(tmp_path, home=tmp_path / ".jaato")
    assert catalogue.get("x").auto_approved
    assert catalogue.get("x").source.kind == "user"
    assert catalogue.shadowed == ()


# -- questions -----------------------------------------------------------------------------------


def test_an_unknown_name_is_answered_with_suggestions(project: Project) -> None:
    project.write("hidden.yaml", "visibility: internal\ndescription: d")
    with pytest.raises(ConfigError, match=r"unknown profile 'sumarizer'\. Did you mean 'summarizer'") as caught:
        project.catalogue().get("sumarizer")
    assert "hidden" not in str(caught.value)


def test_internal_profiles_are_not_offered(project: Project) -> None:
    project.write("hidden.yaml", "visibility: internal\ndescription: d")
    catalogue = project.catalogue()
    assert "hidden" in {profile.name for profile in catalogue.list()}
    assert "hidden" not in {profile.name for profile in catalogue.list(internal=False)}
    assert catalogue.get("hidden").visibility == "internal"


def test_profiles_are_listed_by_name_whatever_their_source(project: Project) -> None:
    project.write("zebra.yaml", "description: d")
    project.write("aardvark.yaml", "description: d", into=str(project.home / "profiles"))
    names = [profile.name for profile in project.catalogue().list()]
    assert names == sorted(names)
    assert {"zebra", "aardvark", "summarizer"} <= set(names)


def test_explain_tells_the_whole_story_of_a_name(project: Project) -> None:
    project.write("a.yaml", "name: summarizer\nmodel: m\ndescription: d")
    story = str(project.catalogue().explain("summarizer"))
    first, *rest = story.splitlines()
    assert first.startswith("summarizer: from project (")
    assert any("lost: summarizer from builtin" in line and "overridden by project" in line for line in rest)
    assert any("model-without-provider" in line for line in rest)
    assert str(project.catalogue().explain("nobody")) == "nobody: no usable profile"


def test_a_mapping_needs_a_name(project: Project) -> None:
    with pytest.raises(ConfigError, match="needs a name"):
        project.catalogue().add({"description": "d"})


# -- trust ---------------------------------------------------------------------------------------


def test_auto_approval_counts_only_from_trusted_places(project: Project, tmp_path: Path) -> None:
    text = "description: d\nauto_approved: true\n"
    project.write("from-project.yaml", text)
    project.write("from-user.yaml", text, into=str(project.home / "profiles"))
    project.write("from-extra.yaml", text, into=str(tmp_path / "extra"))

    def approved(**options: bool) -> dict[str, bool]:
        found = project.catalogue(extra_dirs=[tmp_path / "extra"], **options).list()
        return {each.name: each.auto_approved for each in found if each.name.startswith("from-")}

    assert approved() == {"from-project": False, "from-user": True, "from-extra": False}
    assert approved(trust_workspace=True) == {"from-project": True, "from-user": True, "from-extra": False}
    assert approved(trust_extra=True) == {"from-project": False, "from-user": True, "from-extra": True}

    catalogue = project.catalogue()
    assert not catalogue.get("from-project").source.trusted
    [warning] = catalogue.problems()
    assert (warning.code, warning.line, warning.severity) == ("untrusted-auto-approved", 2, "warning")


def test_a_profile_added_in_code_keeps_the_trust_of_where_it_was_read(project: Project) -> None:
    project.write("x.yaml", "description: d\nauto_approved: true")
    catalogue = project.catalogue()
    catalogue.add(replace(catalogue.get("x"), max_turns=3))
    profile = catalogue.get("x")
    assert (profile.max_turns, profile.auto_approved, profile.source.trusted) == (3, False, False)


# -- files that change ---------------------------------------------------------------------------


def test_added_edited_and_removed_files_count_at_once(project: Project) -> None:
    catalogue = project.catalogue()
    assert catalogue.find("x") is None
    path = project.write("x.yaml", "description: first")
    assert catalogue.get("x").description == "first"
    path.write_text("description: other")
    assert catalogue.get("x").description == "other"
    path.rename(path.with_name("y.yaml"))
    assert catalogue.find("x") is None
    assert catalogue.get("y").description == "other"
    path.with_name("y.yaml").unlink()
    assert catalogue.find("y") is None


def test_an_edit_of_the_same_length_and_time_is_noticed(project: Project) -> None:
    path = project.write("x.yaml", "description: one")
    catalogue = project.catalogue()
    for text in ("two", "six", "ten") * 10:
        before = path.stat()
        path.write_text(f"description: {text}")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert catalogue.get("x").description == text


def test_a_file_swapped_in_by_rename_is_noticed(project: Project) -> None:
    path = project.write("x.yaml", "description: one")
    catalogue = project.catalogue()
    assert catalogue.get("x").description == "one"
    draft = project.write("draft.tmp", "description: two")
    draft.replace(path)
    assert catalogue.get("x").description == "two"


def test_a_file_edited_to_be_wrong_is_dropped_without_a_stale_copy(project: Project) -> None:
    path = project.write("x.yaml", "description: fine")
    catalogue = project.catalogue()
    assert catalogue.problems() == ()
    path.write_text("plugins: cli")
    assert catalogue.find("x") is None
    assert codes(catalogue.problems()) == ["wrong-value"]
    path.write_text("description: mended")
    assert catalogue.get("x").description == "mended"
    assert catalogue.problems() == ()


def test_a_file_that_becomes_a_link_outside_is_dropped(project: Project, tmp_path: Path) -> None:
    path = project.write("x.yaml", "description: fine")
    outside = project.write("x.yaml", "description: fine", into=str(tmp_path / "outside"))
    catalogue = project.catalogue()
    assert catalogue.find("x") is not None
    path.unlink()
    path.symlink_to(outside)
    assert catalogue.find("x") is None
    assert codes(catalogue.problems()) == ["link-outside"]


def test_unchanged_files_are_not_read_into_new_profiles(project: Project) -> None:
    for index in range(20):
        project.write(f"p{index}.yaml", f"description: number {index}")
    catalogue = project.catalogue()
    before = {profile.name: profile for profile in catalogue.list()}
    project.write("p7.yaml", "description: changed")
    project.write("p8.yaml", "description: number 8")  # written again, with the same content
    after = {profile.name: profile for profile in catalogue.list()}
    assert {name for name in after if after[name] is not before[name]} == {"p7"}


def test_the_folder_may_come_and_go(project: Project) -> None:
    catalogue = project.catalogue()
    path = project.write("x.yaml", "description: d")
    assert catalogue.find("x") is not None
    path.parent.rename(path.parent.with_name("away"))
    assert catalogue.find("x") is None
    path.parent.with_name("away").rename(path.parent)
    assert catalogue.find("x") is not None


def test_readers_and_writers_at_once_see_whole_profiles(project: Project) -> None:
    path = project.write("x.yaml", "description: '0'\nmax_turns: 1000")
    catalogue = project.catalogue()
    wrong: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            profile = catalogue.get("x")
            if profile.max_turns != 1000 + int(profile.description) or catalogue.problems():
                wrong.append(repr(profile))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for index in range(150):
        draft = project.write("draft.tmp", f"description: '{index}'\nmax_turns: {1000 + index}")
        draft.replace(path)
        catalogue.add(SubagentProfile(name=f"coded-{index}"))
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert catalogue.get("x").description == "149"
    assert catalogue.find("coded-149") is not None
