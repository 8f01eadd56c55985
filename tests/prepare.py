"""What `make test` prepares besides Python packages: Debian's Chromium, where we may install it."""

from __future__ import annotations

import os
import shutil
import subprocess

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found:
        print(f"browser tests use {found}")
    elif os.geteuid() == 0 and shutil.which("apt-get"):
        print("installing Debian's chromium for the browser tests")
        quiet = {"check": False, "stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        subprocess.run(["apt-get", "update", "-qq"], **quiet)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"], env=environment, **quiet
        )
    if not any(shutil.which(name) for name in BROWSERS):
        print("no Chromium: the browser tests will be skipped; install the package chromium to run them")


if __name__ == "__main__":
    main()
