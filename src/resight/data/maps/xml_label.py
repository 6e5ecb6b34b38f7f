"""An XML file from elsewhere in, its elements as a tree out (`read_xml`): bounded, and without entities.

A document type or an entity is refused before anything is expanded, so that no small file becomes a large one and none
reads another. Names lose their namespace: `cart:Map_Projection` is `Map_Projection`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from resight.data.maps.map_label import refuse

LONGEST = 1 << 22  # bytes
DEEPEST = 64
MOST = 100_000  # elements


@dataclass
class Node:
    name: str
    unit: str = ""
    text: str = ""
    children: list["Node"] = field(default_factory=list)

    def find_all(self, name: str) -> Iterator["Node"]:
        """This node and all below it, in the order of the file, with that name."""
        if self.name == name:
            yield self
        for child in self.children:
            yield from child.find_all(name)

    def find(self, *names: str) -> "Node | None":
        """The first node with the first of these names that occurs."""
        return next((node for name in names for node in self.find_all(name)), None)

    def read(self, name: str, default: str = "") -> str:
        found = self.find(name)
        return found.text.strip() if found else default


class _Refused(Exception):
    pass


def read_xml(path: Path) -> Node:
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST + 1)
        if len(data) > LONGEST:
            raise _Refused(f"more than {LONGEST:,} bytes")
        return _parse(data)
    except (OSError, _Refused, expat.ExpatError) as error:
        raise refuse(
            path,
            "has a label that cannot be read",
            "a PDS4 label in XML, without document type and entities",
            str(error),
            "give the label as its archive has it",
        ) from error


def _parse(data: bytes) -> Node:
    root = Node("")
    open_nodes = [root]
    count = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if len(open_nodes) > DEEPEST or count > MOST:
            raise _Refused(f"more than {DEEPEST} levels or {MOST:,} elements")
        node = Node(name.rpartition(":")[2], attributes.get("unit", ""))
        open_nodes[-1].children.append(node)
        open_nodes.append(node)

    def end(_: str) -> None:
        open_nodes.pop()

    def add_text(text: str) -> None:
        open_nodes[-1].text += text

    def refuse_declaration(*_: Any) -> None:
        raise _Refused("a document type or an entity")

    handlers = {
        "StartElementHandler": start,
        "EndElementHandler": end,
        "CharacterDataHandler": add_text,
        "StartDoctypeDeclHandler": refuse_declaration,
        "EntityDeclHandler": refuse_declaration,
    }
    parser = expat.ParserCreate()
    for name, handler in handlers.items():
        setattr(parser, name, handler)
    parser.Parse(data, True)
    return root
