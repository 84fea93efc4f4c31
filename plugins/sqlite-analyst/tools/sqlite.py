"""Schema, query and plan of a SQLite database: arguments as JSON on stdin, the answer as JSON on stdout."""

import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

MAX_TEXT = 2_000
READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
PRAGMAS = {"table_info", "table_xinfo", "index_list", "index_info", "foreign_key_list", "table_list"}


class Refused(Exception):
    """Something that this tool does not do, in a sentence for the model."""


def opened(database: str) -> sqlite3.Connection:
    workspace = os.path.realpath(os.environ.get("JAATO_WORKSPACE") or os.getcwd())
    path = os.path.realpath(os.path.join(workspace, database))
    if os.path.commonpath([workspace, path]) != workspace:
        raise Refused(f"'{database}' is outside the workspace")
    if not os.path.isfile(path):
        raise Refused(f"there is no file '{database}' in the workspace")
    with Path(path).open("rb") as file:
        if file.read(16) not in (b"SQLite format 3\0", b""):
            raise Refused(f"'{database}' is not a SQLite database")
    connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)
    connection.set_authorizer(permitted)
    return connection


def permitted(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Reading only: no writes, no other files, no extensions."""
    if action in READING:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if second == "load_extension" else sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and first in PRAGMAS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def schema(connection: sqlite3.Connection) -> dict[str, Any]:
    found = connection.execute("SELECT type, name, tbl_name FROM sqlite_master ORDER BY type, name").fetchall()
    tables = []
    for kind, name, _ in found:
        if kind in ("table", "view"):
            quoted = name.replace('"', '""')
            columns = connection.execute(f'PRAGMA table_info("{quoted}")').fetchall()
            shown = [{"name": row[1], "type": row[2], **({"key": True} if row[5] else {})} for row in columns]
            tables.append({"name": name, "kind": kind, "columns": shown})
    indexes = [{"name": name, "table": table} for kind, name, table in found if kind == "index"]
    return {"tables": tables, "indexes": indexes}


def query(connection: sqlite3.Connection, sql: str, parameters: Any, limit: int) -> dict[str, Any]:
    cursor = connection.execute(sql, parameters or [])
    rows = cursor.fetchmany(limit + 1)
    answer: dict[str, Any] = {
        "columns": [column[0] for column in cursor.description or ()],
        "rows": [[plain(value) for value in row] for row in rows[:limit]],
    }
    if len(rows) > limit:
        answer["note"] = f"there are more than {limit} rows; only the first {limit} are here"
    return answer


def explain(connection: sqlite3.Connection, sql: str) -> dict[str, Any]:
    return {"plan": [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]}


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return f"{value[:MAX_TEXT]}… ({len(value)} characters)"
    return value


def run(action: str, given: dict[str, Any]) -> dict[str, Any]:
    settings = json.loads(os.environ.get("JAATO_PLUGIN_CONFIG") or "{}")
    connection = opened(given["database"])
    try:
        if action == "schema":
            return schema(connection)
        if action == "explain":
            return explain(connection, given["sql"])
        return query(connection, given["sql"], given.get("parameters"), int(settings.get("max_rows", 200)))
    finally:
        connection.close()


def main() -> None:
    try:
        answer = run(sys.argv[1], json.load(sys.stdin))
    except Refused as error:
        answer = {"success": False, "error": str(error)}
    except sqlite3.DatabaseError as error:
        refused = "not authorized" in str(error) or "readonly" in str(error) or "prohibited" in str(error)
        hint = ": only SELECT is possible here, on this one database" if refused else ""
        answer = {"success": False, "error": f"{error}{hint}"}
    except (sqlite3.Warning, sqlite3.Error) as error:  # more than one statement, or a parameter that does not fit
        answer = {"success": False, "error": str(error)}
    sys.stdout.write(json.dumps(answer, ensure_ascii=False, allow_nan=False, default=str))


main()
