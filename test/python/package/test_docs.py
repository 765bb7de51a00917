"""docs/CApi.md lists all requests of the C API; test/scripts/run-doc.py runs the pages' code."""

import re

from conftest import ROOT


def test_every_key_of_a_request_is_documented() -> None:
    keys = re.findall(r'^ +\{"(\w+)",', (ROOT / "runtime" / "capi" / "Request.cpp").read_text(), re.MULTILINE)
    page = (ROOT / "docs" / "CApi.md").read_text()
    assert len(keys) > 25 and not [key for key in keys if f"`{key}`" not in page]
