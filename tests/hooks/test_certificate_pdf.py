"""Certificates: what is printed, and the mark of an expired one, seen as a reader of the PDF sees it."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import zlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pypdfium2
import pytest
from PIL import Image, ImageChops, ImageStat
from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DecodedStreamObject,
    DictionaryObject,
    EncodedStreamObject,
    FloatObject,
    NameObject,
    NumberObject,
    RectangleObject,
)

from hooks.certificate_pdf import LARGEST_PDF, TypstPrinter, certificate_printer
from include.clearpath.certificate_pdf import CertificatePrinter, CertificateText
from include.errors import BadInput, Permanent, Refused

CERTIFICATE = CertificateText(
    number="CP-2027-000148",
    holder="Zoë Tremblay-O\u2019Connor",
    address="1204 10 Avenue SW\nCalgary, Alberta T3C 0J7",
    kit_serial_number="K-20391",
    value_bq_m3=Decimal("148.0"),
    below_detection=False,
    issued_on=date(2027, 3, 1),
    valid_until=date(2029, 3, 1),
    contractor="Prairie Radon Ltd.",
)


@pytest.fixture(scope="module")
def printer() -> TypstPrinter:
    """Return the printer as it is without a connection."""
    return certificate_printer()


def text_of(pdf: bytes) -> list[str]:
    """Return each page's text, without the breaks inside long words."""
    document = pypdfium2.PdfDocument(pdf)
    try:
        return [page.get_textpage().get_text_range().replace("\u200b", "") for page in document]
    finally:
        document.close()


def picture_of(pdf: bytes, page: int = 0) -> Image.Image:
    """Return a page as a reader sees it, one pixel a point."""
    document = pypdfium2.PdfDocument(pdf)
    try:
        return document[page].render(scale=1).to_pil().convert("RGB")
    finally:
        document.close()


def test_a_certificate_says_all_it_is_given(printer: CertificatePrinter) -> None:
    """S2: both units, the guideline and every fact must be on the one page that a customer prints."""
    (page,) = text_of(printer.render(CERTIFICATE))
    for said in (
        "CP-2027-000148", "Zoë Tremblay-O\u2019Connor", "1204 10 Avenue SW", "Calgary, Alberta T3C 0J7",
        "K-20391", "148 Bq/m³", "4.0 pCi/L", "Health Canada guideline: 200 Bq/m³",
        "below Health Canada\u2019s guideline", "1 March 2027", "1 March 2029", "Prairie Radon Ltd.",
    ):  # fmt: skip
        assert said in page


def test_the_same_certificate_gives_the_same_bytes(printer: CertificatePrinter) -> None:
    """Ruling 3: a run that is killed and repeated must find the file that it wrote, in any process."""
    plain = printer.render(CERTIFICATE)
    marked = printer.mark_expired(plain)
    assert (printer.render(CERTIFICATE), printer.mark_expired(plain)) == (plain, marked)
    code = (
        "import sys, tests.hooks.test_certificate_pdf as this;"
        "sys.stdout.buffer.write(this.certificate_printer().render(this.CERTIFICATE))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert done.stdout == plain


def test_another_certificate_gives_other_bytes(printer: CertificatePrinter) -> None:
    """The promise of equal bytes must not come from a cache that forgets to look."""
    assert printer.render(CERTIFICATE) != printer.render(replace(CERTIFICATE, holder="Someone Else"))


@pytest.mark.parametrize(
    ("value", "below", "expected"),
    [
        ("148", False, ("148 Bq/m³", "4.0 pCi/L", "below Health Canada\u2019s guideline")),
        ("199.995", False, ("200 Bq/m³", "below Health Canada\u2019s guideline")),
        ("200", False, ("200 Bq/m³", "5.41 pCi/L", "at Health Canada\u2019s guideline")),
        ("200.01", False, ("200.01 Bq/m³", "above Health Canada\u2019s guideline")),
        ("1480", False, ("1,480 Bq/m³", "40.0 pCi/L", "above Health Canada\u2019s guideline")),
        ("10000000", False, ("10,000,000 Bq/m³", "above Health Canada\u2019s guideline")),
        ("0", False, ("0 Bq/m³", "0.0 pCi/L")),
        ("0.037", False, ("0.04 Bq/m³", "0.001 pCi/L")),
        ("1E-30", False, ("0 Bq/m³",)),
        ("11.1", True, ("< 11.1 Bq/m³", "< 0.3 pCi/L", "below the test\u2019s detection limit")),
        ("250", True, ("< 250 Bq/m³", "could not tell")),
    ],
)
def test_the_value_in_both_units(
    printer: CertificatePrinter,
    value: str,
    below: bool,  # noqa: FBT001 - a case's column
    expected: Sequence[str],
) -> None:
    """S2: a value reads the same in both units, and the limit of detection never reads as a result."""
    (page,) = text_of(printer.render(replace(CERTIFICATE, value_bq_m3=Decimal(value), below_detection=below)))
    for said in expected:
        assert said in page


@pytest.mark.parametrize("value", ["NaN", "sNaN", "Infinity", "-1", "1E+30"])
def test_what_is_no_value_is_refused(printer: CertificatePrinter, value: str) -> None:
    """S2: a certificate must never state a number that can't be one."""
    with pytest.raises(BadInput, match=r"CP-2027-000148: value .* is no concentration"):
        printer.render(replace(CERTIFICATE, value_bq_m3=Decimal(value)))


HOSTILE = '#panic("x") $x$ *bold* _it_ `raw` <label> @ref \\ #read("/etc/hosts") {{7*7}} <b>&amp;</b> "q"'


def test_text_is_never_markup(printer: CertificatePrinter) -> None:
    """E4's kind of fault: a name with the typesetter's signs is printed as written."""
    certificate = replace(CERTIFICATE, holder=HOSTILE, address=HOSTILE, contractor=HOSTILE, number=HOSTILE)
    printed = " ".join(" ".join(text_of(printer.render(certificate))).split())
    assert printed.count(HOSTILE) >= 4


def test_characters_without_a_shape_are_left_out(printer: CertificatePrinter) -> None:
    """Control, direction and private characters would turn the text around, or be refused by the format."""
    certificate = replace(CERTIFICATE, holder="A\x00B\x1bC\u202eD\ue000E\ud800F\ufeffG\u2028H")
    assert "A B C D E F G H" in text_of(printer.render(certificate))[0]


def test_a_long_word_breaks_and_nothing_is_lost(printer: CertificatePrinter) -> None:
    """F7: one word of 3,000 letters flows over lines and pages instead of running off the edge."""
    word = "".join(chr(ord("a") + n * 7 % 26) for n in range(3_000))
    for changed in ({"holder": word}, {"address": word}, {"contractor": word}, {"kit_serial_number": word}):
        pdf = printer.render(replace(CERTIFICATE, **changed))
        pages = text_of(pdf)
        flowing = re.sub(r"CP-2027-000148 · page \d of \d", "", " ".join(pages))
        assert word in "".join(flowing.split())
        for page in range(len(pages)):
            assert edge_is_clean(picture_of(pdf, page))


def edge_is_clean(picture: Image.Image) -> bool:
    """Say whether nothing stands between the frame and the paper's edge."""
    wide, high = picture.size
    outside = [(0, 0, 28, high), (wide - 28, 0, wide, high), (0, 0, wide, 28), (0, high - 28, wide, high)]
    return all(picture.crop(edge).getextrema() == ((255, 255),) * 3 for edge in outside)


def test_twenty_thousand_words_complete(printer: CertificatePrinter) -> None:
    """F7: a text without measure fills pages, and every word of it is there."""
    words = [f"word{n}" for n in range(20_000)]
    for changed in ({"holder": " ".join(words)}, {"contractor": " ".join(words)}):
        pages = text_of(printer.render(replace(CERTIFICATE, **changed)))
        assert len(pages) > 10
        assert set(words) <= set(" ".join(pages).split())


def test_a_text_without_end_is_refused(printer: CertificatePrinter) -> None:
    """A certificate is a page, not a way to keep a worker busy."""
    with pytest.raises(BadInput, match="longer than 500,000"):
        printer.render(replace(CERTIFICATE, holder="x" * 600_000))


def test_a_name_beyond_the_built_in_fonts(printer: CertificatePrinter) -> None:
    """A letter without a shape would be left out of a customer's name; it is found, or it is an error."""
    for name in ("ᐃᓄᒃ", "王小明", "\U0001f3f4\U000e0067", "𒀀"):
        try:
            pages = text_of(printer.render(replace(CERTIFICATE, holder=name)))
        except Permanent as error:
            assert "no font here shows" in str(error)  # noqa: PT017 - one of two right ends, by the machine's fonts
        else:
            assert name[0] in pages[0]


def test_greek_and_cyrillic_names_need_no_font(printer: CertificatePrinter) -> None:
    """The built-in fonts hold them, so every machine prints them alike."""
    (page,) = text_of(printer.render(replace(CERTIFICATE, holder="Ελένη Łukasz Ольга Nguyễn")))
    assert "Ελένη Łukasz Ольга Nguyễn" in page


def test_empty_facts_leave_no_row(printer: CertificatePrinter) -> None:
    """An order without a kit or a contractor must not print their empty names."""
    certificate = replace(CERTIFICATE, kit_serial_number=None, contractor=None, holder="", address="")
    (page,) = text_of(printer.render(certificate))
    assert "Test kit" not in page
    assert "Contractor" not in page


def test_a_certificate_is_archival(printer: CertificatePrinter) -> None:
    """PDF/A keeps the file readable for its years, and is what finds a missing letter."""
    root = PdfReader(io.BytesIO(printer.render(CERTIFICATE))).root_object
    metadata = cast("Any", root["/Metadata"]).get_data()
    assert b"<pdfaid:part>2<" in metadata
    assert b"<pdfaid:conformance>U<" in metadata


# The mark


def page_of(
    media: Sequence[float], turned: int = 0, crop: Sequence[float] | None = None, content: bytes = b""
) -> bytes:
    """Return a PDF of one page."""
    writer = PdfWriter()
    page = writer.add_blank_page(width=10, height=10)
    page[NameObject("/MediaBox")] = ArrayObject(FloatObject(edge) for edge in media)
    if crop:
        page[NameObject("/CropBox")] = RectangleObject(tuple(crop))
    if turned:
        page[NameObject("/Rotate")] = NumberObject(turned)
    stream = DecodedStreamObject()
    stream.set_data(content)
    page[NameObject("/Contents")] = writer._add_object(stream)  # noqa: SLF001 - pypdf has no other way
    return bytes_of(writer)


HELVETICA = DictionaryObject(
    {
        NameObject("/F1"): DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
    }
)


def joined(files: Sequence[bytes]) -> bytes:
    """Return one PDF of the pages of several."""
    writer = PdfWriter()
    for file in files:
        writer.append(io.BytesIO(file))
    return bytes_of(writer)


def bytes_of(writer: PdfWriter) -> bytes:
    """Return what a writer writes."""
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def difference(one: Image.Image, other: Image.Image) -> float:
    """Return the mean difference of two pictures of one size, of 255."""
    assert one.size == other.size
    return sum(ImageStat.Stat(ImageChops.difference(one, other)).mean) / 3


@pytest.fixture(scope="module")
def upright(printer: CertificatePrinter) -> Image.Image:
    """Return the marked blank page of 400 by 600 that is not turned: what all others must look like."""
    picture = picture_of(printer.mark_expired(page_of((0, 0, 400, 600))))
    assert picture.size == (400, 600)
    return picture


def test_the_mark_rises_over_the_page(upright: Image.Image) -> None:
    """Spec 2.3: red, across the page from the lower left to the upper right."""
    red = [(x, y) for y in range(600) for x in range(400) if is_red(upright.getpixel((x, y)))]
    assert len(red) > 10_000
    xs, ys = [x for x, _ in red], [y for _, y in red]
    assert max(xs) - min(xs) > 300
    assert max(ys) - min(ys) > 400
    for corner, marked in (((0, 400), True), ((250, 0), True), ((0, 0), False), ((250, 400), False)):
        inside = [1 for x, y in red if corner[0] <= x < corner[0] + 150 and corner[1] <= y < corner[1] + 200]
        assert (len(inside) > 500) is marked


def is_red(pixel: Any) -> bool:
    """Say whether a pixel has the mark's colour."""
    red, green, blue = pixel
    return red > 150 and green < red - 60 and blue < red - 60


PAGES: tuple[tuple[Sequence[float], int, Sequence[float] | None], ...] = (
    ((0, 0, 400, 600), 0, None),
    ((0, 0, 600, 400), 90, None),
    ((0, 0, 400, 600), 180, None),
    ((0, 0, 600, 400), 270, None),
    ((0, 0, 600, 400), -90, None),
    ((0, 0, 600, 400), 450, None),
    ((0, 0, 400, 600), 360, None),
    ((-200, 300, 200, 900), 0, None),
    ((-900, -300, -300, 100), 90, None),
    ((1000, 2000, 1400, 2600), 180, None),
    ((-900, 300, -300, 700), 270, None),
    ((400, 600, 0, 0), 0, None),
    ((0, 0, 1000, 1000), 0, (100, 200, 500, 800)),
    ((0, 0, 1000, 1000), 90, (100, 200, 700, 600)),
    ((-50, -50, 1000, 1000), 180, (100, 200, 500, 800)),
    ((0, 0, 1000, 1000), 270, (100, 200, 700, 600)),
    ((0, 0, 400, 600), 0, (-100, -100, 900, 900)),
    ((0, 0, 600, 400), 90, (-100, -100, 900, 900)),
)


def test_the_mark_is_upright_on_every_page(printer: CertificatePrinter, upright: Image.Image) -> None:
    """Spec 2.3: whatever a page's rotation, origin and crop, the mark is seen upright and whole."""
    marked = printer.mark_expired(joined([page_of(*page) for page in PAGES]))
    seen = [difference(picture_of(marked, number), upright) for number in range(len(PAGES))]
    assert [page for page, apart in zip(PAGES, seen, strict=True) if apart > 1.5] == []
    assert [page.count("EXPIRED") for page in text_of(marked)] == [1] * len(PAGES)


CONTENTS = (
    b"q 0.01 0 0 0.01 9000 9000 cm",
    b"Q Q Q 0.01 0 0 0.01 9000 9000 cm",
    b"0 0 1 1 re W n",
    b"BT /F1 12 Tf (open string",
    b"/OC /Hidden BDC",
    b"<< /Open [",
    b"/GS0 gs 1 1 1 rg",
    b"not a content stream at all \xff\xfe",
)


def test_no_content_hides_the_mark(printer: CertificatePrinter, upright: Image.Image) -> None:
    """A page that leaves its drawing state open, by mistake or not, must not move or swallow the mark."""
    marked = printer.mark_expired(joined([page_of((0, 0, 400, 600), content=some) for some in CONTENTS]))
    seen = [difference(picture_of(marked, number), upright) for number in range(len(CONTENTS))]
    assert [content for content, apart in zip(CONTENTS, seen, strict=True) if apart > 1.5] == []


def test_the_page_below_stays_as_it_was(printer: CertificatePrinter) -> None:
    """The mark is see-through: an expired certificate still shows what it said."""
    plain = printer.render(CERTIFICATE)
    marked = printer.mark_expired(plain)
    before, after = text_of(plain), text_of(marked)
    assert [page.replace("EXPIRED", "").split() for page in after] == [page.split() for page in before]
    assert "EXPIRED" in after[0]
    assert 1 < difference(picture_of(plain), picture_of(marked)) < 40


def test_every_page_is_marked_once(printer: CertificatePrinter) -> None:
    """A long certificate has pages of which each can be shown alone; pages that share all must not add up."""
    plain = printer.render(replace(CERTIFICATE, contractor="word " * 3_000))
    marked = text_of(printer.mark_expired(plain))
    assert len(marked) == len(text_of(plain)) > 3
    assert [page.count("EXPIRED") for page in marked] == [1] * len(marked)


def test_what_pages_inherit_counts(printer: CertificatePrinter, upright: Image.Image) -> None:
    """Rotation, boxes and fonts may be said once, above the pages."""
    hello = b"BT /F1 20 Tf 500 300 Td (Hello) Tj ET"
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(page_of((0, 0, 10, 10), content=hello))))
    page = writer.pages[0]
    above = cast("Any", page["/Parent"])
    for name in ("/MediaBox", "/Rotate", "/Resources"):
        page.pop(name, None)
    above[NameObject("/MediaBox")] = RectangleObject((0, 0, 1000, 1000))
    above[NameObject("/CropBox")] = RectangleObject((100, 100, 700, 500))
    above[NameObject("/Rotate")] = NumberObject(90)
    above[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): HELVETICA})
    marked = printer.mark_expired(bytes_of(writer))
    assert difference(picture_of(marked), upright) < 1.5
    assert "Hello" in text_of(marked)[0]


def test_a_page_that_stands_twice_is_marked_once(printer: CertificatePrinter, upright: Image.Image) -> None:
    """One page object can be listed twice; two marks over each other would be darker."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(page_of((0, 0, 400, 600)))))
    above = cast("Any", writer.pages[0]["/Parent"])
    above[NameObject("/Kids")] = ArrayObject([*above["/Kids"], *above["/Kids"]])
    above[NameObject("/Count")] = NumberObject(2)
    marked = printer.mark_expired(bytes_of(writer))
    assert [page.count("EXPIRED") for page in text_of(marked)] == [1, 1]
    assert difference(picture_of(marked, 0), upright) < 1.5
    assert difference(picture_of(marked, 1), upright) < 1.5


def test_pictures_and_split_content_survive(printer: CertificatePrinter) -> None:
    """Other programs split a page's content over streams, and reuse one for several pages."""
    writer = PdfWriter()
    streams = []
    for part in (b"0 0 1 rg 0 0 100", b"50 re f", b"BT /F1 20 Tf 20 300 Td (Hello) Tj ET"):
        stream = DecodedStreamObject()
        stream.set_data(part)
        streams.append(writer._add_object(stream))  # noqa: SLF001 - pypdf has no other way
    for _ in range(2):
        page = writer.add_blank_page(width=400, height=600)
        page[NameObject("/Contents")] = ArrayObject(streams)
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): HELVETICA})
    marked = printer.mark_expired(bytes_of(writer))
    assert all("Hello" in page and "EXPIRED" in page for page in text_of(marked))
    assert picture_of(marked, 1).getpixel((50, 590)) == (0, 0, 255)


def test_a_marked_file_can_be_marked_again(printer: CertificatePrinter) -> None:
    """Ruling 2: a run that marks a marked file must not fail."""
    twice = printer.mark_expired(printer.mark_expired(printer.render(CERTIFICATE)))
    assert text_of(twice)[0].count("EXPIRED") == 2


def encrypted(password: str) -> bytes:
    """Return a PDF that asks for a password, which may be empty."""
    writer = PdfWriter()
    writer.add_blank_page(width=100, height=100)
    writer.encrypt(user_password=password, owner_password="owner", algorithm="AES-256")
    return bytes_of(writer)


def without_pages() -> bytes:
    """Return a PDF whose list of pages is empty."""
    return bytes_of(PdfWriter())


def packed_pages(number: int, size: int) -> bytes:
    """Return a small PDF of pages whose content unpacks to so many bytes each."""
    writer = PdfWriter()
    stream = EncodedStreamObject()
    stream._data = zlib.compress(b"q Q " * (size // 4))  # noqa: SLF001 - pypdf would unpack it
    stream[NameObject("/Filter")] = NameObject("/FlateDecode")
    content = writer._add_object(stream)  # noqa: SLF001 - pypdf has no other way
    for _ in range(number):
        writer.add_blank_page(width=100, height=100)[NameObject("/Contents")] = content
    return bytes_of(writer)


def endless() -> bytes:
    """Return a PDF whose pages hold each other, a hundred times over."""
    kids = b"2 0 R " * 100
    return (
        b"%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Count 1/Kids[" + kids + b"]>>endobj\n"
        b"trailer<</Root 1 0 R>>\n%%EOF"
    )


def many_pages() -> bytes:
    """Return a PDF of 501 pages."""
    writer = PdfWriter()
    for _ in range(501):
        writer.add_blank_page(width=100, height=100)
    return bytes_of(writer)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: encrypted("secret"), "it is encrypted"),
        (lambda: encrypted(""), "it is encrypted"),
        (without_pages, "it has no pages"),
        (many_pages, "501 pages, over 500"),
        (lambda: b"<!doctype html><h1>Sign in</h1>", "it is no PDF: it begins with '<!doctype html>"),
        (lambda: b"", "it is no PDF"),
        (lambda: b"%PDF-1.7\n" + b"\x00" * LARGEST_PDF, "bytes are more than"),
        (lambda: b"%PDF-1.7\nnothing more", "it is damaged"),
        (lambda: page_of((0, 0, 400, 600))[:300], "it is damaged"),
        (lambda: page_of((0, 0, 0, 0)), "a page has no size"),
        (lambda: page_of((0, 0, 10, 10)).replace(b"[ 0.0 0.0 ", b"[ 0.0 /A  "), "it is damaged"),
        (endless, "it is damaged"),
        (lambda: packed_pages(1, 120_000_000), "it is damaged: LimitReachedError"),
    ],
    ids=[
        "encrypted", "empty-password", "no-pages", "many", "html", "empty", "large", "stub", "cut", "flat",
        "edge", "endless", "bomb",
    ],
)  # fmt: skip
def test_what_is_no_readable_pdf_is_refused(printer: CertificatePrinter, make: Any, reason: str) -> None:
    """F6: such a file gives the same answer every time; the old file is kept, and a person is told why."""
    with pytest.raises(Refused, match=reason) as refused:
        printer.mark_expired(make())
    assert str(refused.value).startswith("certificate PDF: ")
    assert len(str(refused.value)) < 300


def test_a_file_that_takes_for_ever_is_refused() -> None:
    """F6: a file that never finishes parsing ends with its program, and is not tried again."""
    with pytest.raises(Refused, match="not worked through within 1 s"):
        TypstPrinter(seconds=1).mark_expired(packed_pages(20, 60_000_000))


def test_memory_and_time_are_bounded() -> None:
    """F6: the program that reads the file has a gigabyte and 20 s, whatever its caller has."""
    code = """
import include.clearpath.expired_mark as program, resource, sys
sys.argv[1:] = ["20"]
program.main()
try:
    bytes(2 * program.MEMORY)
    taken = sys.platform == "linux"  # macOS bounds the time alone
except MemoryError:
    taken = False
print(taken, resource.getrlimit(resource.RLIMIT_CPU)[0])
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, input="0\n")
    assert done.stdout.split() == ["False", "20"]


def test_a_connection_may_name_a_font_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Production adds fonts for its customers' names by the connection alone."""
    parts = {"conn_type": "fs", "extra": {"font_folder": str(tmp_path)}}
    monkeypatch.setenv("AIRFLOW_CONN_CLEARPATH_PRINTER", json.dumps(parts))
    chosen: CertificatePrinter = certificate_printer("clearpath_printer")
    assert chosen.render(CERTIFICATE) == certificate_printer().render(CERTIFICATE)


def test_test_connection(printer: TypstPrinter) -> None:
    """The button in the UI must show that both programs work on this machine."""
    good, what = printer.test_connection()
    assert good, what
