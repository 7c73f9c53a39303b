"""What comparisons over tables keep of what they measure."""

import json
import sys

from bench.over_tables import run


def measured(name, draws, models):
    rows = [{"table": name, "epsilon": 1.0, "level": level, "draws": draws} for level in (0.5, 0.9)]
    names = models or {"ours", "rival"}
    return [row | {model: {"d2": row["level"]} for model in sorted(names)} for row in rows], f"{name}: 0 s"


def test_every_level_of_a_table_is_kept(tmp_path, monkeypatch):
    file = tmp_path / "found.json"
    arguments = ["bench", "--json", str(file), "--jobs", "1", "--draws", "3"]
    for more in ([], ["--models", "ours"]):
        monkeypatch.setattr(sys, "argv", [*arguments, *more])
        run("found", "", ["wine", "food"], measured, tell=(), settings={})
        rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
        levels = [(row["table"], row["level"], row["rival"]["d2"]) for row in rows]
        assert levels == [("wine", 0.5, 0.5), ("wine", 0.9, 0.9), ("food", 0.5, 0.5), ("food", 0.9, 0.9)]
