"""A plugin of pytest for CTest (`-p skips`): prints how many cases were skipped, one line a reason, as "skipped N: REASON",
and ends with 77 where no case ran, so that CTest counts the file as skipped. .ci/report collects the lines."""

import collections

SKIPPED = 77


class Skips:
    def __init__(self):
        self.reasons, self.ran = collections.Counter(), 0

    def pytest_collectreport(self, report):
        if report.skipped:
            self.note(report)

    def pytest_runtest_logreport(self, report):
        if report.skipped and not hasattr(report, "wasxfail"):
            self.note(report)
        elif report.when == "call" or report.failed:
            self.ran += 1

    def note(self, report):
        words = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        self.reasons[" ".join(words.removeprefix("Skipped: ").split())] += 1

    def pytest_sessionfinish(self, session, exitstatus):
        # 0: all is well; 5: no case was collected, as where the file skips itself. Anything else is a failure.
        if self.reasons and self.ran == 0 and exitstatus in (0, 5):
            session.exitstatus = SKIPPED

    def pytest_terminal_summary(self, terminalreporter):
        for reason, count in sorted(self.reasons.items(), key=lambda item: (-item[1], item[0])):
            terminalreporter.write_line(f"skipped {count}: {reason}")


def pytest_configure(config):
    config.pluginmanager.register(Skips())
