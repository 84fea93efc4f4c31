"""The SQLite analyst that comes with the package: it answers from a real database and cannot change it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from support.plugin_folders import call

from shared.bundled import bundled_folder
from shared.folder_plugins.discovery import open_plugin
from shared.registry import PluginRegistry
from shared.types import ToolResult

AGENT = "sqlite-analyst"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL, note TEXT);"
            "CREATE INDEX by_total ON orders (total);"
            "INSERT INTO orders (total, note) VALUES (10, 'a'), (20.5, NULL), (30, 'c');"
        )
    connection.close()
    return path


@pytest.fixture
def registry() -> PluginRegistry:
    registry = PluginRegistry()
    registry.register_plugin(open_plugin(bundled_folder("plugins") / AGENT), expose=True, config={"max_rows": 2})
    return registry


def ask(
    registry: PluginRegistry,
    database: Path,
    tool: str,
    *,
    name: str = "shop.db",
    profile: str | None = AGENT,
    **args: Any,
) -> ToolResult:
    given = {"database": name, **args}
    return call(registry, f"sqlite_{tool}", given, profile=profile, workspace=database.parent)


def test_it_is_discovered_without_problems() -> None:
    registry = PluginRegistry()
    assert AGENT in registry.discover()
    (found,) = [each for each in registry.folders if each.folder.path.name == AGENT]
    assert found.problems == ()


def test_schema_query_and_plan(registry: PluginRegistry, database: Path) -> None:
    schema = ask(registry, database, "schema").result
    assert schema["tables"][0]["columns"][0] == {"name": "id", "type": "INTEGER", "key": True}
    assert schema["indexes"] == [{"name": "by_total", "table": "orders"}]
    total = ask(registry, database, "query", sql="SELECT sum(total) FROM orders WHERE id < ?", parameters=[3]).result
    assert total == {"columns": ["sum(total)"], "rows": [[30.5]]}
    plan = ask(registry, database, "explain", sql="SELECT * FROM orders WHERE total > 5").result
    assert "by_total" in plan["plan"][0]


def test_rows_are_limited_and_that_is_said(registry: PluginRegistry, database: Path) -> None:
    result = ask(registry, database, "query", sql="SELECT * FROM orders ORDER BY id").result
    assert [row[0] for row in result["rows"]] == [1, 2]
    assert "more than 2 rows" in result["note"]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM orders",
        "INSERT INTO orders (total) VALUES (1)",
        "DROP TABLE orders",
        "CREATE TABLE t (a)",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA writable_schema = 1",
        "ATTACH DATABASE 'other.db' AS other",
        "VACUUM INTO 'copy.db'",
        "SELECT 1; DELETE FROM orders",
        "WITH x AS (SELECT 1) DELETE FROM orders",
        "SELECT load_extension('x')",
        "SELECT writefile('x', 'y')",
        "BEGIN; DELETE FROM orders; COMMIT",
        "",
        "nonsense",
        "SELECT ?",
    ],
)
@pytest.mark.parametrize("tool", ["query", "explain"])
def test_whatever_is_no_reading_is_refused(registry: PluginRegistry, database: Path, sql: str, tool: str) -> None:
    before = database.read_bytes()
    result = ask(registry, database, tool, sql=sql)
    if tool == "query" and sql:
        assert result.is_error
        assert result.result["error"]
    assert database.read_bytes() == before
    assert sorted(path.name for path in database.parent.iterdir()) == ["shop.db"]


@pytest.mark.parametrize("name", ["../outside.db", "/etc/passwd", "missing.db", "notes.txt", "link.db"])
def test_only_databases_of_the_workspace_are_opened(
    registry: PluginRegistry, database: Path, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (database.parent / "notes.txt").write_text("this is no database at all")
    outside = tmp_path_factory.mktemp("outside") / "real.db"
    sqlite3.connect(outside).close()
    (database.parent / "link.db").symlink_to(outside)
    result = ask(registry, database, "schema", name=name)
    assert result.is_error
    assert name in str(result.result)


def test_only_its_own_agent_may_ask(registry: PluginRegistry, database: Path) -> None:
    assert ask(registry, database, "schema", profile=None).error_kind == "denied"
    assert ask(registry, database, "schema", profile="other").error_kind == "denied"
