"""A message comes back from its stored form byte for byte, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.errors import BadInput
from include.mail import Message
from include.stored_message import Frame, pack, undamaged, unpack

LAYOUT = [f"<tr><td style='width:{n}px'>{n * n}</td></tr><p>" * 9 for n in range(10)]
FRAME = Frame.of("Hello \x00,\nyour test ends on \x00.\nIt is over there.\n\x00", "\x00".join(LAYOUT))
KNOWN = undamaged([(FRAME.name, FRAME.content)])
MAIL = Message(
    "a@b.test",
    "c@d.test",
    "Your test",
    "Hello Ñ,\nyour test ends on 1 May.\nIt is over there.\n",
    "Ñ".join(LAYOUT),
)

# JSON in UTF-8 has no form for half a character.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
# The frame's own pieces, whole, cut and repeated, in any order.
HTML = st.lists(TEXT | st.sampled_from(LAYOUT) | st.sampled_from(LAYOUT).map(lambda one: one[:40]))
MESSAGES = st.builds(
    Message, TEXT, TEXT, TEXT, TEXT, st.none() | HTML.map("".join), st.dictionaries(TEXT, TEXT, max_size=3)
)


@given(MESSAGES)
def test_any_message_comes_back(message: Message) -> None:
    """Whatever stands in a mail, and however little of its template is left in it, it goes out as claimed."""
    for stored, name in ((pack(message), None), (FRAME.pack(message), FRAME.name)):
        back = unpack(stored, name, KNOWN)
        assert (back, back.to_json()) == (message, message.to_json())
        # A statement takes many at once, one a line.
        assert "\n" not in stored


def test_what_a_mail_shares_with_its_template_is_not_stored() -> None:
    """The point of it: 10,000 mails are a few megabytes, not hundreds."""
    assert len(FRAME.pack(MAIL)) < len(MAIL.to_json()) / 20


def test_a_line_that_one_mail_lacks_costs_little() -> None:
    """A mail without a kit's number misses a piece of the frame: the pieces around it still count."""
    without = replace(MAIL, html="Ñ".join([*LAYOUT[:4], *LAYOUT[5:]]))
    assert unpack(FRAME.pack(without), FRAME.name, KNOWN) == without
    assert len(FRAME.pack(without)) < len(MAIL.to_json()) / 20


def test_the_form_of_earlier_revisions() -> None:
    """What was claimed before an upgrade is the JSON itself, without a frame."""
    assert unpack(MAIL.to_json().decode(), None, {}) == MAIL


PACKED = FRAME.pack(MAIL)


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        ("", "not a message"),
        (PACKED[:-1], "not a message"),
        (PACKED + "x", "not a message"),
        ("[]", "not a message"),
        ('["a","b","c",{},[],[],[]]', "not a message"),
        (PACKED.replace("Ñ", "\ud800"), "not a message"),
        (MAIL.to_json().decode(), "not a message"),
        ('["a","b","c",{},["text","more"],null]', "2 gaps, its frame"),
        ('["a","b","c",{},[],null]', "0 gaps, its frame"),
        (PACKED.replace(',""]', ",null]"), "gaps, its frame"),
    ],
    ids=range(10),
)
def test_damaged(stored: str, why: str) -> None:
    """A row that something else wrote, or a disk spoilt, must say so and not go out as something else."""
    with pytest.raises(BadInput, match=why):
        unpack(stored, FRAME.name, KNOWN)


@pytest.mark.parametrize(
    "content", [None, FRAME.content.replace("width", "Width"), "", "[]", "{\ud800}"], ids=range(5)
)
def test_without_its_frame(content: Any) -> None:
    """A frame is what its name says, or none; the message alone is no message."""
    known = undamaged([] if content is None else [(FRAME.name, content)])
    with pytest.raises(BadInput, match=f"frame '{FRAME.name}' is missing or damaged"):
        unpack(PACKED, FRAME.name, known)
    with pytest.raises(BadInput, match="not a message"):
        unpack(PACKED, None, KNOWN)
