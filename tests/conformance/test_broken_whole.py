"""All cases of the kit on each broken plugin: but for its own case, only those fail that its source names beside it.
labels: slow soak
timeout: 3600"""

import pytest
from check_case import SANITIZED, broken_plugins, check

pytestmark = pytest.mark.skipif(SANITIZED, reason="what the broken plugins do, sanitizers stop in their own way")


@pytest.mark.parametrize("plugin", broken_plugins(), ids=lambda p: p.name)
def test_no_others(plugin, tmp_path):
    r = check(tmp_path, plugin.library, *plugin.words())
    assert r.status == 1, r
    failed = r.state("fail")
    causes = [name for name in failed if "a consequence of" not in r.cases[name].words]
    assert plugin.caught in causes and len(causes) <= 2, (causes, r)
    assert [case for case in failed if not plugin.allowed(case)] == [], r
