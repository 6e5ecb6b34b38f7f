"""One of each odd image, written into a folder: `write_readable` and `write_unreadable` give name → path.

All readable ones but `tiny.png` are 60 × 40 upright. They show one scene, red in the left half and blue in the
right; those whose name says 16, int32 or float show a grey ramp, dark at the left.
"""

import base64
import io
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

RED, BLUE = (230, 20, 20), (20, 20, 230)
# The scene as HEIC, in base 85, written by pillow-heif; the second is stored rotated, with orientation and position.
HEIC = (
    "0000SW^{RQXk}@500000ZE0pPXk}@5ZE0a<0004gZDn*}000000000XXk=`10000000000aA{+700000000000000000000B57=IV*mgE07O"
    "6l0RRC200001q5uH^00000002k;001LtX>Mi!000000RR916=`l}WdZ;I000310BCk&F#rGn01j|zbZr0t000010002~X>f9I0002qX>en20"
    "001YXm(>m0R#vD005pi000009`FGC|M>U-"
    "01pFT0096OKmiN^|NjIC00093o;Uyi0{{RXx&lC90096hLID8;2mk;B0G>Di00RI39*_hOAhO+Dl-D-"
    "_4F&`N00RJI000931R!Dn0RRX@0l{+^FbI$U000wXZ)|dIV{CW;0RRmE27mwn02FC+aAg1h0000006+i$06+i$04QT@VQ>Hd06YKy0096104"
    "M+e00IC1|NH;|00RI2|L6b!00IC201$9#cxeCt0009B2nYZG02pa-ZD9Za00000009621%Uzs1%v<q08njYVRQfh07NJOuL<BGIH~{g;y?c^"
    "9hbgZl3_i%HUZ&oQ8qCKHnq;K)9*OrfQzd;Dsq2LMgRWB%KUD*=p^a?z^aI2aXkys`rr"
)
TURNED_HEIC = (
    "0000SW^{RQXk}@500000ZE0pPXk}@5ZE0a<0005WZDn*}000000000XXk=`10000000000aA{+700000000000000000000G-"
    "+&aV*mgE07O6l0ssL300001?EnD)00000003410ssI200Kh*0RR9100000mH+?%IB98aW&i*H00062000$fZf0cy000000RRAKc4ILB0000L"
    "X>Mj^0ssI300IC2MR;ju000004sdC7Z2$lO00031009VTaB^?}008G{aAR)(004Jrc4I>U1PA~C0G>Di0000U@BsY(`1k+-"
    "4+CHT0RR_30Sp2E{{#pC00RJ?H~;_x0017k0zhE^0RSpO0RaRE00093o;Uyi0{{RXkOUAQvfW&i*EazT1_S^A0{~<I00RI7AYuRk00=|@!E+"
    "ce2#^2(025<xY;ta6Y<K_x01W^JfB*mh6lrsCWdHyG00000KmY&$KmY&$C}V74Z~y=RC;$Ke0RR91JOBUy0ssI1=l}o!0{{R2`~Uy|0ssI25"
    "O8UDX#fBK00RgJ2mk;832Aa~bOQhY02yg;ZD9Za000000096227v+t1%!qG000_ka%E-"
    "!00000000hSWOHKx0ssL30RR91^lfBebN~PVQYZnh3E(3&E&uj5{`ceA|MmWn)4RNdw#foAAW>@>rLPZ~k4PQxwDF`Fj+S7$ho^mZf1il8%T"
    "a(~A7b?yUD1@2C+SRrMtH%K(=F1Ku4}*m000I>cxh$;08LE*DgXcg2mk^B5&#1L000311^@tvB>)5f00031001Tc000001ONd50ssI20#g70"
    "000621poj50{{R3TmS<A0ssI20!07-"
    "000C41poj50{{R3bN~PV00000ApigX0RR919smFU0RR91000000RR91mjD0&0RR914*&oF0RR91000000R"
)
WIDTH, HEIGHT = 60, 40


def scene(width: int = WIDTH, height: int = HEIGHT) -> Image.Image:
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[:, : width // 2] = RED
    pixels[:, width // 2 :] = BLUE
    return Image.fromarray(pixels)


def grey_ramp(dtype: type, low: float = 0, high: float = 40_000) -> np.ndarray:
    """[40, 60] values that rise from left to right."""
    return np.tile(np.linspace(low, high, WIDTH), (HEIGHT, 1)).astype(dtype)


def encode(image: Image.Image, format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def with_exif(orientation: int | None = None, position: tuple[float, float] | None = None) -> bytes:
    """A JPEG of the scene, stored so that `orientation` turns it upright."""
    exif = Image.Exif()
    image = scene()
    if orientation:
        exif[0x0112] = orientation
        undo = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_90, 8: Image.Transpose.ROTATE_270}
        image = image.transpose(undo[orientation]) if orientation in undo else image
    if position:
        lat, lon = position
        exif[0x8825] = {
            1: "N" if lat >= 0 else "S",
            2: (abs(lat), 0.0, 0.0),
            3: "E" if lon >= 0 else "W",
            4: (abs(lon), 0.0, 0.0),
        }
    return encode(image, "JPEG", quality=95, subsampling=0, exif=exif)


def encode_jxl(values: np.ndarray) -> bytes:
    from imagecodecs import jpegxl_encode

    return bytes(jpegxl_encode(values, lossless=True))


def _turned_avif() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return encode(scene().transpose(Image.Transpose.ROTATE_90), "AVIF", quality=95, subsampling="4:4:4", exif=exif)


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds next to nothing."""
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"")),
        (b"IEND", b""),
    )
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def write_readable(folder: Path) -> dict[str, Path]:
    image = scene()
    frames = [scene(), Image.new("RGB", image.size, "green")]
    palette = image.quantize(4)
    see_through = image.convert("RGBA")
    see_through.putalpha(Image.fromarray(np.tile(np.repeat(np.uint8([255, 0]), 30), (HEIGHT, 1))))
    plain = encode(image, "JPEG", quality=95, subsampling=0)
    contents: dict[str, bytes] = {
        "plain.jpg": plain,
        "progressive.jpeg": encode(image, "JPEG", quality=95, subsampling=0, progressive=True),
        "UPPER.JPG": plain,
        "upside_down.jpg": with_exif(orientation=3),
        "turned_right.jpg": with_exif(orientation=6),
        "turned_left.jpg": with_exif(orientation=8),
        "position.jpg": with_exif(position=(-33.5, 151.25)),
        "cut_exif.jpg": _put_exif(plain, b"Exif\0\0MM\0*\0\0\0\x08\0\x05\x01\x12\0\x03"),
        "cmyk.jpg": encode(image.convert("CMYK"), "JPEG", quality=95),
        "grey.jpg": encode(image.convert("L"), "JPEG"),
        "plain.png": encode(image, "PNG"),
        "png_named.jpg": encode(image, "PNG"),
        "grey16.png": encode(Image.fromarray(grey_ramp(np.uint16)), "PNG"),
        "one_bit.png": encode(image.convert("1"), "PNG"),
        "palette.png": encode(palette, "PNG"),
        "palette_transparent.png": encode(palette, "PNG", transparency=bytes([255, 0, 255, 255])),
        "rgb_transparent.png": encode(image, "PNG", transparency=BLUE),
        "rgba.png": encode(see_through, "PNG"),
        "la.png": encode(see_through.convert("LA"), "PNG"),
        "animated.png": encode(frames[0], "PNG", save_all=True, append_images=frames[1:]),
        "animated.gif": encode(frames[0], "GIF", save_all=True, append_images=frames[1:]),
        "animated.webp": encode(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True),
        "lossy.webp": encode(image, "WEBP", quality=95),
        "plain.bmp": encode(image, "BMP"),
        "plain.ppm": encode(image, "PPM"),
        "grey16.pgm": encode(Image.fromarray(grey_ramp(np.uint16)), "PPM"),
        "plain.jp2": encode(image, "JPEG2000"),
        "plain.heic": base64.b85decode(HEIC),
        "turned.heic": base64.b85decode(TURNED_HEIC),
        "heic_named.jpg": base64.b85decode(HEIC),
        "plain.avif": encode(image, "AVIF", quality=95, subsampling="4:4:4"),
        "turned.avif": _turned_avif(),
        "plain.jxl": encode_jxl(np.asarray(image)),
        "grey16.jxl": encode_jxl(grey_ramp(np.uint16)),
        "plain.tif": encode(image, "TIFF"),
        "deflated.tiff": encode(image, "TIFF", compression="tiff_deflate"),
        "pages.tif": encode(frames[0], "TIFF", save_all=True, append_images=frames[1:]),
        "turned.tif": encode(image.transpose(Image.Transpose.ROTATE_90), "TIFF", tiffinfo={0x0112: 6}),
        "cmyk.tif": encode(image.convert("CMYK"), "TIFF"),
        "int32.tif": encode(Image.fromarray(grey_ramp(np.int32, -50_000, 90_000)), "TIFF"),
        "float.tif": encode(Image.fromarray(_with_holes(grey_ramp(np.float32, -1, 1))), "TIFF"),
        "grün 図 🜨.png": encode(image, "PNG"),
        "tiny.png": encode(scene(1, 1), "PNG"),
    }
    return _write(folder, contents)


def write_unreadable(folder: Path) -> dict[str, Path]:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8))

    def half(format: str, **options: object) -> bytes:
        whole = encode(noise, format, **options)
        return whole[: len(whole) // 2]

    contents = {
        "empty.jpg": b"",
        "text.jpg": b"This is not an image.\n" * 20,
        "truncated.jpg": half("JPEG"),
        "truncated_progressive.jpg": half("JPEG", progressive=True),
        "truncated.png": half("PNG"),
        "truncated.webp": half("WEBP"),
        "truncated.gif": half("GIF"),
        "truncated.bmp": half("BMP"),
        "truncated.tif": half("TIFF"),
        "truncated_deflated.tif": half("TIFF", compression="tiff_deflate"),
        "truncated.ppm": half("PPM"),
        "truncated.jp2": half("JPEG2000"),
        "signature_only.jpg": b"\xff\xd8\xff",
        "bomb.png": png_header(60_000, 60_000),
        "no_width.png": png_header(0, 10),
    }
    written = _write(folder, contents)
    special: dict[str, Callable[[Path], object]] = {
        "folder.jpg": Path.mkdir,
        "broken_link.jpg": lambda path: path.symlink_to("nowhere.jpg"),
        "loop_link.jpg": lambda path: path.symlink_to("loop_link.jpg"),
    }
    if hasattr(os, "mkfifo"):
        special["pipe.jpg"] = os.mkfifo
    for name, make in special.items():
        make(folder / name)
        written[name] = folder / name
    return {**written, "missing.jpg": folder / "missing.jpg"}


def _put_exif(jpeg: bytes, block: bytes) -> bytes:
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + jpeg[2:]


def _write(folder: Path, contents: dict[str, bytes]) -> dict[str, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return {name: folder / name for name in contents}


def _with_holes(values: np.ndarray) -> np.ndarray:
    holed = values.copy()
    holed[:2, :2] = np.nan
    holed[2, 0] = np.inf
    return holed
