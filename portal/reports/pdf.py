"""A report's HTML as PDF. WeasyPrint draws it: an extra, for it needs Pango, which is the system's."""

import logging
from typing import Any, Final

_PAGES: Final = """
@page { @bottom-right { content: counter(page) " / " counter(pages); font: 8pt sans-serif; color: #56635f; } }
"""
_HTML: Final = "or take the HTML (in the browser: its page) and print that."
_EXTRA: Final = f"Install it with: pip install '<checkout or wheel>[pdf]'; {_HTML}"
_PANGO: Final = (
    f"Install Pango, on Debian and Ubuntu: apt install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0; {_HTML}"
)


class CannotPrint(Exception):
    """There is nothing to draw a PDF with: what is missing, and the remedy."""

    def __init__(self, detail: str, remedy: str) -> None:
        super().__init__(detail)
        self.detail, self.remedy = detail, remedy


def load_printer() -> Any:
    """Return the library. Errors: `CannotPrint`."""
    for name in ("weasyprint", "weasyprint.progress"):  # a line for each rule that is the screen's alone
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        import weasyprint
    except ModuleNotFoundError as error:
        raise CannotPrint(f"A PDF needs WeasyPrint, and {error.name} is missing.", _EXTRA) from None
    except OSError as error:  # the library is there, what it calls is not
        raise CannotPrint(f"A PDF needs Pango: {error}".splitlines()[0][:200], _PANGO) from None
    return weasyprint


def print_html(html: str) -> bytes:
    """Return a report that stands alone as a tagged PDF; nothing is fetched. Errors: `CannotPrint`."""
    library = load_printer()
    fetcher = library.urls.URLFetcher(allowed_protocols=("data",))
    document = library.HTML(string=html, url_fetcher=fetcher)
    printed: bytes = document.write_pdf(stylesheets=[library.CSS(string=_PAGES)], pdf_tags=True)
    return printed
