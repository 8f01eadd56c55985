"""Every page as a picture, light and dark, wide and narrow, to be looked at: `python -m tests.browser.pictures ADDRESS`.

With --readme the picture of the README is made anew as well. The server is one that runs: `make run`.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, sync_playwright

from logstore.settings import ROOT
from logstore.workbench.navigation import PAGES
from tests.browser.conftest import _FLAGS, SCREENSHOTS, chromium, settled

_LINKS = {"Overview": "/?range=30d", "Events": "/Events?range=7d", "Attempts": "/Attempts?range=7d&status=failed"}
_README = ROOT / "docs" / "attempts.png"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", help="such as http://127.0.0.1:8501")
    parser.add_argument("--page", action="append", help="only this one; a link such as /Event?id=… may be given")
    parser.add_argument("--readme", action="store_true")
    given = parser.parse_args()
    SCREENSHOTS.mkdir(exist_ok=True)
    links = {name: name if name.startswith("/") else _LINKS.get(name, f"/{name}") for name in given.page or PAGES}
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium(), args=_FLAGS)
        for (name, link), scheme, width in product(links.items(), ("light", "dark"), (1440, 900)):
            picture(
                browser, given.address + link, SCREENSHOTS / f"{quote(name, '')}-{scheme}-{width}.png", scheme, width
            )
        if given.readme:
            picture(browser, f"{given.address}/Attempts?range=30d", _README, "light", 1280, height=860)
        browser.close()


def picture(browser: Browser, address: str, path: Path, scheme: str, width: int, height: int = 1500) -> None:
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(address)
    settled(page)
    page.wait_for_timeout(2500)  # counts come after the rows
    page.screenshot(path=path)
    context.close()
    print(path)


if __name__ == "__main__":
    main()
