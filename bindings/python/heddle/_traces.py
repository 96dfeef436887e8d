"""Traces of OpenTelemetry, where its package is installed: a span for a request, and in it what Heddle knows of it: how long it
waited, how its run was gathered, the run, and each step of the run with its device. Requests that are not recorded cost nothing."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Any, Iterator, Mapping

try:
    from opentelemetry import propagate, trace
except ImportError:
    propagate = trace = None

__all__ = ["Recorded", "export", "request_span"]


class Recorded:
    """The span of a request. is_on: it is recorded, and the request is to be timed."""

    def __init__(self, span: Any = None):
        self._span, self.is_on = span, span is not None and span.is_recording()

    def say(self, **attributes: Any) -> None:
        if self.is_on:
            self._span.set_attributes({f"heddle.{name}": value for name, value in attributes.items()})

    def add(self, times: Mapping[str, Any] | None) -> None:
        """The spans of a request that has its result; times is BatchFuture.times."""
        if not self.is_on or not times:
            return
        shift = time.time_ns() - time.monotonic_ns()
        self.say(items=times["items"], rows=times["rows"])
        over, queue = times["ended_ns"], times["taken_ns"] or times["ended_ns"]
        self._child("heddle.queue", times["accepted_ns"], queue, shift)
        if times["taken_ns"]:
            self._child("heddle.batch", times["taken_ns"], times["run_ns"] or over, shift, items=times["items"], rows=times["rows"])
        if times["run_ns"]:
            run = self._child("heddle.run", times["run_ns"], times["ran_ns"] or over, shift, ends=False,
                              devices=sorted({row["device"] for row in times["steps"]}))
            inside = trace.set_span_in_context(run)
            for row in times["steps"]:
                self._child(f"{row['op']} {row['name']}", row["start_ns"], row["end_ns"], shift, inside, op=row["op"],
                            node=row["name"], device=row["device"], stream=row["stream"])
            run.end((times["ran_ns"] or over) + shift)
        if times["ran_ns"]:
            self._child("heddle.outputs", times["ran_ns"], over, shift)

    def _child(self, name: str, begin: int, end: int, shift: int, inside: Any = None, ends: bool = True, **attributes: Any) -> Any:
        inside = trace.set_span_in_context(self._span) if inside is None else inside
        span = trace.get_tracer("heddle").start_span(name, inside, start_time=begin + shift, attributes={
            f"heddle.{key}": value for key, value in attributes.items()})
        if ends:
            span.end(end + shift)
        return span


@contextmanager
def request_span(name: str, headers: Mapping[str, str] | None) -> Iterator[Recorded]:
    """A span of a server, child of what the headers name (traceparent). An exception is its status."""
    if trace is None:
        yield Recorded()
        return
    carrier = {str(key).lower(): value for key, value in (headers or {}).items()}
    with trace.get_tracer("heddle").start_as_current_span(name, context=propagate.extract(carrier), kind=trace.SpanKind.SERVER) as span:
        yield Recorded(span)


def export(where: str) -> None:
    """Sends spans of this process to a collector ("otlp", whose address OTEL_EXPORTER_OTLP_ENDPOINT is), or writes them to
    standard output as JSON ("console"). ImportError where a package is missing."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
    exporter: Any
    if where == "otlp":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        exporter = OTLPSpanExporter()
    else:
        exporter = ConsoleSpanExporter(formatter=lambda span: span.to_json(indent=None) + "\n")
    provider = TracerProvider(resource=Resource.create({"service.name": "heddle"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
