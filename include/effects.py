"""What a run would do outside the database: the record that a preview keeps in place of doing it."""

from __future__ import annotations

from dataclasses import dataclass, field

SHOWN = 200
"""How many changes, messages or files of a kind a preview lists; counts are always exact."""


@dataclass(slots=True)
class Effects:
    """Messages, files and calls that a previewed run would have sent, written or made."""

    message_count: int = 0
    messages: list[dict[str, str]] = field(default_factory=list)
    file_count: int = 0
    files: list[dict[str, str]] = field(default_factory=list)
    call_count: int = 0
    calls: list[dict[str, str]] = field(default_factory=list)

    def message(self, to: str, subject: str) -> None:
        """Record a message that would go out."""
        self.message_count += 1
        if len(self.messages) < SHOWN:
            self.messages.append({"to": to, "subject": subject})

    def file(self, name: str, note: str = "") -> None:
        """Record a file that would be written."""
        self.file_count += 1
        if len(self.files) < SHOWN:
            self.files.append({"name": name, "note": note})

    def call(self, service: str, what: str) -> None:
        """Record any other change that would be asked of an outside service."""
        self.call_count += 1
        if len(self.calls) < SHOWN:
            self.calls.append({"service": service, "what": what})
