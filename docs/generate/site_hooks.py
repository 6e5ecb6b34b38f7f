"""MkDocs hooks: they add the generated pages and keep the site from loading anything from another server.

A setting without a comment that says what it means ends the build.
"""

import cli_page
import http_page
import plugin_page
import recipe_page
import root_pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

REFERENCE = {
    "reference/cli.md": cli_page.write_page,
    "reference/plugins.md": plugin_page.write_page,
    "reference/recipes.md": recipe_page.write_page,
    "reference/http.md": http_page.write_page,
}

THEIR_WORKER = "https://unpkg.com/iframe-worker/shim"  # the theme's, for search from a disk
OUR_WORKER = "assets/file_worker.js"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    undocumented = plugin_page.list_undocumented()
    if undocumented:
        raise PluginError("settings without a comment that says what they mean: " + ", ".join(undocumented))
    for path, write in REFERENCE.items():
        files.append(File.generated(config, path, content=write()))
    for path in root_pages.PAGES:
        files.append(File.generated(config, path, content=root_pages.write_page(path)))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001 - MkDocs passes it
    return output.replace(THEIR_WORKER, get_relative_url(OUR_WORKER, page.url))


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:  # noqa: ARG001
    return output_content.replace(THEIR_WORKER, OUR_WORKER)
