"""Decoding in processes of their own: real ones, with files that are whole, broken or dangerous."""

import asyncio
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support import odd_images
from support.builders import draw_texture

from resight.data.decode import Decoded, decode
from resight.data.sandbox import decode_worker
from resight.data.sandbox.decode_worker import DecodeRequest
from resight.data.sandbox.processes import DecodeProcess, Limits, Sandbox
from resight.errors import ImageError, ResightError

LIMITS = Limits(pixels=4_000_000)
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's protections are Linux's")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox(1, LIMITS)
    yield made
    made.close()


def encode(width: int = 320, height: int = 240, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.fromarray(draw_texture(np.random.default_rng(0), width, height)).save(out, kind)
    return out.getvalue()


def attempt(work: object, *arguments: object) -> object:
    """What a decoder returns or refuses, to compare it with another's."""
    try:
        decoded = work(*arguments)  # type: ignore[operator]
    except ImageError as error:
        return str(error)
    assert isinstance(decoded, Decoded)
    facts = decoded.size, decoded.mode, decoded.orientation, decoded.position, decoded.heading
    return decoded.pixels.shape, decoded.pixels.tobytes(), facts


@pytest.mark.parametrize("max_side", [None, 30])
def test_every_odd_image_gives_the_same_as_in_this_process(
    sandbox: Sandbox, tmp_path: Path, max_side: int | None
) -> None:
    files = {**odd_images.write_readable(tmp_path / "good"), **odd_images.write_unreadable(tmp_path / "bad")}
    before = sandbox.replaced
    for name, path in files.items():
        if path.is_file():
            data = path.read_bytes()
            expected = attempt(decode, data, name, max_side, LIMITS.pixels)
            assert attempt(sandbox.decode, data, name, max_side) == expected, name
    assert sandbox.replaced == before


def test_the_pixel_limit_of_the_sandbox_and_that_of_the_caller_hold(sandbox: Sandbox) -> None:
    with pytest.raises(ImageError, match="more than the limit of 4,000,000"):
        sandbox.decode(odd_images.png_header(60_000, 60_000), "x.png")
    with pytest.raises(ImageError, match="more than the limit of 1,000"):
        sandbox.decode(encode(), "x.png", None, 1000)


def test_a_thumbnail_comes_along_when_it_is_asked_for(sandbox: Sandbox) -> None:
    decoded, small = sandbox.run(encode(), DecodeRequest("x.png", 0, thumbnail_side=96))
    assert decoded.pixels.size == 0 and decoded.size == (320, 240)
    with Image.open(io.BytesIO(small)) as image:
        assert (image.format, image.size) == ("WEBP", (96, 72))
    _, kept = sandbox.run(odd_images.with_exif(position=(1, 2)), DecodeRequest("x", 0, 10**6, 96, True))
    with Image.open(io.BytesIO(kept)) as image:
        assert image.format == "JPEG" and image.getexif().get_ifd(0x8825)


@pytest.mark.parametrize(("number", "seconds"), [(signal.SIGKILL, 20.0), (signal.SIGSTOP, 0.5)])
def test_a_process_that_dies_or_hangs_is_replaced_and_only_its_image_is_refused(
    number: signal.Signals, seconds: float
) -> None:
    sandbox = Sandbox(1, Limits(seconds, pixels=LIMITS.pixels))

    def decode_in_trouble(process: DecodeProcess) -> object:
        os.kill(process.pid, number)
        return process.decode(encode(), DecodeRequest("x.png"))

    try:
        with pytest.raises(ImageError, match="too much time or memory"):
            sandbox.use(decode_in_trouble)
        assert sandbox.replaced == 1
        sandbox.limits = LIMITS
        assert sandbox.decode(encode(), "x.png").size == (320, 240)
    finally:
        sandbox.close()


@ON_LINUX
def test_an_image_that_needs_more_memory_than_the_limit_is_refused() -> None:
    sandbox = Sandbox(1, Limits(memory=160 * 2**20))
    try:
        large = io.BytesIO()
        Image.new("RGB", (8000, 8000)).save(large, "PNG")  # 244 MiB of pixels in a file of 200 kB
        with pytest.raises(ImageError, match="memory"):
            sandbox.decode(large.getvalue(), "large.png", 100)
        assert sandbox.decode(encode(), "x.png").size == (320, 240)
    finally:
        sandbox.close()


def test_a_process_that_has_used_much_time_is_replaced_without_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = Sandbox(1, LIMITS)
    receive = decode_worker.receive

    def receive_last(*arguments: object) -> object:
        header, body = receive(*arguments)  # type: ignore[arg-type]
        return ({**header, "is_last": True} if "is_last" in header else header), body

    try:
        monkeypatch.setattr(decode_worker, "receive", receive_last)
        pids = {sandbox.use(lambda one: (one.decode(encode(), DecodeRequest("x")), one.pid)[1]) for _ in range(2)}
        assert len(pids) == 2 and sandbox.replaced == 0
    finally:
        sandbox.close()


@pytest.mark.parametrize(
    "header",
    [
        {"problem": 3},
        {},
        {"shape": [2**40, 2**40, 3]},
        {"shape": [-1, -1, 3]},
        {"shape": [1, 1, 4]},
        {"size": [0, 1]},
        {"position": [1e9, 0]},
        {"heading": float("nan")},
        {"position": "ab"},
        {"orientation": [[]]},
    ],
)
def test_an_answer_that_a_process_made_up_refuses_the_image(
    header: dict[str, object], monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox
) -> None:
    whole = {"shape": [1, 1, 3], "size": [1, 1], "mode": "RGB", "orientation": 1, "position": None, "heading": None}
    answer = {"is_last": False, **({**whole, **header} if header else header)}
    receive = decode_worker.receive

    def receive_other(*arguments: object) -> object:
        sent, body = receive(*arguments)  # type: ignore[arg-type]
        return (sent, body) if "protections" in sent else (dict(answer), b"\0\0\0")

    monkeypatch.setattr(decode_worker, "receive", receive_other)
    with pytest.raises(ImageError):
        sandbox.decode(encode(), "x.png")


def test_an_interrupt_leaves_no_answer_behind_for_the_next_image() -> None:
    sandbox = Sandbox(1, LIMITS)
    receive = decode_worker.receive

    def interrupt(*_: object) -> object:
        raise KeyboardInterrupt

    try:
        sandbox.start()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decode_worker, "receive", interrupt)
            with pytest.raises(KeyboardInterrupt):
                sandbox.decode(encode(), "x.png")
        assert receive is decode_worker.receive
        assert sandbox.decode(encode(64, 48), "y.png").size == (64, 48)
    finally:
        sandbox.close()


def test_a_closed_sandbox_refuses_rather_than_waits() -> None:
    sandbox = Sandbox(1, LIMITS)
    sandbox.close()
    with pytest.raises(RuntimeError):
        sandbox.decode(encode(), "x.png")


def test_an_endless_answer_is_not_read() -> None:
    stream = io.BytesIO(decode_worker.LENGTHS.pack(2, 2**60) + b"{}")
    with pytest.raises(ValueError, match="not a message"):
        decode_worker.receive(stream, 2**20)


def test_a_process_that_cannot_start_says_so() -> None:
    sandbox = Sandbox(1, LIMITS)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "executable", "/bin/false")
            for _ in range(2):  # the sandbox keeps its place for a process
                with pytest.raises(ResightError, match="does not start"):
                    sandbox.start()
        assert sandbox.decode(encode(), "x.png").size == (320, 240)
    finally:
        sandbox.close()


@ON_LINUX
def test_no_secret_is_in_the_environment_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESIGHT_API_KEY", "k" * 20)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s" * 20)
    sandbox = Sandbox(1, LIMITS)
    try:
        # The kernel shows the environment of a process that cannot be traced to root alone.
        seen = sandbox.use(lambda one: one.environment)
    finally:
        sandbox.close()
    assert "k" * 20 not in seen.values() and "s" * 20 not in seen.values()
    assert seen["OPENBLAS_NUM_THREADS"] == "1"


def test_a_module_in_the_working_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    sandbox = Sandbox(1, LIMITS)
    try:
        assert sandbox.decode(encode(), "x.png").size == (320, 240)
    finally:
        sandbox.close()


@ON_LINUX
def test_a_killed_parent_takes_its_processes_along_even_those_that_hang() -> None:
    program = """
import os, signal, sys
from resight.data.sandbox.processes import Limits, Sandbox
sandbox = Sandbox(1, Limits())
sandbox.start()
pid = sandbox.use(lambda one: one.pid)
os.kill(pid, signal.SIGSTOP)  # it hangs, and does not see the end of its input
print(pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    end = time.monotonic() + 30
    while is_running(int(ran.stdout)):
        assert time.monotonic() < end
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_many_threads_share_few_processes() -> None:
    sandbox = Sandbox(2, LIMITS)

    async def decode_all() -> list[Decoded]:
        return await asyncio.gather(*(asyncio.to_thread(sandbox.decode, encode(), "x.png", 32) for _ in range(12)))

    try:
        assert all(decoded.size == (320, 240) for decoded in asyncio.run(decode_all()))
    finally:
        sandbox.close()
