"""Bodies of OTLP/HTTP: unpacked within bounds, read as protobuf or JSON, and answered in the same form.

https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

import json
import zlib
from enum import StrEnum
from typing import Any, Final, TypeVar

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

MOST_PACKED: Final = 2 * 2**20
MOST_UNPACKED: Final = 8 * 2**20
MOST_TOLD: Final = 2000  # points or records of one body: exporters send some hundreds
_GZIP: Final = 31  # zlib's word for a gzip header and trailer

M = TypeVar("M", bound=Message)


class Form(StrEnum):
    """The two forms of a body, by their media types."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


class TooBig(Exception):
    """The body is, or becomes when unpacked, larger than it may be."""


class Unreadable(Exception):
    """The body is not what its headers say."""


def unpack(body: bytes, encoding: str) -> bytes:
    """Return a body unpacked (`gzip`, or none). Errors: `TooBig` before more is unpacked, `Unreadable`."""
    if len(body) > MOST_PACKED:
        raise TooBig
    if encoding != "gzip":
        return body
    unpacker = zlib.decompressobj(_GZIP)
    try:
        whole = unpacker.decompress(body, MOST_UNPACKED + 1)
    except zlib.error:
        raise Unreadable from None
    if len(whole) > MOST_UNPACKED:
        raise TooBig
    if not unpacker.eof or unpacker.unused_data:
        raise Unreadable
    return whole


def parse(body: bytes, form: Form, message: M) -> M:
    """Read a body into a message. Errors: `Unreadable`, which never says what stood there."""
    try:
        if form is Form.PROTOBUF:
            message.ParseFromString(body)
        else:
            json_format.ParseDict(_object(body), message, ignore_unknown_fields=True)
    # Of odd JSON the library fails in more ways than it names.
    except (DecodeError, json_format.ParseError, ValueError, TypeError, AttributeError, RecursionError):
        raise Unreadable from None
    return message


def _object(body: bytes) -> dict[str, Any]:
    found = json.loads(body)
    if not isinstance(found, dict):
        raise ValueError
    return found


def write(message: Message, form: Form) -> bytes:
    """Write an answer in the form of its question."""
    if form is Form.PROTOBUF:
        return bytes(message.SerializeToString())
    told: dict[str, Any] = json_format.MessageToDict(message)
    return json.dumps(told, ensure_ascii=False).encode()


def answer_metrics(refused: int, words: str) -> ExportMetricsServiceResponse:
    """Return the answer to metrics: empty where there is nothing to say."""
    answer = ExportMetricsServiceResponse()
    if refused or words:
        answer.partial_success.rejected_data_points = refused
        answer.partial_success.error_message = words
    return answer


def answer_logs(refused: int, words: str) -> ExportLogsServiceResponse:
    """Return the answer to logs: empty where there is nothing to say."""
    answer = ExportLogsServiceResponse()
    if refused or words:
        answer.partial_success.rejected_log_records = refused
        answer.partial_success.error_message = words
    return answer


def refusal(words: str) -> Status:
    """Return what a failed request is answered with, where the question was protobuf."""
    return Status(message=words)
