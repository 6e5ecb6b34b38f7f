import hashlib
from pathlib import Path

from resight.files.fingerprint import csp_hash, fingerprint, fingerprint_file


def test_text_bytes_and_files_with_the_same_content_have_the_same_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes("né".encode())
    expected = hashlib.sha256("né".encode()).hexdigest()
    assert fingerprint("né") == fingerprint("né".encode()) == fingerprint_file(tmp_path / "file") == expected
    assert fingerprint("né", 8) == fingerprint_file(tmp_path / "file", 8) == expected[:8]


def test_a_policy_names_a_script_by_its_hash_in_base64() -> None:
    assert csp_hash("") == "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
