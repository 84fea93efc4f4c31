"""Files that must not be read: links out of the root, special files, files that are too large."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from support.profile_files import Project, codes

from shared.definitions.lint import lint


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def _errors(project: Project) -> list[str]:
    return codes([problem for problem in project.catalogue().problems() if problem.severity == "error"])


def test_a_link_out_of_the_workspace_is_refused_and_named(project: Project, tmp_path: Path) -> None:
    secret = project.write("secret.yaml", "description: secret", into=str(tmp_path / "outside"))
    project.write("good.yaml", "description: d")
    (project.root / ".jaato/profiles/x.yaml").symlink_to(secret)
    catalogue = project.catalogue()
    assert catalogue.find("x") is None
    assert catalogue.get("good").name == "good"
    [problem] = catalogue.problems()
    assert (problem.code, Path(problem.path).name) == ("link-outside", "x.yaml")


@pytest.mark.parametrize("linked", [".jaato", ".jaato/profiles"])
def test_a_folder_that_leads_out_of_the_workspace_is_refused(project: Project, tmp_path: Path, linked: str) -> None:
    outside = tmp_path / "outside"
    for folder in (outside, outside / "profiles"):
        project.write("x.yaml", "description: d", into=str(folder))
    place = project.root / linked
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside)
    catalogue = project.catalogue()
    assert catalogue.find("x") is None
    assert "link-outside" in codes(catalogue.problems())


def test_a_link_within_the_workspace_is_followed(project: Project) -> None:
    target = project.write("real.yaml", "description: d", into="shared-profiles")
    project.write("other.yaml", "description: d")
    (project.root / ".jaato/profiles/x.yaml").symlink_to(target)
    assert project.catalogue().get("x").description == "d"


def test_a_link_in_the_users_folder_stays_in_that_folder(project: Project, tmp_path: Path) -> None:
    secret = project.write("secret.yaml", "description: secret", into=str(tmp_path / "outside"))
    (project.home / "profiles").mkdir()
    (project.home / "profiles/x.yaml").symlink_to(secret)
    assert _errors(project) == ["link-outside"]


def test_dangling_and_circular_links_are_reported(project: Project) -> None:
    folder = project.write("good.yaml", "description: d").parent
    (folder / "gone.yaml").symlink_to(folder / "nothing.yaml")
    (folder / "loop.yaml").symlink_to(folder / "loop.yaml")
    problems = {Path(problem.path).name: problem for problem in project.catalogue().problems()}
    assert problems["gone.yaml"].code == "missing"
    assert problems["loop.yaml"].severity == "error"


def test_special_files_are_refused_without_waiting(project: Project) -> None:
    folder = project.write("good.yaml", "description: d").parent
    os.mkfifo(folder / "fifo.yaml")
    (folder / "folder.yaml").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(folder)  # the path of a socket has to be short
        try:
            server.bind("socket.yaml")
        finally:
            os.chdir(here)
        found = {Path(problem.path).name: problem.text for problem in project.catalogue().problems()}
    assert set(found) == {"fifo.yaml", "folder.yaml", "socket.yaml"}
    assert all("not a regular file" in text for text in found.values())


def test_a_device_behind_a_link_is_refused(project: Project) -> None:
    folder = project.write("good.yaml", "description: d").parent
    (folder / "zero.yaml").symlink_to("/dev/zero")
    assert _errors(project) == ["link-outside"]


def test_a_file_over_the_limit_is_refused_and_one_at_the_limit_is_not(project: Project) -> None:
    start = b"description: d\n#"
    project.write("fits.yaml", start + b"x" * (2**20 - len(start)))
    project.write("over.yaml", start + b"x" * (2**20 - len(start) + 1))
    catalogue = project.catalogue()
    assert catalogue.get("fits").name == "fits"
    [problem] = catalogue.problems()
    assert (problem.code, Path(problem.path).name) == ("too-large", "over.yaml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_or_folder_is_reported(project: Project) -> None:
    path = project.write("x.yaml", "description: d")
    path.chmod(0)
    assert _errors(project) == ["unreadable"]
    path.parent.chmod(0)
    try:
        assert _errors(project) == ["folder-unreadable"]
    finally:
        path.parent.chmod(0o700)


def test_a_hostile_file_name_stays_on_one_line(project: Project) -> None:
    path = project.write("a\n\x1b[31mb.yaml", "plugins: cli\n")
    problems = lint(path)
    assert codes(problems) == ["wrong-value", "name-unsafe"] or codes(problems) == ["name-unsafe", "wrong-value"]
    assert all(str(problem).isprintable() for problem in problems)


def test_a_project_folder_that_is_a_file_is_no_folder(project: Project) -> None:
    project.write("profiles", "not a folder", into=".jaato")
    assert project.catalogue().problems() == ()
