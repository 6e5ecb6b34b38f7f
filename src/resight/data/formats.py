"""Formats of image files: the first bytes or the ending of a file in, the name of its format out.

`identify` names a format that resight decodes, `is_image` is the same but stricter. `find_other` and `find_by_suffix`
know formats that hold pictures but are not decoded (PDF, video, raw photos, drawings …), each with the words that
make images of them.
"""

import re
from dataclasses import dataclass

from resight.errors import ImageError

SUFFIXES = frozenset(
    (
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".webp", ".gif", ".bmp", ".tif", ".tiff"),
        *(".ppm", ".pgm", ".pbm", ".pnm", ".pfm", ".jp2", ".j2k", ".jpx", ".heic", ".heif", ".hif", ".avif", ".jxl"),
    )
)
UNSUPPORTED = "unsupported format"
START = 512  # bytes that show which format a file has
DECODED = ("JPEG", "PNG", "WebP", "TIFF", "GIF", "BMP", "PNM", "JPEG 2000", "HEIC", "AVIF", "JPEG XL")
MODERN = ("HEIC", "AVIF", "JPEG XL")  # their decoders are loaded with the first such image
SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF8", "GIF"),
    (b"BM", "BMP"),
    *((start, "TIFF") for start in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
    *((start, "JPEG 2000") for start in (b"\xff\x4f\xff\x51", b"\0\0\0\x0cjP  ")),
    *((start, "JPEG XL") for start in (b"\xff\x0a", b"\0\0\0\x0cJXL \r\n\x87\n")),
    *((b"P%c" % letter, "PNM") for letter in b"123456f"),
)
AVIF_BRANDS = (b"avif", b"avis")
HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1")
SOUND_BRANDS = (b"M4A ", b"M4B ", b"M4P ")
# Two or three letters alone would make images of texts that begin with BM or P1.
BMP = re.compile(rb"BM.{4}\0\0\0\0", re.DOTALL)  # size, and four reserved bytes
NETPBM = re.compile(rb"P[1-6f]\s+[-\d#]")
BARE_JXL = re.compile(rb"\xff\x0a.{2}", re.DOTALL)


@dataclass(frozen=True)
class OtherFormat:
    """A format that holds pictures, but that resight does not decode."""

    name: str
    advice: str  # how to make images of such a file
    suffixes: frozenset[str]
    signatures: tuple[bytes, ...] = ()

    @property
    def reason(self) -> str:
        """Why such a file is skipped, and how to make images of it."""
        return f"{UNSUPPORTED}: {self.name}; {self.advice}"


PDF = OtherFormat(
    "PDF",
    "make an image of each page, e.g. `pdftoppm -r 200 -png FILE.pdf page`",
    frozenset((".pdf",)),
    (b"%PDF",),
)
VIDEO = OtherFormat(
    "video",
    "take frames out of it, e.g. one per second: `ffmpeg -i FILE -vf fps=1 frame-%05d.jpg`",
    frozenset(
        (
            *(".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg", ".wmv", ".flv", ".3gp", ".3g2"),
            *(".mts", ".m2ts", ".ogv", ".asf", ".vob"),
        )
    ),
    (b"\x1a\x45\xdf\xa3", b"\0\0\1\xba", b"\0\0\1\xb3", b"FLV\1", b"\x30\x26\xb2\x75\x8e\x66\xcf\x11"),
)
RAW = OtherFormat(
    "raw photo",
    "develop it, e.g. `darktable-cli FILE FILE.jpg`, or take its preview out: `exiftool -b -PreviewImage -w jpg FILE`",
    frozenset(
        (
            *(".dng", ".cr2", ".cr3", ".crw", ".nef", ".nrw", ".arw", ".srf", ".sr2", ".raf", ".orf", ".rw2", ".pef"),
            *(".srw", ".x3f", ".3fr", ".iiq", ".erf", ".kdc", ".dcr", ".mrw", ".rwl"),
        )
    ),
    (b"FUJIFILMCCD-RAW", b"IIRO", b"IIRS", b"MMOR", b"IIU\0", b"FOVb", b"\0MRM"),
)
DRAWING = OtherFormat(
    "drawing",
    "draw it as an image, e.g. `rsvg-convert -w 1600 -o FILE.png FILE.svg` or with Inkscape",
    frozenset((".svg", ".svgz", ".eps", ".ai", ".wmf", ".emf", ".cdr")),
    (b"%!PS", b"<svg", b"\xc5\xd0\xd3\xc6"),
)
LAYERED = OtherFormat(
    "layered image",
    "export it as PNG from the program that made it, or `magick FILE[0] FILE.png`",
    frozenset((".psd", ".psb", ".xcf", ".kra", ".clip", ".afphoto")),
    (b"8BPS", b"gimp xcf"),
)
RARE = OtherFormat(
    "rare image format",
    "convert it to PNG, e.g. `magick FILE FILE.png`",
    frozenset((".ico", ".cur", ".icns", ".tga", ".dds", ".exr", ".pcx", ".xbm", ".xpm", ".qoi", ".djvu", ".bpg")),
    (b"DDS ", b"\x76\x2f\x31\x01", b"#?RADIANCE", b"qoif", b"AT&TFORM", b"icns"),
)
WEB_PAGE = OtherFormat(
    "web page",
    "the download gave a page instead of the image: download it again",
    frozenset(),
    (b"<!doctype html", b"<html"),
)
OTHERS = (PDF, VIDEO, RAW, DRAWING, LAYERED, RARE, WEB_PAGE)


def identify(start: bytes) -> str:
    """The format that the first bytes of a file announce; empty if it is none that resight decodes."""
    if start[:4] == b"RIFF":
        return "WebP" if start[8:12] == b"WEBP" else ""
    if start[4:8] == b"ftyp":
        return _identify_brand(start)
    if start[:3] == b"II*" and start[8:10] == b"CR":  # a raw photo of Canon
        return ""
    return next((name for signature, name in SIGNATURES if start.startswith(signature)), "")


def is_image(start: bytes) -> bool:
    """Whether the first bytes of a file are those of an image that resight decodes, and not of a text."""
    strict = {"BMP": BMP, "PNM": NETPBM}.get(name := identify(start))
    if start[:2] == b"\xff\x0a":
        strict = BARE_JXL
    return bool(name) and (strict is None or strict.match(start) is not None)


def find_other(start: bytes) -> OtherFormat | None:
    """The format of a file that holds pictures but is not decoded, by its first bytes."""
    if start[4:8] == b"ftyp":
        brand = start[8:12]
        return RAW if brand == b"crx " else None if brand in SOUND_BRANDS or _identify_brand(start) else VIDEO
    if start[:4] == b"RIFF":
        return VIDEO if start[8:12] == b"AVI " else None
    if start[:3] == b"II*" and start[8:10] == b"CR":
        return RAW
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith(b"<?xml") and b"<svg" in text:
        return DRAWING
    for other in OTHERS:
        for signature in other.signatures:
            if start.startswith(signature) or (signature[:1] == b"<" and text.startswith(signature)):
                return other
    return None


def find_by_suffix(suffix: str) -> OtherFormat | None:
    """The format of a file that holds pictures but is not decoded, by the ending of its name."""
    return next((other for other in OTHERS if suffix.lower() in other.suffixes), None)


def _identify_brand(start: bytes) -> str:
    """HEIC or AVIF, which share one container; a file of the general brand mif1 lists what it holds."""
    length = min(int.from_bytes(start[:4], "big"), len(start))
    brands = [start[8:12], *(start[at : at + 4] for at in range(16, length - 3, 4))]
    if brands[0] in AVIF_BRANDS or (brands[0] in HEIF_BRANDS[-2:] and any(brand in AVIF_BRANDS for brand in brands)):
        return "AVIF"
    return "HEIC" if brands[0] in HEIF_BRANDS else ""


def refuse(name: str, other: OtherFormat | None) -> ImageError:
    """The error for a file of a format that is not decoded; `other` if it is known what else it is."""
    return ImageError(
        f"cannot read {name}: {UNSUPPORTED}{f': {other.name}' if other else ''}",
        expected=f"an image in one of the formats {', '.join(DECODED)}",
        actual=f"a file of the kind {other.name}" if other else "first bytes that belong to none of them",
        fix=other.advice if other else "convert it to PNG, if an image viewer shows it",
    )
