"""The parts of a self-contained HTML page: its frame and style, tables, badges, figures."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

DPI = 200


def write_page(path: Path, title: str, parts: Iterable[str]) -> None:
    """Write the parts that there are, under a temporary name first."""
    page = PAGE.format(title=escape(title), style=CSS, body="\n".join(part for part in parts if part))
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".part")
    aside.write_text(page, encoding="utf-8")
    os.replace(aside, path)


@dataclass(frozen=True)
class Illustration:
    """A figure of the report."""

    name: str
    """Fit for a file."""
    title: str
    caption: str
    figure: Figure


def illustrated(illustration: Illustration) -> str:
    buffer = io.BytesIO()
    illustration.figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    width = round(110 * illustration.figure.get_figwidth())
    return f"""<h2>{illustration.title}</h2>
<figure><img src="data:image/png;base64,{data}" alt="{illustration.title}" width="{width}"></figure>
<p class="caption">{illustration.caption}</p>"""


def table(kind: str, columns: Iterable[str], body: Iterable[str]) -> str:
    head = "".join(f"<th>{name}</th>" for name in columns)
    return f"""<div class="scroll"><table class="{kind}">
<thead><tr>{head}</tr></thead>
<tbody>{"".join(body)}</tbody>
</table></div>"""


def table_row(name: str, cells: Iterable[str]) -> str:
    return f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def badge(kind: str, text: str) -> str:
    """``kind``: yes, no, warn or open."""
    return f'<span class="badge {kind}">{text}</span>'


CSS = """
:root {
  color-scheme: light dark;
  --ink: #1d1f23; --muted: #666c75; --line: #e1e4e8; --paper: #ffffff; --soft: #f6f7f9; --caution: #d99a00;
  --yes: #00684a; --yes-soft: #d9f2e8; --no: #a32410; --no-soft: #fbe3de; --warn: #7a5200; --warn-soft: #fdeecb;
  --open: #5b616b; --open-soft: #eceef1;
}
@media (prefers-color-scheme: dark) { :root {
  --ink: #e4e6ea; --muted: #9aa1ab; --line: #353a42; --paper: #16181c; --soft: #1f2228; --caution: #d99a00;
  --yes: #7fdcb8; --yes-soft: #12392c; --no: #ff9d8a; --no-soft: #461b13; --warn: #ffce73; --warn-soft: #43330b;
  --open: #b4bac3; --open-soft: #2d3138;
} }
body {
  margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 56rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .7rem; }
p { max-width: 46rem; }
sup, sub { line-height: 0; }
.about, .caption, .muted { color: var(--muted); }
.about { margin-top: 0; }
.caption { font-size: .84rem; line-height: 1.5; }
.caution { padding: .6rem .9rem; border-left: 3px solid var(--caution); background: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: .45rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
thead th, thead td { border-bottom: 1.5px solid var(--muted); vertical-align: bottom; }
thead th { font-weight: 600; color: var(--muted); line-height: 1.3; }
tbody th { font-weight: 500; }
.verdicts { table-layout: fixed; min-width: 38rem; }
.verdicts thead td { width: 13rem; }
.runs td:last-child { white-space: normal; min-width: 24rem; }
.runs span { white-space: nowrap; }
.numbers td, .numbers thead th:not(:first-child) { text-align: right; }
.numbers td, .numbers tbody th, .runs td, .runs th, .whole, .badge { white-space: nowrap; }
.badge {
  display: inline-block; padding: .05rem .5rem; border-radius: 1rem; font-size: .8rem; font-weight: 600;
}
.yes { color: var(--yes); background: var(--yes-soft); }
.no { color: var(--no); background: var(--no-soft); }
.open { color: var(--open); background: var(--open-soft); }
.warn { color: var(--warn); background: var(--warn-soft); }
figure {
  margin: 0; padding: 1rem; background: #ffffff; border: 1px solid var(--line); border-radius: .5rem;
  text-align: center;
}
figure img { max-width: 100%; height: auto; }
summary { cursor: pointer; }
code { font: .8rem ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
"""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
