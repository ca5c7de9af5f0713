"""Where the embedded stack keeps what it makes: `.almanac/` in the project folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from stack.errors import StackError

PROJECT = Path(__file__).resolve().parent.parent
"""The folder of the project itself."""


@dataclass(frozen=True, slots=True)
class Home:
    """The folders and files of one embedded stack; `project` holds its dags, plugins and include."""

    folder: Path
    project: Path = PROJECT

    @property
    def environment(self) -> Path:
        """What reaches this stack: addresses, logins, database URIs; readable by its owner alone."""
        return self.folder / "env"

    @property
    def airflow(self) -> Path:
        return self.folder / "airflow"

    @property
    def passwords(self) -> Path:
        """The logins of Airflow's simple auth manager."""
        return self.airflow / "passwords.json"

    @property
    def postgres(self) -> Path:
        return self.folder / "pgdata"

    @property
    def outbox(self) -> Path:
        """Mail that the embedded stack would have sent, as .eml files."""
        return self.folder / "outbox"

    @property
    def storage(self) -> Path:
        return self.folder / "storage"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def started(self) -> Path:
        """The processes that a running stack has started."""
        return self.folder / "started.json"

    @property
    def lab(self) -> Path:
        """The results that the lab on loopback serves."""
        return self.folder / "lab.json"

    @property
    def feeds(self) -> Path:
        """What the feed server on loopback serves."""
        return self.folder / "feeds.json"

    @property
    def gazettes(self) -> Path:
        """What the gazettes on loopback publish; not there, they publish nothing."""
        return self.folder / "gazettes.json"

    @property
    def letters(self) -> Path:
        """What the mailbox on loopback holds."""
        return self.folder / "letters.json"

    @property
    def settings(self) -> Path:
        return self.project / "airflow_settings.yaml"

    def make(self) -> None:
        """Make the folders that are missing, open to their owner alone. Raises StackError if one can't be."""
        # Others may pass but not look: as root, Postgres runs as a user of its own beneath this folder.
        for folder, mode in (
            (self.folder, 0o711), (self.airflow, 0o700), (self.outbox, 0o700), (self.storage, 0o700),
            (self.logs, 0o700),
        ):  # fmt: skip
            try:
                folder.mkdir(mode=mode, parents=True, exist_ok=True)
            except FileExistsError:
                raise StackError(f"{folder}: is no folder; move it away") from None
            except OSError as error:
                raise StackError(f"{folder}: can't be made: {error.strerror}") from None


def here() -> Home:
    """Return the stack's home: ALMANAC_HOME, or `.almanac/` in the project folder."""
    return Home(Path(os.environ.get("ALMANAC_HOME") or PROJECT / ".almanac").absolute())


def write_private(path: Path, content: str) -> None:
    """Replace a file by one that only its owner can read, never by halves. Raises StackError if it can't."""
    fresh = path.with_name(path.name + ".new")
    try:
        fresh.unlink(missing_ok=True)
        with os.fdopen(
            os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(content)
        fresh.replace(path)
    except OSError as error:
        raise StackError(f"{path}: can't be written: {error.strerror}") from None
