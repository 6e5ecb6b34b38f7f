"""What malloc keeps, measured in a process of its own: pages that are fetched anew, and memory that stays."""

import json
import subprocess
import sys

import pytest

WORK = """
import json, resource, sys, time
import numpy as np
from resight.apps.service.server import limit_retained_memory
if sys.argv[1] == "bound" and not limit_retained_memory(interval=0.2):
    sys.exit(3)
def work():
    return [np.ones(2**20) for _ in range(8)]  # 8 MB each
def read_anonymous():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon")) * 1024
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    work()
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
held = read_anonymous()
deadline = time.monotonic() + 20
while read_anonymous() > held - 2**25 and time.monotonic() < deadline:
    time.sleep(0.05)
print(json.dumps([faults, held - read_anonymous()]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the settings are glibc's")
def test_what_is_freed_is_used_again_and_goes_back_in_the_end() -> None:
    ran = subprocess.run([sys.executable, "-c", WORK, "bound"], capture_output=True, text=True)
    if ran.returncode == 3:
        pytest.skip("malloc is not glibc's")
    faults, given_back = json.loads(ran.stdout)
    pages = 20 * 8 * 2**23 // 4096
    assert faults < pages / 4
    assert given_back > 2**25
