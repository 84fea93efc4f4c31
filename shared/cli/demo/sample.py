"""A small project to record the demo on, so that the picture is the same everywhere."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "README.md": "# Weather station\n\nReads a sensor every minute and draws a chart.\n",
    "CHANGELOG.md": "# Changes\n\n- 0.2: charts in colour\n- 0.1: first readings\n",
    "pyproject.toml": '[project]\nname = "weather-station"\nversion = "0.2"\n',
    "station/sensor.py": "# TODO: more than one sensor\ndef read() -> float:\n    return 21.5\n",
    "station/chart.py": "def draw(values):  # FIXME: an empty list\n    return max(values)\n",
    "tests/test_sensor.py": "from station.sensor import read\n\n\ndef test_read():\n    assert read() > 0\n",
}


def plant(folder: Path) -> Path:
    """Write the project into a folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
