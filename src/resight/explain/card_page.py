"""A page of cards: a template that extends card_page.html and its values in, self-contained HTML out.

card_page.html has the style that such pages share and a policy that lets in nothing but this style and data: URIs. A
template fills the blocks `title`, `style` and `main`.
"""

from importlib import resources

import jinja2

from resight.files.fingerprint import csp_hash

FRAME = "card_page.html"


def render_cards(template: str, **values: object) -> str:
    """`template` is the text of one that begins with `{% extends "card_page.html" %}`.

    Examples:
        >>> page = render_cards('{% extends "card_page.html" %}{% block main %}{{ name }}{% endblock %}', name="<a>")
        >>> "&lt;a&gt;" in page
        True
    """
    frame = (resources.files(__package__) / FRAME).read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        loader=jinja2.DictLoader({FRAME: frame}),
    )
    environment.filters["digest"] = csp_hash
    return environment.from_string(template).render(values)
