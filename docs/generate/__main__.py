"""Writes the pages and tables that say what the code says.

python docs/generate                                            # write them
python docs/generate --check                                    # exit code 1 if one differs
python docs/generate --measured benchmarks/results/latest.json  # take over new figures of our own
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

from figures import figures_table, take_over  # noqa: E402
from schema_tables import fields_table  # noqa: E402
from tools_page import tools_page  # noqa: E402

from shared.definitions.profile_schema import PROFILE_SCHEMA_PATH  # noqa: E402
from shared.settings.check import SCHEMA_PATH as SETTINGS_SCHEMA_PATH  # noqa: E402

COMMAND = "python docs/generate"


def pages() -> dict[Path, str]:
    """Every page that is made here, with its text."""
    return {
        DOCS / "tools.md": tools_page(),
        **dict(
            [
                _with_part(ROOT / "README.md", "figures", figures_table()),
                _with_part(DOCS / "profiles.md", "fields", fields_table(PROFILE_SCHEMA_PATH)),
                _with_part(DOCS / "configuration.md", "settings", fields_table(SETTINGS_SCHEMA_PATH)),
            ]
        ),
    }


def _with_part(path: Path, name: str, text: str) -> tuple[Path, str]:
    """A page with the part between `<!-- name -->` and `<!-- /name -->` replaced."""
    former = path.read_text()
    pattern = re.compile(rf"<!-- {name} -->.*?<!-- /{name} -->", re.DOTALL)
    if not pattern.search(former):
        sys.exit(f"{path.name}: expected <!-- {name} --> and <!-- /{name} --> around the part that is made here")
    return path, pattern.sub(lambda _: f"<!-- {name} -->\n\n{text}\n\n<!-- /{name} -->", former)


def main() -> None:
    """Write, or check; nothing of the user's own folder has a say in it."""
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"JAATO_HOME": home, "JAATO_STORE": "off", "JAATO_TRACE_LOG": ""}
        _main()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say whether the pages are up to date")
    parser.add_argument("--measured", type=Path, help="a file that benchmarks/run.py has written")
    given = parser.parse_args()
    if given.measured:
        take_over(given.measured)
    stale = {path: text for path, text in pages().items() if not path.exists() or path.read_text() != text}
    if given.check and stale:
        names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
        sys.exit(f"{names}: not what the code says; run `{COMMAND}`")
    for path, text in stale.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
