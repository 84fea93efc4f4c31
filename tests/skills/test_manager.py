"""SkillManager: scopes, conflicts, three tiers, activation and trust."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from support.skills import manager_in, write_skill

from shared.errors import (
    SkillConflictError,
    SkillError,
    SkillLoadError,
    SkillNotFoundError,
    SkillParseError,
    SkillValidationError,
)
from shared.skills import Skill, SkillInfo, SkillManager, SkillScope, TrustLevel


def names(manager: SkillManager) -> list[str]:
    return [info.name for info in manager.list()]


def test_the_stronger_scope_wins(tmp_path: Path) -> None:
    project = tmp_path / "project"
    places = [project / ".jaato/skills", project / ".claude/skills", project / ".agents/skills"]
    places += [tmp_path / "home/skills", tmp_path / "extra"]
    for number, place in enumerate(places):
        for skill in range(number + 1):
            write_skill(place, f"s{skill}", f"from {number}")
    manager = manager_in(tmp_path, custom_paths=[tmp_path / "extra"])
    assert [manager.activate(f"s{number}") for number in range(5)] == [f"from {number}" for number in range(5)]
    scopes = {info.name: info.scope for info in manager.list()}
    assert [scopes[f"s{number}"] for number in range(5)] == ["project", "project", "project", "user", "custom"]
    assert len(manager.shadowed()["s0"]) == 4
    manager.register(Skill(SkillInfo("s0", "In code"), "from code"))
    assert manager.activate("s0") == "from code"
    manager.deregister("s0")
    assert manager.activate("s0") == "from 0"


def test_two_of_one_name_in_one_folder_are_both_refused_and_the_others_stay(tmp_path: Path) -> None:
    skills = tmp_path / "project/.jaato/skills"
    write_skill(skills, "twin", folder="a")
    write_skill(skills, "twin", folder="b")
    write_skill(skills, "other")
    write_skill(tmp_path / "home/skills", "twin")
    manager = manager_in(tmp_path)
    assert names(manager) == ["other"]
    with pytest.raises(SkillConflictError, match=r"2 skills are named 'twin'.*a, .*b; rename"):
        manager.get("twin")
    with pytest.raises(SkillConflictError):
        manager.activate("twin")
    assert "duplicate-name" in {problem.code for problem in manager.problems()}


def test_register_and_deregister(tmp_path: Path) -> None:
    manager = manager_in(tmp_path)
    manager.register(SkillInfo("one", "First"))
    with pytest.raises(SkillConflictError, match="'one' is registered already"):
        manager.register(Skill(SkillInfo("one", "Again")))
    with pytest.raises(SkillValidationError, match="letters"):
        manager.register(SkillInfo("../up", "Bad"))
    manager.activate("one")
    manager.deregister("one")
    assert manager.active == []
    assert manager.get("one") is None
    with pytest.raises(SkillNotFoundError, match="unknown registered skill"):
        manager.deregister("one")


def test_an_unknown_skill_is_answered_with_a_guess(tmp_path: Path) -> None:
    write_skill(tmp_path / "project/.jaato/skills", "release-notes")
    with pytest.raises(SkillNotFoundError, match="Did you mean 'release-notes'"):
        manager_in(tmp_path).activate("release-note")


def test_a_broken_file_is_named_and_stops_no_other(tmp_path: Path) -> None:
    skills = tmp_path / "project/.jaato/skills"
    write_skill(skills, "good")
    (write_skill(skills, "bad") / "SKILL.md").write_bytes(b"---\nname: \xff\n---\n")
    (skills / "empty").mkdir()
    manager = manager_in(tmp_path)
    assert names(manager) == ["good"]
    found = {(Path(problem.path).name, problem.code) for problem in manager.problems()}
    assert found == {("SKILL.md", "not-utf8"), ("empty", "no-skill-file")}
    with pytest.raises(SkillParseError, match="not UTF-8"):
        manager.get("bad")


def test_no_folders_is_no_error_and_discovery_can_be_off(tmp_path: Path) -> None:
    assert manager_in(tmp_path).discover() == []
    write_skill(tmp_path / "project/.jaato/skills", "there")
    assert manager_in(tmp_path, auto_discover=False).discover() == []


def test_edits_count_at_once_and_unchanged_skills_are_not_read_again(tmp_path: Path) -> None:
    skills = tmp_path / "project/.jaato/skills"
    for name in ("edited", "same"):
        place = write_skill(skills, name)
        os.utime(place / "SKILL.md", ns=(1, 1))
    manager = manager_in(tmp_path)
    before = {info.name: info for info in manager.list()}
    write_skill(skills, "edited", "Changed.", description="Other.")
    write_skill(skills, "added")
    after = {info.name: info for info in manager.list()}
    assert after["same"] is before["same"]
    assert after["edited"].description == "Other."
    assert manager.activate("edited") == "Changed."
    assert "added" in after
    (skills / "same/SKILL.md").unlink()
    assert "same" not in names(manager)


def test_three_tiers(tmp_path: Path) -> None:
    place = write_skill(tmp_path / "project/.jaato/skills", "deep", "The body.", license="MIT")
    (place / "references").mkdir()
    (place / "references/more.md").write_text("More.")
    (place / "secret").symlink_to("/etc")
    (tmp_path / "outside.txt").write_text("no")
    manager = manager_in(tmp_path)
    [info] = manager.discover()
    assert info.details is None
    assert "body" not in repr(info).lower()
    skill = manager.get("deep")
    assert skill is not None
    assert (skill.body.strip(), skill.info.details and skill.info.details.license) == ("The body.", "MIT")
    assert skill.files == ("references/more.md",)
    assert skill.read("references/more.md") == "More."
    for path in ("../../../../outside.txt", "/etc/hostname", "secret/hostname", "nothing.md", ""):
        with pytest.raises(SkillLoadError):
            skill.read(path)


def test_links_out_of_the_root_are_refused(tmp_path: Path) -> None:
    outside = write_skill(tmp_path / "elsewhere", "outside")
    skills = tmp_path / "project/.jaato/skills"
    skills.mkdir(parents=True)
    (skills / "outside").symlink_to(outside)
    inside = write_skill(tmp_path / "project/lib", "inside")
    (skills / "inside").symlink_to(inside)
    manager = manager_in(tmp_path)
    assert names(manager) == ["inside"]
    assert "link-outside" in {problem.code for problem in manager.problems()}


def test_hostile_files_are_refused_one_by_one(tmp_path: Path) -> None:
    skills = tmp_path / "project/.jaato/skills"
    write_skill(skills, "good")
    aliases = "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdef", "bcdefg", strict=True)
    )
    texts = {
        "bomb": f"---\na: &a [x, x]\n{aliases}description: x\n---\n",
        "deep": f"---\ndescription: x\nmetadata: {'[' * 5000}\n---\n",
        "large": f"---\ndescription: {'x' * (2 << 20)}\n---\n",
        "nul": "---\nname: n\0l\ndescription: x\n---\n",
    }
    for name, text in texts.items():
        (write_skill(skills, name) / "SKILL.md").write_text(text)
    (skills / "fifo").mkdir()
    os.mkfifo(skills / "fifo/SKILL.md")
    (skills / "folder/SKILL.md").mkdir(parents=True)
    (skills / "loop").mkdir()
    (skills / "loop/SKILL.md").symlink_to("SKILL.md")
    (skills / "file").write_text("no folder")
    manager = manager_in(tmp_path)
    assert names(manager) == ["good"]
    refused = {Path(problem.path).parent.name for problem in manager.problems() if problem.severity == "error"}
    assert refused == {*texts, "fifo", "folder", "loop"}


def test_who_may_invoke(tmp_path: Path) -> None:
    skills = tmp_path / "project/.jaato/skills"
    write_skill(skills, "people", disable_model_invocation="true")
    write_skill(skills, "models", user_invocable="false")
    manager = manager_in(tmp_path)
    with pytest.raises(SkillValidationError, match="/people"):
        manager.activate("people", invoked_by="model")
    with pytest.raises(SkillValidationError, match="user-invocable"):
        manager.activate("models", invoked_by="user")
    assert manager.active == []
    assert manager.activate("people", invoked_by="user") == manager.activate("models", invoked_by="model") == "Do it."
    assert manager.activate("people") == "Do it."


def fetch(url: str) -> str:
    """Get a page."""
    return f"page {url}"


def test_activation_adds_tools_and_deactivation_takes_exactly_those_away(tmp_path: Path) -> None:
    manager = SkillManager(manager_in(tmp_path).config, agent_tools=lambda: ["cli"])
    for name in ("a", "b"):
        info = SkillInfo(name, "x", allowed_tools=("read_file", f"only_{name}"))
        manager.register(Skill(info, "text", (fetch,)))
    manager.activate("a")
    manager.activate("b")
    assert manager.tool_names == {"cli", "read_file", "only_a", "only_b", "a.fetch", "b.fetch"}
    assert [tool.__name__ for tool in manager.get_all_tools()] == ["a.fetch", "b.fetch"]
    assert manager.get_all_tools()[0]("x") == "page x"
    assert manager.get_tools("a") == [fetch]
    manager.deactivate("a")
    assert manager.tool_names == {"cli", "read_file", "only_b", "b.fetch"}
    manager.deactivate("b")
    assert manager.tool_names == {"cli"}
    assert manager.get_all_tools() == []
    with pytest.raises(SkillNotFoundError, match="unknown active skill 'b'"):
        manager.deactivate("b")


def test_prefixes_can_be_switched_off(tmp_path: Path) -> None:
    manager = manager_in(tmp_path, namespace_tools=False)
    manager.register(Skill(SkillInfo("a", "x"), tools=(fetch,)))
    manager.activate("a")
    assert [tool.__name__ for tool in manager.get_all_tools()] == ["fetch"]
    assert fetch.__name__ == "fetch"


def test_an_untrusted_skill_grants_nothing(tmp_path: Path) -> None:
    manager = SkillManager(manager_in(tmp_path).config, agent_tools=lambda: ["cli"])
    info = SkillInfo("a", "x", trust_level=TrustLevel.UNTRUSTED, allowed_tools=("read_file",))
    manager.register(Skill(info, "text", (fetch,)))
    assert manager.activate("a") == "text"
    assert manager.tool_names == {"cli"}
    assert manager.get_all_tools() == []


def test_trust_by_scope_and_settings(tmp_path: Path) -> None:
    write_skill(tmp_path / "project/.jaato/skills", "mine")
    write_skill(tmp_path / "home/skills", "own")
    write_skill(tmp_path / "extra", "foreign")

    def trusted(**settings: object) -> set[str]:
        manager = manager_in(tmp_path, custom_paths=[tmp_path / "extra"], **settings)
        return {info.name for info in manager.list() if info.is_trusted}

    assert trusted() == {"own"}
    assert trusted(trust_workspace=True) == {"own", "mine"}
    assert trusted(trusted_paths=[tmp_path / "extra"]) == {"own", "foreign"}


def test_trust_in_a_skill_ends_with_any_change(tmp_path: Path) -> None:
    place = write_skill(tmp_path / "extra", "foreign")
    manager = manager_in(tmp_path, custom_paths=[tmp_path / "extra"])

    def level() -> TrustLevel:
        return manager.list()[0].trust_level

    assert level() is TrustLevel.UNTRUSTED
    manager.trust("foreign")
    assert level() is TrustLevel.TRUSTED
    (place / "run.sh").write_text("rm -rf /")
    assert level() is TrustLevel.UNTRUSTED
    manager.trust("foreign")
    (place / "link").symlink_to("/etc/passwd")
    assert level() is TrustLevel.UNTRUSTED
    (place / "link").unlink()
    assert level() is TrustLevel.TRUSTED
    manager.distrust("foreign")
    assert level() is TrustLevel.UNTRUSTED


def test_a_damaged_record_trusts_nothing(tmp_path: Path) -> None:
    write_skill(tmp_path / "home/skills", "own")
    (tmp_path / "home/record.json").write_text("{broken")
    manager = manager_in(tmp_path)
    assert [info.is_trusted for info in manager.list()] == [False]
    assert [problem.code for problem in manager.problems()] == ["record-damaged"]
    with pytest.raises(SkillError, match="damaged"):
        manager.trust("own")
    (tmp_path / "home/record.json").unlink()
    assert [info.is_trusted for info in manager.list()] == [True]


def test_tools_to_be_left_alone_are_told(tmp_path: Path) -> None:
    write_skill(tmp_path / "project/.jaato/skills", "careful", disallowed_tools="Write, Bash")
    assert manager_in(tmp_path).activate("careful").endswith("do not use: Write, Bash.")


def test_skills_of_a_plugin_are_weakest(tmp_path: Path) -> None:
    write_skill(tmp_path / "plugin/skills", "shared-name", "plugin")
    write_skill(tmp_path / "plugin/skills", "own-name", "plugin")
    write_skill(tmp_path / "home/skills", "shared-name", "user")
    manager = manager_in(tmp_path)
    manager.add_folder(tmp_path / "plugin/skills", trusted=True)
    assert (manager.activate("shared-name"), manager.activate("own-name")) == ("user", "plugin")
    assert {info.scope for info in manager.list()} == {SkillScope.USER, SkillScope.PLUGIN}


def test_a_folder_may_be_a_skill_itself_and_the_file_in_lower_case(tmp_path: Path) -> None:
    place = write_skill(tmp_path / "extra", "single")
    (place / "SKILL.md").rename(place / "skill.md")
    assert names(manager_in(tmp_path, custom_paths=[place])) == ["single"]


def test_many_threads_can_use_one_manager(tmp_path: Path) -> None:
    for number in range(20):
        write_skill(tmp_path / "project/.jaato/skills", f"s{number}", "$ARGUMENTS")
    manager = manager_in(tmp_path)
    wrong: list[str] = []

    def work(number: int) -> None:
        for each in range(30):
            name = f"s{(number + each) % 20}"
            text = manager.activate(name, f"{number}/{each}")
            if text != f"{number}/{each}" or len(manager.list()) < 20:
                wrong.append(text)
            code = f"c{number}"
            manager.register(SkillInfo(code, "x"))
            manager.deregister(code)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert set(manager.active) <= {f"s{number}" for number in range(20)}


def test_info_is_a_value(tmp_path: Path) -> None:
    info = SkillInfo("a", "b")
    assert replace(info, name="c").name == "c"
    assert info.path is None
