"""Write the tables of published results into the README. Run it after results change: ``make readme``."""

from __future__ import annotations

import re
from pathlib import Path

from consmimic.evaluation.report import markdown_table
from consmimic.evaluation.results import read_rows

ROOT = Path(__file__).parent.parent
MARKED = re.compile(r"(<!-- results: (\S+) -->\n).*?(<!-- end of results -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """The text with the table of each marked experiment made anew from its rows."""

    def table(match: re.Match[str]) -> str:
        rows = read_rows(ROOT / "results" / match[2] / "summary.json")
        return f"{match[1]}{markdown_table(rows).strip()}\n{match[3]}"

    return MARKED.sub(table, text)


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(with_tables(readme.read_text()))
