"""EXPIRED across every page of a PDF, as a program of its own: a hostile file ends it and nothing else.

Argument: the seconds of processor time that it may take. Standard input: the stamp's length in ASCII and a
line feed, the stamp (a PDF of one page that is no larger than the word), the file. Standard output: the marked
file. Exit code 3: the file can't be opened, and standard error says why in one line.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import sys
from typing import Any, cast

from pypdf import PageObject, PdfReader, PdfWriter, Transformation
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    RectangleObject,
    StreamObject,
)

UNREADABLE = 3
MEMORY = 1024 * 1024 * 1024
MOST_PAGES = 500
_COVERS = 0.88


class UnreadablePdf(Exception):
    """The file is not a PDF that can be opened; the message says why."""


def mark(pdf: bytes, stamp: bytes) -> bytes:
    """Return `pdf` with `stamp` over every page, rising from left to right as the page is seen."""
    reader = PdfReader(io.BytesIO(pdf))
    if reader.is_encrypted:
        raise UnreadablePdf("it is encrypted")
    writer = PdfWriter(clone_from=reader)
    number = len(writer.pages)
    if not 0 < number <= MOST_PAGES:
        raise UnreadablePdf(f"it has {number or 'no'} pages" + (f", over {MOST_PAGES}" if number else ""))
    word = PdfReader(io.BytesIO(stamp)).pages[0]
    form = _added(writer, _form(word.get_contents(), word["/Resources"].clone(writer), word.mediabox))
    size = float(word.mediabox.width), float(word.mediabox.height)
    # What says where text stands would point into pages that hold none any more.
    for name in ("/StructTreeRoot", "/MarkInfo"):
        writer.root_object.pop(name, None)
    # A page may be listed twice; pypdf then hands out copies, of which one is the file's.
    for reference in dict.fromkeys(there for page in writer.pages if (there := page.indirect_reference)):
        _mark_page(writer, cast("PageObject", writer.get_object(reference)), form, size)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _mark_page(writer: PdfWriter, page: PageObject, stamp: Any, size: tuple[float, float]) -> None:
    # The page's own content becomes one drawing: whatever state it leaves behind ends with it.
    media = RectangleObject(_box(page, "/MediaBox"))
    content = _form(page.get_contents(), page.get("/Resources") or DictionaryObject(), media)
    drawings = {"/Original": _added(writer, content), "/Expired": stamp}
    matrix = " ".join(f"{value:.6f}" for value in _placed(page, size))
    drawn = StreamObject()
    drawn.set_data(f"/Original Do\n{matrix} cm\n/Expired Do\n".encode())
    page[NameObject("/Resources")] = DictionaryObject(
        {NameObject("/XObject"): DictionaryObject({NameObject(k): v for k, v in drawings.items()})}
    )
    page[NameObject("/Contents")] = _added(writer, drawn)
    page.pop("/StructParents", None)


def _added(writer: PdfWriter, drawing: StreamObject) -> Any:
    return writer._add_object(drawing)  # noqa: SLF001 - pypdf has no other way


def _form(content: Any, resources: Any, box: RectangleObject) -> StreamObject:
    """Return a drawing with the content of a page."""
    form = StreamObject()
    form.set_data(content.get_data() if content is not None else b"")
    form = form.flate_encode()
    form.update(
        {
            NameObject("/Type"): NameObject("/XObject"),
            NameObject("/Subtype"): NameObject("/Form"),
            NameObject("/BBox"): ArrayObject(FloatObject(value) for value in box),
            NameObject("/Resources"): resources,
        }
    )
    return form


def _placed(page: DictionaryObject, size: tuple[float, float]) -> tuple[float, ...]:
    """Return the matrix that puts a stamp of `size` on the page's diagonal, as the page is seen."""
    left, low, right, high = _visible(page)
    width, height = right - left, high - low
    turned = int(page.get("/Rotate") or 0) // 90 * 90 % 360
    across, up = (height, width) if turned in (90, 270) else (width, height)
    angle = math.atan2(up, across)
    wide = size[0] * math.cos(angle) + size[1] * math.sin(angle)
    tall = size[0] * math.sin(angle) + size[1] * math.cos(angle)
    scale = _COVERS * min(across / wide, up / tall)
    # The page is seen turned clockwise; turned back, its lower left corner lies elsewhere.
    corner = {0: (left, low), 90: (right, low), 180: (right, high), 270: (left, high)}[turned]
    return (
        Transformation()
        .translate(-size[0] / 2, -size[1] / 2)
        .scale(scale)
        .rotate(math.degrees(angle))
        .translate(across / 2, up / 2)
        .rotate(turned)
        .translate(*corner)
        .ctm
    )


def _visible(page: DictionaryObject) -> tuple[float, float, float, float]:
    media, crop = _box(page, "/MediaBox"), _box(page, "/CropBox")
    seen = max(media[0], crop[0]), max(media[1], crop[1]), min(media[2], crop[2]), min(media[3], crop[3])
    return seen if seen[0] < seen[2] and seen[1] < seen[3] else media


def _box(page: DictionaryObject, name: str) -> tuple[float, float, float, float]:
    # pypdf has put what a page inherits into the page.
    value = page.get(name) or page.get("/MediaBox") or RectangleObject((0, 0, 612, 792))
    one, two, three, four = (float(number.get_object()) for number in value)
    box = min(one, three), min(two, four), max(one, three), max(two, four)
    if not all(math.isfinite(edge) for edge in box) or box[0] == box[2] or box[1] == box[3]:
        raise UnreadablePdf(f"a page has no size: {name} is {list(box)}")
    return box


def main() -> int:
    """Mark the file on standard input, within bounds of time and memory."""
    _bound(int(sys.argv[1]))
    # pypdf warns of every oddity; the one line on standard error is ours.
    logging.disable()
    given = sys.stdin.buffer.read()
    length, _, rest = given.partition(b"\n")
    stamp, pdf = rest[: int(length)], rest[int(length) :]
    try:
        marked = mark(pdf, stamp)
    except UnreadablePdf as error:
        sys.stderr.write(str(error))
        return UNREADABLE
    except MemoryError:
        sys.stderr.write(f"it needs more than {MEMORY // 1024**2} MB")
        return UNREADABLE
    except Exception as error:  # noqa: BLE001 - a damaged file can make the parser fail in any way
        sys.stderr.write(f"it is damaged: {type(error).__name__}: {error}")
        return UNREADABLE
    sys.stdout.buffer.write(marked)
    return 0


def _bound(seconds: int) -> None:
    import resource  # noqa: PLC0415 - of Unix alone, and of the program alone

    # At the first bound of time the program ends by SIGXCPU, which says why; the second is for none to pass.
    for kind, most, beyond in (
        (resource.RLIMIT_CPU, seconds, seconds + 5),
        (resource.RLIMIT_AS, MEMORY, MEMORY),
    ):
        # macOS knows no bound of memory; the time is bound all the same.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, beyond))


if __name__ == "__main__":
    sys.exit(main())
