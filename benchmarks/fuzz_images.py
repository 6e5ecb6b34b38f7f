"""Malformed and hostile images through the sandbox: does any of them crash, hang or grow the process that reads it?

    python benchmarks/fuzz_images.py [--count 2000] [--seed 0] [--seconds 8]

`fuzz` makes images of every format that resight opens: truncated, with flipped bits, broken headers, noise, bombs and
polyglots (`service_parts/malformed.py`), mutations of odd but whole files, and files that are small, whole and slow or
large to decode. Each must be decoded or refused as an image; any other error is a fault. Prints counts, the slowest
images, how many decode processes had to be replaced, and the peak memory of this process and of its decode processes.
"""

import argparse
import base64
import io
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from PIL import Image
from service_parts.malformed import make_malformed

from resight.data.sandbox import decode_worker
from resight.data.sandbox.processes import Limits, Sandbox
from resight.errors import ImageError

SERVICE = Limits(seconds=8.0, pixels=64_000_000)
HANG = 10.0  # seconds


@dataclass
class Outcome:
    decoded: int = 0
    refused: int = 0
    replaced: int = 0  # decode processes that were killed, or crashed
    faults: list[str] = field(default_factory=list)  # errors other than a refusal
    seconds: list[tuple[float, str]] = field(default_factory=list)  # by image

    @property
    def hangs(self) -> list[tuple[float, str]]:
        return [(seconds, name) for seconds, name in self.seconds if seconds > HANG]


def fuzz(count: int, seed: int, sandbox: Sandbox, slow: bool = True) -> Outcome:
    """Decode `count` images; with `slow`, also those that take long or much memory by design."""
    outcome, generator = Outcome(), np.random.default_rng(seed)
    for name, data in make_images(count, generator, slow):
        begin = time.monotonic()
        try:
            sandbox.decode(data, name, int(generator.choice([16, 640, 1024])))
            outcome.decoded += 1
        except ImageError:
            outcome.refused += 1
        except Exception as error:
            outcome.faults.append(f"{name}: {type(error).__name__}: {error}")
        outcome.seconds.append((time.monotonic() - begin, name))
    outcome.replaced = sandbox.replaced
    return outcome


def make_images(count: int, generator: Generator, slow: bool) -> Iterator[tuple[str, bytes]]:
    if slow:
        yield from make_slow()
    for upload in make_malformed(count // 2, generator):
        yield upload.name, upload.data
    odd = list(make_odd())
    for number in range(count - count // 2):
        name, data = odd[number % len(odd)]
        yield f"{number}-{name}", mutate(data, generator)


def make_odd() -> Iterator[tuple[str, bytes]]:
    """A small whole image of every format and of its variants."""
    rough = np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8)
    image = Image.fromarray(rough).resize((160, 120), Image.Resampling.BICUBIC)
    deep = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 200)
    variants: tuple[tuple[Image.Image, str, dict[str, object]], ...] = (
        (image, "JPEG", {"progressive": True}),
        (image.convert("CMYK"), "JPEG", {}),
        (image.convert("RGBA"), "PNG", {}),
        (image.quantize(8), "PNG", {}),
        (deep, "PNG", {}),
        (image, "GIF", {"save_all": True, "append_images": [image.rotate(90)]}),
        (image, "WEBP", {"lossless": True}),
        (image, "WEBP", {"save_all": True, "append_images": [image.rotate(90)]}),
        (image, "BMP", {}),
        (image.quantize(8), "BMP", {}),
        (image, "PPM", {}),
        (image, "JPEG2000", {}),
        (image, "TIFF", {"compression": "tiff_lzw"}),
        (image, "TIFF", {"compression": "jpeg"}),
        (image.convert("1"), "TIFF", {"compression": "group4"}),
        (image.convert("F"), "TIFF", {}),
    )
    for number, (variant, format, options) in enumerate(variants):
        out = io.BytesIO()
        variant.save(out, format, **options)
        yield f"{format.lower()}{number}", out.getvalue()
    for name, sample in zip(("heic", "avif", "jxl"), decode_worker.SAMPLES, strict=True):
        yield name, base64.b85decode(sample)


def mutate(data: bytes, generator: Generator) -> bytes:
    """Change a few bytes, most of them near the beginning, where the sizes are; sometimes repeat or drop a part."""
    values = bytearray(data)
    reach = len(values) if generator.random() < 0.3 else min(len(values), 200)
    for _ in range(int(generator.integers(1, 9))):
        values[int(generator.integers(reach))] = int(
            generator.choice([0, 1, 0x7F, 0x80, 0xFF, generator.integers(256)])
        )
    first, last = sorted(generator.integers(0, len(values), 2).tolist())
    choice = generator.random()
    if choice < 0.1:
        return bytes(values[:last] + values[first:])
    return bytes(values[:first] + values[last:]) if choice < 0.2 else bytes(values)


def make_slow() -> Iterator[tuple[str, bytes]]:
    """Small files that decode to the most pixels that the service takes, or that a decoder works on for minutes."""
    for format, options in (("PNG", {}), ("TIFF", {"compression": "tiff_lzw"}), ("GIF", {}), ("WEBP", {"method": 0})):
        out = io.BytesIO()
        Image.new("RGB", (8000, 8000), "red").save(out, format, **options)
        yield f"large.{format.lower()}", out.getvalue()
    yield "scans.jpg", make_many_scans(8000, 4000)


def make_many_scans(side: int, count: int) -> bytes:
    """A progressive JPEG whose scans each make a decoder go over the whole image again."""
    out = io.BytesIO()
    Image.new("L", (64, 64), 128).save(out, "JPEG", progressive=True)
    data = bytearray(out.getvalue())
    frame = data.index(b"\xff\xc2")
    data[frame + 5 : frame + 9] = side.to_bytes(2, "big") * 2
    last = data.rindex(b"\xff\xda")
    return bytes(data[:last]) + bytes(data[last:-2]) * count + b"\xff\xd9"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=SERVICE.seconds, help="limit per image")
    arguments = parser.parse_args()
    sandbox = Sandbox(1, Limits(seconds=arguments.seconds, pixels=SERVICE.pixels))
    outcome = fuzz(arguments.count, arguments.seed, sandbox)
    sandbox.close()
    print(f"protections: {', '.join(sandbox.protections)}")
    print(f"{outcome.decoded:,} decoded, {outcome.refused:,} refused, {len(outcome.faults)} faults")
    print(f"{outcome.replaced} processes replaced, {len(outcome.hangs)} images took more than {HANG:g} s")
    for seconds, name in sorted(outcome.seconds, reverse=True)[:5]:
        print(f"  {seconds:6.2f} s  {name}")
    own, children = (
        resource.getrusage(who).ru_maxrss >> 10 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(f"peak memory: {own:,} MiB here, {children:,} MiB in a decode process")
    for fault in outcome.faults[:10]:
        print(f"fault: {fault}")


if __name__ == "__main__":
    main()
