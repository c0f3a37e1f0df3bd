"""docs/paper_map.md: every object imports, every test exists and uses its object, nothing of the paper is left out."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAPER = [
    *(f"Eq. {number}" for number in range(1, 14)),
    *(f"Algorithm {number}" for number in (1, 2)),
    *(f"Table {number}" for number in range(1, 11)),
]


def rows() -> list[tuple[str, str, str]]:
    found = []
    for line in (ROOT / "docs" / "paper_map.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and cells[0] not in ("paper", "---"):
            found.append((cells[0], cells[1].strip("`"), cells[2].strip("`")))
    return found


def test_every_numbered_thing_of_the_paper_is_listed_once():
    names = [re.match(r"(Eq\. \d+|Algorithm \d+|Table \d+)", row[0]) for row in rows()]
    numbered = [name.group(1) for name in names if name]
    assert sorted(numbered) == sorted(PAPER)


@pytest.mark.parametrize(("paper", "where", "test"), rows(), ids=lambda cell: str(cell))
def test_the_object_is_there_and_its_test_uses_it(paper: str, where: str, test: str):
    if where == "not yet":
        assert test == ""
        return
    module, _, name = where.partition(":")
    assert hasattr(importlib.import_module(module), name), f"{paper}: {where} is gone"
    assert name in (ROOT / test).read_text(), f"{paper}: {test} does not mention {name}"


def test_built_equations_are_cited_where_they_are():
    for paper, where, _ in rows():
        if not paper.startswith("Eq.") or where == "not yet":
            continue
        module, _, name = where.partition(":")
        owner = importlib.import_module(module)
        text = (getattr(owner, name).__doc__ or "") + (owner.__doc__ or "")
        cited = {int(n) for n in re.findall(r"\d+", " ".join(re.findall(r"Eqs?\.[^)]*?[\d–, and]+", text)))}
        spans = [range(int(a), int(b) + 1) for a, b in re.findall(r"(\d+)–(\d+)", text)]
        number = int(paper.removeprefix("Eq. "))
        assert number in cited or any(number in span for span in spans), f"{where} does not cite {paper}"
