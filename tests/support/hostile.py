"""Names that a stranger may choose: fixed ones, and a strategy that joins dangerous parts."""

from hypothesis import strategies as st

HOSTILE_NAMES = (
    "",
    ".",
    "..",
    "../x",
    "a/../../x",
    "files/../../x",
    "files/..",
    "/etc/passwd",
    "//host/share",
    "\\\\host\\share",
    "..\\x",
    "C:\\x",
    "C:x",
    "c:/x",
    "s3://bucket/x",
    "file:///etc/passwd",
    "a\0b",
    "a\nb",
    "a\rb",
    "\x1b[2Ja",
    "a\x7fb",
    "a\x9bb",
    "photo\u202egpj.exe",
    "a\udc80b",
    "NUL",
    "con.txt",
    "a/LPT1.jpg",
    "name.",
    "name ",
    "a./b",
    "a" * 256,
    "ü" * 200,
    "a/" * 600 + "b",
)
PARTS = (
    *("..", ".", "", "/", "\\", "//", "~", "a", "files", "0123456789ab.npz", "C:", "s3:", "\0", "\n", "\x1b]0;x\x07"),
    *("\u202e", "\u2028", "NUL", "aux.jpg", " ", ". ", "…", "․․", "..%2f", "%2e%2e", "\udc80", "a" * 300, "ü"),
)


def hostile_names() -> st.SearchStrategy[str]:
    """Sequences of dangerous parts with any separators, and any text."""
    joined = st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).flatmap(
        lambda parts: st.sampled_from(("", "/", "\\")).map(lambda mark: mark.join(parts))
    )
    return st.one_of(joined, st.sampled_from(HOSTILE_NAMES), st.text(max_size=40))
