"""How a claim keeps a message: as JSON from which it comes back byte for byte, but small.

A mail is a template with a few words filled in. What all mails of a template have in common, the frame, is
stored once; a message is then only what stands in the gaps: 17 KB become less than one. A message without a
frame, such as an alert, is stored whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from include.errors import BadInput
from include.mail import Message

# Shorter ones are not worth a gap of their own.
_LEAST = 24

_Gaps = tuple[str | None, ...]


class Filling(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """A message without its frame.

    In `text` and `html`: what stands before each piece of the frame (null where the piece is missing), and
    what stands after the last.
    """

    sender: str
    to: str
    subject: str
    headers: dict[str, str]
    text: _Gaps
    html: _Gaps | None


class _Pieces(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    text: tuple[str, ...]
    html: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """What messages of one template have in common: pieces of text in their order.

    `content` is its stored form, and `name` the SHA-256 of that, in hexadecimal digits.
    """

    content: str
    name: str = field(init=False, compare=False)
    _pieces: _Pieces = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", hashlib.sha256(self.content.encode()).hexdigest())
        object.__setattr__(self, "_pieces", msgspec.json.decode(self.content, type=_Pieces))

    @classmethod
    def of(cls, text: str, html: str) -> Frame:
        """Return the frame of mails that read as `text` and `html`, where a null character marks each gap."""
        pieces = _Pieces(
            *(tuple(one for one in whole.split("\x00") if len(one) >= _LEAST) for whole in (text, html))
        )
        return cls(msgspec.json.encode(pieces).decode())

    def pack(self, message: Message) -> str:
        """Return the stored form of any message, on one line; it is small if the message fits the frame."""
        filling = Filling(
            message.sender,
            message.to,
            message.subject,
            dict(message.headers),
            _gaps(message.text, self._pieces.text),
            None if message.html is None else _gaps(message.html, self._pieces.html),
        )
        return msgspec.json.encode(filling).decode()

    def unpack(self, stored: str) -> Message:
        filling = msgspec.json.decode(stored, type=Filling)
        return Message(
            sender=filling.sender,
            to=filling.to,
            subject=filling.subject,
            text=_whole(filling.text, self._pieces.text),
            html=None if filling.html is None else _whole(filling.html, self._pieces.html),
            headers=filling.headers,
        )


def pack(message: Message) -> str:
    """Return the stored form of a message that has no frame, on one line."""
    return message.to_json().decode()


def undamaged(found: Iterable[tuple[str, str]]) -> dict[str, Frame]:
    """Return stored frames by name, of name and content, without those that are not what they were."""
    frames: dict[str, Frame] = {}
    for name, content in found:
        try:
            frame = Frame(content)
        except (msgspec.MsgspecError, UnicodeError):
            continue
        if frame.name == name:
            frames[name] = frame
    return frames


def unpack(stored: str, name: str | None, frames: Mapping[str, Frame]) -> Message:
    """Return the message of a stored form; `name` is that of its frame, if it has one.

    Raises BadInput, which says what is wrong, for anything that is not the stored form of a message.
    """
    frame: Any = None
    if name is not None and (frame := frames.get(name)) is None:
        raise BadInput(f"the stored message's frame {name[:80]!r} is missing or damaged")
    try:
        return Message.from_json(stored.encode()) if frame is None else frame.unpack(stored)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadInput(f"what is stored is not a message: {error}") from error


def _gaps(whole: str, pieces: Sequence[str]) -> _Gaps:
    gaps: list[str | None] = []
    at = 0
    for piece in pieces:
        # Only its beginning is looked for: to look for all of it takes three times as long.
        found = whole.find(piece[:_LEAST], at)
        while found >= 0 and not whole.startswith(piece, found):
            found = whole.find(piece[:_LEAST], found + 1)
        if found < 0:
            gaps.append(None)
        else:
            gaps.append(whole[at:found])
            at = found + len(piece)
    gaps.append(whole[at:])
    return tuple(gaps)


def _whole(gaps: _Gaps, pieces: Sequence[str]) -> str:
    if len(gaps) != len(pieces) + 1 or gaps[-1] is None:
        raise BadInput(f"the stored message has {len(gaps)} gaps, its frame {len(pieces)} pieces")
    parts: list[str] = []
    for gap, piece in zip(gaps[:-1], pieces, strict=True):
        if gap is not None:
            parts += (gap, piece)
    return "".join([*parts, gaps[-1]])
