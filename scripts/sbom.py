"""A bill of materials of the installed environment: `python scripts/sbom.py [FILE]` writes CycloneDX 1.6 as JSON.

One component per installed package: name, version, licence, package URL, and the SHA-256 of its RECORD, which lists the
hash of every file that was installed. The same environment gives the same file, byte for byte.
"""

import hashlib
import json
import re
import sys
import uuid
from importlib import metadata
from pathlib import Path
from typing import Any

LICENCE = re.compile(r"License :: (?:OSI Approved :: )?(.+)")
LONGEST = 100  # letters of a licence; some packages put the whole text there


def describe(package: metadata.Distribution) -> dict[str, Any]:
    name, version = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower(), package.version
    address = f"pkg:pypi/{name}@{version}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": address,
        "name": name,
        "version": version,
        "purl": address,
    }
    record = package.read_text("RECORD")
    if record:
        component["hashes"] = [{"alg": "SHA-256", "content": hashlib.sha256(record.encode()).hexdigest()}]
    licence = find_licence(package)
    if licence:
        component["licenses"] = [licence]
    return component


def find_licence(package: metadata.Distribution) -> dict[str, Any] | None:
    expression = package.metadata.get("License-Expression")
    if expression:
        return {"expression": expression}
    classified = [found[1] for text in package.metadata.get_all("Classifier") or () if (found := LICENCE.match(text))]
    text = (package.metadata.get("License") or "").strip().partition("\n")[0]
    name = text if 0 < len(text) <= LONGEST else next(iter(classified), "")
    return {"license": {"name": name}} if name else None


def make_bill() -> dict[str, Any]:
    found = {package.metadata["Name"]: package for package in metadata.distributions() if package.metadata["Name"]}
    components = sorted(map(describe, found.values()), key=lambda component: component["bom-ref"])
    own = next((one for one in components if one["name"] == "resight"), None)
    others = [one for one in components if one is not own]
    text = json.dumps(components, sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, text)}",
        "version": 1,
        "metadata": {"component": {**own, "type": "application"}} if own else {},
        "components": others,
    }


def main() -> None:
    text = json.dumps(make_bill(), indent=1, ensure_ascii=False) + "\n"
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
