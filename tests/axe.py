# SPDX-License-Identifier: Apache-2.0
"""What axe-core, as a package on PyPI brings it, finds wrong with an open page: contrast, labels, roles, order."""

import importlib.util
import pathlib

found = importlib.util.find_spec("axe_playwright_python")
FILE = pathlib.Path(found.origin).parent / "axe.min.js" if found else None


def violations(browser):
    """["rule: element: what is wrong", ...] of the page as it stands."""
    if browser.ask("typeof axe") == "undefined":
        browser.ask(FILE.read_text(encoding="utf-8") + "; 0")
    return browser.ask("""axe.run(document, {resultTypes: ["violations"]}).then(result => result.violations.flatMap(
        each => each.nodes.map(node => `${each.id}: ${node.html.slice(0, 150)}: ${node.failureSummary}`)))""")
