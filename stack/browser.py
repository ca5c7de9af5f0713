"""A Chromium for the browser tests: `python -m stack.browser` finds one, or installs the system's.

Browsers that Playwright downloads are not used: the system's package comes with every library that it needs.
"""

from __future__ import annotations

import os
import shutil
import sys

from stack import debian
from stack.errors import StackError
from stack.terminal import complain

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
_PACKAGES = ("chromium", "fonts-dejavu-core")


def chromium() -> str | None:
    """Return the path of a Chromium, or None: CHROMIUM if it is set, else the first one on the PATH."""
    asked = os.environ.get("CHROMIUM")
    if asked:
        return shutil.which(asked)
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    return found or (_MAC if os.access(_MAC, os.X_OK) else None)


def install() -> str:
    """Return the path of a Chromium, installing Debian's where this user may.

    Raises StackError, saying what a person has to do, where that is not possible.
    """
    found = chromium()
    if found is not None:
        return found
    debian.install(
        _PACKAGES,
        "the browser tests",
        refused="the browser tests need Chromium and this user can't install it; install it (Debian: apt install "
        "chromium), or set CHROMIUM to its path",
        failed="install chromium by hand, or set CHROMIUM to its path",
    )
    found = chromium()
    if found is None:
        raise StackError("chromium was installed, but is not on the PATH; set CHROMIUM to its path")
    return found


def main() -> int:
    """Make sure that there is a Chromium; return the exit code."""
    try:
        install()
    except StackError as error:
        complain(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
