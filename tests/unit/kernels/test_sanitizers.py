"""The C kernels under the address and undefined-behaviour sanitizers, over random sizes (fuzz_kernels.c)."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = HERE.parents[2] / "src" / "resight" / "kernels"
KERNELS = sorted(path for path in SOURCES.glob("*.c") if not path.name.startswith("module"))
COMPILER = shutil.which("gcc") or shutil.which("clang")

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="there is neither gcc nor clang"),
    pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="the kernels are for x86-64"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("sanitized") / "fuzz_kernels"
    flags = ["-O1", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Wno-unused-function"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    flags += ["-DSEGMENT=9"]  # so that few tokens already make several segments of a scan
    assert COMPILER is not None
    command = [COMPILER, *flags, f"-I{SOURCES}", HERE / "fuzz_kernels.c", *KERNELS, "-o", built, "-lm"]
    finished = subprocess.run(command, capture_output=True, text=True)
    if "cannot find" in finished.stderr and "san" in finished.stderr:
        pytest.skip("the compiler comes without the sanitizers' libraries")
    assert finished.returncode == 0, finished.stderr
    return built


@pytest.mark.parametrize("seed", range(4))
def test_random_sizes_read_and_write_nothing_beyond_their_arrays(program: Path, seed: int) -> None:
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0"}
    finished = subprocess.run([program, str(seed), "150"], capture_output=True, text=True, env=environment, timeout=120)
    if "LeakSanitizer has encountered a fatal error" in finished.stderr:  # it may not trace inside some containers
        environment["ASAN_OPTIONS"] = "detect_leaks=0"
        finished = subprocess.run(
            [program, str(seed), "150"], capture_output=True, text=True, env=environment, timeout=120
        )
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert finished.stdout == "150 rounds\n"
