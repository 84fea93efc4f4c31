"""Plugins of a project load only while it is trusted, and as they were when somebody looked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.plugin_folders import Places, call, command, write_plugin

from shared.errors import PluginError
from shared.folder_plugins.opened import RefusedFolder, open_folder
from shared.folder_plugins.places import plugin_folders
from shared.registry import PluginRegistry

SCRIPT = {"name": "p", "tools": [{"name": "say", "command": "python3", "args": ["say.py"]}]}
CODE = "from .inner import WORD\ndef register(api): api.register_tool('word', 'W.', {}, lambda: WORD)"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places.at(tmp_path, monkeypatch)


def test_an_untrusted_project_runs_nothing_and_is_listed_with_the_reason(places: Places) -> None:
    places.write("p", {"id": "p"}, user=False, init_py="open('ran', 'w')\ndef register(api): pass")
    registry = places.registry()
    assert "p" not in registry.list_available()
    assert "nobody has trusted it" in registry.problems["p"]
    with pytest.raises(PluginError, match=r"plugin 'p' cannot be used: .* nobody has trusted it"):
        registry.expose_tool("p")
    assert not (places.project / "ran").exists()


def test_trust_lets_them_in_and_a_change_shuts_them_out(places: Places) -> None:
    folder = places.write("p", SCRIPT, user=False, say_py="print('one')")
    places.trust()
    registry = places.registry("p")
    assert call(registry, "say").result == "one"
    (folder / "say.py").write_text("print('two')")
    again = places.registry()
    assert "p" not in again.list_available()
    assert "say.py has changed" in again.problems["p"]


def test_code_vouches_or_refuses_without_the_record(places: Places) -> None:
    places.write("p", SCRIPT, user=False, say_py="print('one')")
    registry = PluginRegistry()
    assert "p" in registry.discover(trust_workspace=True)
    places.trust()
    assert "p" not in PluginRegistry().discover(trust_workspace=False)
    assert "p" in PluginRegistry().discover(workspace=places.project)
    assert "p" not in PluginRegistry().discover(workspace=places.home)


def test_a_program_replaced_after_the_check_is_not_the_one_that_runs(places: Places) -> None:
    folder = places.write("p", SCRIPT, user=False, say_py="print('trusted')")
    places.trust()
    registry = places.registry("p")
    (folder / "say.py").write_text("print('evil')")
    assert call(registry, "say").result == "trusted"


def test_python_replaced_after_the_check_is_not_what_is_imported(places: Places) -> None:
    folder = places.write("p", {"id": "p"}, user=False, init_py=CODE, inner_py="WORD = 'trusted'")
    places.trust()
    registry = places.registry()
    (folder / "inner.py").write_text("WORD = 'evil'")
    (folder / "__init__.py").write_text("raise SystemExit('evil')")
    registry.expose_tool("p")
    assert call(registry, "word").result == "trusted"


def test_compiled_code_that_was_smuggled_in_is_never_run(places: Places, tmp_path: Path) -> None:
    folder = places.write("p", {"id": "p"}, user=False, init_py=CODE, inner_py="WORD = 'trusted'")
    places.trust()
    evil = tmp_path / "inner.py"
    evil.write_text("WORD = 'evil'")
    import importlib.util
    import py_compile

    target = Path(importlib.util.cache_from_source(str(folder / "inner.py")))
    target.parent.mkdir()
    py_compile.compile(str(evil), cfile=str(target), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    registry = places.registry("p")
    assert call(registry, "word").result == "trusted"


def test_a_folder_swapped_between_check_and_loading_is_refused(places: Places) -> None:
    folder = places.write("p", SCRIPT, user=False, say_py="print('one')")
    places.trust()
    (found,) = [each for each in plugin_folders(places.project) if each.scope == "project"]
    assert not found.distrust
    folder.rename(places.project / "old")
    write_plugin(folder, SCRIPT, say_py="print('evil')")
    opened = open_folder(found)
    assert isinstance(opened, RefusedFolder)
    assert "say.py is not as it was" in opened.reason


def replace_by_link(folder: Path) -> None:
    folder.rename(folder.parents[2] / "away")
    folder.symlink_to(folder.parents[2] / "away")


def link_inside(folder: Path) -> None:
    (folder / "say.py").rename(folder.parents[2] / "say.py")
    (folder / "say.py").symlink_to(folder.parents[2] / "say.py")


def nest(folder: Path) -> None:
    write_plugin(folder / "inner", {"name": "inner", "tools": [command()]})


def rename(folder: Path) -> None:
    folder.rename(folder.with_name("q"))


def other_manifest(folder: Path) -> None:
    (folder / ".claude-plugin").mkdir()
    (folder / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": "evil"}))


def edit_through_a_hard_link(folder: Path) -> None:
    twin = folder.parents[2] / "twin.py"
    os.link(folder / "say.py", twin)
    twin.write_text("print('evil')")


def hard_link_over_it(folder: Path) -> None:
    evil = folder.parents[2] / "evil.py"
    evil.write_text("print('evil')")
    (folder / "say.py").unlink()
    os.link(evil, folder / "say.py")


def link_the_parent(folder: Path) -> None:
    jaato = folder.parents[1]
    jaato.rename(jaato.with_name("moved"))
    jaato.symlink_to(jaato.with_name("moved"))


def make_it_a_program(folder: Path) -> None:
    (folder / "say.py").chmod(0o755)


def put_a_pipe_there(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def twin_in_capitals(folder: Path) -> None:
    write_plugin(folder.with_name("P"), {"name": "P", "tools": [command("say2")]})


@pytest.mark.parametrize(
    "trick",
    [
        replace_by_link,
        link_inside,
        nest,
        rename,
        other_manifest,
        edit_through_a_hard_link,
        hard_link_over_it,
        link_the_parent,
        make_it_a_program,
        put_a_pipe_there,
        twin_in_capitals,
    ],
)
def test_tricks_end_the_trust(places: Places, trick: Callable[[Path], None]) -> None:
    folder = places.write("p", SCRIPT, user=False, say_py="print('one')")
    places.trust()
    trick(folder)
    registry = places.registry()
    assert set(registry.list_available()).isdisjoint({"p", "q", "inner", "evil", "P"})
    assert any("not trusted" in text for text in registry.problems.values())


def test_a_hard_link_to_a_trusted_program_does_not_reach_the_copy_that_runs(places: Places) -> None:
    folder = places.write("p", SCRIPT, user=False, say_py="print('trusted')")
    places.trust()
    registry = places.registry("p")
    edit_through_a_hard_link(folder)
    assert call(registry, "say").result == "trusted"


def test_a_link_above_the_project_leads_to_where_it_leads_now(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.write("p", SCRIPT, user=False, say_py="print('one')")
    places.trust()
    link = tmp_path / "link"
    link.symlink_to(places.project)
    assert "p" in PluginRegistry().discover(workspace=link)
    evil = tmp_path / "evil"
    write_plugin(evil / ".jaato/plugins/p", SCRIPT, say_py="print('evil')")
    link.unlink()
    link.symlink_to(evil)
    assert "p" not in PluginRegistry().discover(workspace=link)


def test_another_project_in_the_place_of_a_trusted_one_is_not_trusted(places: Places) -> None:
    places.write("p", SCRIPT, user=False, say_py="print('one')")
    places.trust()
    places.project.rename(places.project.with_name("away"))
    places.project.mkdir()
    write_plugin(places.project / ".jaato/plugins/p", SCRIPT, say_py="print('evil')")
    assert "p" not in PluginRegistry().discover(workspace=places.project)


def test_names_that_differ_in_case_only_are_one_name(places: Places) -> None:
    places.write("shout", {"name": "CLI", "tools": [command("shout")]})
    places.write("a", {"name": "same", "tools": [command("first")]})
    places.write("b", {"name": "SAME", "tools": [command("second")]})
    registry = places.registry()
    assert "is taken by" in registry.problems["CLI"]
    assert "is taken by" in registry.problems["SAME"]
    assert "same" in registry.list_available()


def test_a_nested_plugin_belongs_to_the_outer_one_and_is_none_itself(places: Places) -> None:
    nest(places.write("p", SCRIPT, user=False, say_py="print('one')"))
    places.trust()
    found = places.registry().list_available()
    assert "p" in found
    assert "inner" not in found


def test_a_damaged_private_copy_is_made_anew(places: Places) -> None:
    places.write("p", SCRIPT, user=False, say_py="print('one')")
    places.trust()
    places.registry("p")
    (copy,) = (places.home / "trusted-plugins").glob("*/p/say.py")
    assert copy.stat().st_mode & 0o077 == 0
    copy.write_text("print('evil')")
    assert call(places.registry("p"), "say").result == "one"


def test_the_users_own_folder_is_trusted_even_as_a_project(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    home = places.project / ".jaato"
    monkeypatch.setenv("JAATO_HOME", str(home))
    write_plugin(home / "plugins" / "mine", {"name": "mine", "tools": [command()]})
    assert "mine" in places.registry().list_available()
