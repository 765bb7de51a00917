"""docs/CApi.md lists what the C API takes; test/scripts/run-doc.py runs what the pages show."""

import re

from conftest import ROOT


def test_every_key_of_a_request_is_documented() -> None:
    keys = re.findall(r'^ +\{"(\w+)",', (ROOT / "runtime" / "capi" / "Request.cpp").read_text(), re.MULTILINE)
    page = (ROOT / "docs" / "CApi.md").read_text()
    assert len(keys) > 25 and not [key for key in keys if f"`{key}`" not in page]
