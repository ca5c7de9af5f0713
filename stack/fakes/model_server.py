"""Three vendors of language models on loopback, each with its own protocol: Anthropic, OpenAI, Google.

Under `/anthropic`, `/openai` and `/google` they answer the requests that `hooks.models` makes, with texts of the
stand-in, which are made from the question and say so. `say` puts an answer of one's own in place of the next one,
`fail` a fault.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from include.arcvest import stand_in
from include.arcvest.models import Vendor
from include.errors import BadInput
from stack.fakes.http_fake import HttpFake, Request, Sent, as_json, command_line

_LISTS = {"/anthropic/v1/models", "/openai/v1/models", "/google/v1beta/models"}
_GOOGLE = re.compile(r"/google/v1beta/models/([^/:]+):generateContent")


@dataclass(frozen=True, slots=True)
class Asked:
    """One question as it came: its key, model, instructions and text."""

    vendor: Vendor
    key: str
    model: str
    instructions: str
    text: str


class ModelServer(HttpFake):
    """The vendors beneath one base URL. `asked` holds every question in order."""

    def __init__(self, *, key: str = "model-key", port: int = 0) -> None:
        super().__init__(port=port)
        self.key = key
        self.asked: list[Asked] = []
        self._planned: list[Sent | tuple[str, str | None]] = []
        self._lasting: Sent | None = None
        self._lock = threading.Lock()

    def say(self, text: str, ended: str | None = None) -> None:
        """Let the next question get this text; `ended` is the vendor's word for how it ended, if not well."""
        self._planned.append((text, ended))

    def fail(self, fault: Sent, *, times: int | None = 1) -> None:
        """Let so many of the next questions go wrong; None is for good."""
        if times is None:
            self._lasting = fault
        else:
            self._planned += [fault] * times

    def mend(self) -> None:
        """Take all faults back."""
        self._lasting = None
        self._planned.clear()

    def answer(self, request: Request) -> Sent:
        if request.path in _LISTS:
            return as_json({"data": []}) if _key(request) == self.key else _problem(401, "invalid key")
        asked = _read(request)
        if asked is None:
            return _problem(404, f"no such path: {request.path}")
        with self._lock:
            self.asked.append(asked)
            planned = self._planned.pop(0) if self._planned else self._lasting
        if isinstance(planned, Sent):
            return planned
        if asked.key != self.key:
            return _problem(401, "invalid key")
        try:
            text, ended = planned or (stand_in.answer(asked.text), None)
        except BadInput as error:
            return _problem(400, str(error))
        return as_json(_SPOKEN[asked.vendor](asked, text, ended))


def _read(request: Request) -> Asked | None:
    key, path = _key(request), request.path
    try:
        sent = json.loads(request.body or b"{}")
        if path == "/anthropic/v1/messages":
            return Asked("anthropic", key, sent["model"], sent["system"], sent["messages"][0]["content"])
        if path == "/openai/v1/chat/completions":
            system, user = sent["messages"]
            return Asked("openai", key, sent["model"], system["content"], user["content"])
        if found := _GOOGLE.fullmatch(path):
            instructions = sent["system_instruction"]["parts"][0]["text"]
            return Asked("google", key, found[1], instructions, sent["contents"][0]["parts"][0]["text"])
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    return None


def _key(request: Request) -> str:
    headers = request.headers
    bearer = (headers.get("Authorization") or "").removeprefix("Bearer ")
    return headers.get("x-api-key") or headers.get("x-goog-api-key") or bearer


def _anthropic(asked: Asked, text: str, ended: str | None) -> Mapping[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [{"type": "text", "text": text}],
        "stop_reason": ended or "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": len(asked.text) // 4, "output_tokens": len(text) // 4},
    }


def _openai(asked: Asked, text: str, ended: str | None) -> Mapping[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": asked.model,
        "choices": [{"index": 0, "message": message, "finish_reason": ended or "stop"}],
        "usage": {"prompt_tokens": len(asked.text) // 4, "completion_tokens": len(text) // 4},
    }


def _google(asked: Asked, text: str, ended: str | None) -> Mapping[str, Any]:
    parts = [{"text": "let me think", "thought": True}, {"text": text}]
    return {
        "candidates": [
            {"content": {"role": "model", "parts": parts}, "finishReason": ended or "STOP", "index": 0}
        ],
        "usageMetadata": {
            "promptTokenCount": len(asked.text) // 4,
            "candidatesTokenCount": len(text) // 4,
        },
        "modelVersion": asked.model,
    }


_SPOKEN: Mapping[Vendor, Callable[[Asked, str, str | None], Mapping[str, Any]]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "google": _google,
}


def _problem(status: int, message: str) -> Sent:
    return as_json({"type": "error", "error": {"type": "error", "message": message}}, status)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the vendors, and say on the first line of standard output where."""
    parser = command_line("model_server", main.__doc__)
    parser.add_argument(
        "--key", default=os.environ.get("MODELS_KEY", "model-key"), help="default: the variable MODELS_KEY"
    )
    given = parser.parse_args(arguments)
    ModelServer(key=given.key, port=given.port).serve("models")


if __name__ == "__main__":
    main()
