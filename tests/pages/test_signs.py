"""Signs and their colours: there on every machine, and never without words."""

from __future__ import annotations

import unicodedata

import pandas
import pytest

from logstore.settings import ROOT
from logstore.workbench import signs

# What Source Sans, which Streamlit brings along, has of them.
_DRAWN = set("✔✘▲△◌○●■□◆◀")


def test_pages_use_no_sign_that_their_own_font_does_not_have() -> None:
    sources = [ROOT / "app.py", *(ROOT / "pages").glob("*.py"), *(ROOT / "logstore" / "workbench").rglob("*.py")]
    assert len(sources) > 50
    pictures = {
        (path.name, character)
        for path in sources
        for character in path.read_text()
        if unicodedata.category(character) == "So" or character in "\ufe0f\u200d"
    }
    assert {character for _, character in pictures} <= _DRAWN, sorted(pictures)


@pytest.mark.parametrize(
    ("text", "coloured"),
    [("✔ done", ":green[✔] done"), ("✘ failed", ":red[✘] failed"), ("◌ running", "◌ running"), ("", "")],
)
def test_a_sign_is_coloured_and_its_words_are_not(text: str, coloured: str) -> None:
    assert signs.coloured(text) == coloured


def test_a_table_colours_the_cells_that_begin_with_a_sign() -> None:
    table = pandas.DataFrame({"state": ["✔ done", "✘ failed", "plain"], "other": ["✔", "", ""]})
    drawn = signs.tinted(table, ("state", "not there")).to_html()
    assert drawn.count("color: ") == 2
    assert "#1a7f5a" in drawn and "#c2362b" in drawn


def test_rates_have_one_digit_after_the_point_so_that_they_compare() -> None:
    drawn = signs.percent(pandas.DataFrame({"rate": [1.0, 0.08, 0.2336]}), "rate").to_html()
    assert all(f">{text}<" in drawn for text in ("100.0%", "8.0%", "23.4%"))
