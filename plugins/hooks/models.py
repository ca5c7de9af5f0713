"""Language models of three vendors behind one connection: Anthropic, OpenAI, Google.

The connection's extra holds `anthropic_api_key`, `openai_api_key` and `google_api_key`; the password stands in for a
key that is missing. A host is a gateway's base URL, which has the vendors under `/anthropic`, `/openai` and `/google`;
the extra's `anthropic_url`, `openai_url` and `google_url` say otherwise. With the extra `provider` = `stand_in` nobody
is asked, and the texts say so. A question is one request: who pays for a second one decides that himself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from airflow.sdk import BaseHook

from hooks.connections import Access, access
from hooks.json_http import Answer, Limits, Unanswered, Unreached, request
from include.arcvest.models import (
    KeyRefused,
    Models,
    Question,
    Reply,
    Truncated,
    Unusable,
    Vendor,
    service,
)
from include.arcvest.stand_in import StandIn
from include.errors import AlmanacError, BadInput, Outage, QuotaExhausted, Refused

LARGEST = 8 * 1024 * 1024
"""Bytes of an answer."""

# Less than a task's limit of 600 s, so that an answer that is late is told of as such.
_LONGEST_SECONDS = 540
_OURS = (401, 402, 403, 404)
_MOST_TOKENS = 10**9
_TRY_LATER = (408, 409, 425, 429)
_SECONDS = re.compile(r"([0-9]{1,6})(\.[0-9]+)?s")
_DAYS_QUOTA = re.compile(r"PerDay(?![a-z])")
_PROVIDERS = ("vendors", "stand_in")


def models(conn_id: str) -> Models:
    """Return the models behind an Airflow connection, without asking them anything."""
    found = access(conn_id)
    provider = found.text("provider", "vendors")
    if provider not in _PROVIDERS:
        raise found.bad("extra 'provider'", f"must be one of {', '.join(_PROVIDERS)}: {provider!r}")
    return StandIn() if provider == "stand_in" else HttpModels(found)


class ModelsHook(BaseHook):
    """What Airflow's connection form and its Test button know of the models."""

    conn_name_attr = "models_conn_id"
    default_conn_name = "almanac_models"
    conn_type = "almanac_models"
    hook_name = "Language models (Almanac)"

    def __init__(self, models_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.models_conn_id = models_conn_id

    def get_conn(self) -> Models:
        """Return the models; see `models`."""
        return models(self.models_conn_id)

    def test_connection(self) -> tuple[bool, str]:
        """Ask each vendor for its list of models, which costs nothing."""
        try:
            found = self.get_conn()
            if isinstance(found, HttpModels):
                return found.test_connection()
        except AlmanacError as error:
            return False, str(error)
        return True, "Nobody is asked: the stand-in answers"


@dataclass(frozen=True, slots=True)
class _Protocol:
    """How one vendor is spoken to: where, with which headers, what is sent, and what is read."""

    url: str
    models_path: str
    headers: Callable[[str], Mapping[str, str]]
    sent: Callable[[Question], tuple[str, Mapping[str, Any]]]
    read: Callable[[Any], Reply]


class HttpModels:
    """The vendors behind one connection. The extra's `timeout` is how long one may be silent, in seconds."""

    def __init__(self, access: Access) -> None:
        self._access = access
        silence = access.number("timeout", 240, 0.1, _LONGEST_SECONDS)
        total = access.number("total", 420, 0.1, _LONGEST_SECONDS)
        self._limits = Limits(silence=silence, total=total, largest=LARGEST)

    def check(self, vendor: Vendor) -> None:
        """See that a vendor's key and address are there, as `include.arcvest.models.Models` promises."""
        self._key(vendor)
        self._base(vendor)

    def ask(self, question: Question) -> Reply:
        """Answer a question, as `include.arcvest.models.Models` promises."""
        vendor, protocol = question.vendor, _PROTOCOLS[question.vendor]
        path, body = protocol.sent(question)
        answer = self._request(vendor, "POST", path, body)
        if answer.status != 200:  # noqa: PLR2004 - HTTP's own number
            raise self._problem(vendor, path, answer)
        try:
            return protocol.read(answer.json())
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise Unusable(
                f"{self._where(vendor, path)}: no such answer: {answer.says(self._access)}"
            ) from None
        except AlmanacError as error:
            raise type(error)(f"{self._where(vendor, path)}: {error}") from None

    def test_connection(self) -> tuple[bool, str]:
        """Ask each vendor for its list of models, which costs nothing."""
        for vendor, protocol in _PROTOCOLS.items():
            answer = self._request(vendor, "GET", protocol.models_path)
            if answer.status != 200:  # noqa: PLR2004 - HTTP's own number
                return False, str(self._problem(vendor, protocol.models_path, answer))
        return True, f"{', '.join(_PROTOCOLS)} answered"

    def _request(
        self, vendor: Vendor, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> Answer:
        headers = _PROTOCOLS[vendor].headers(self._key(vendor))
        try:
            return request(method, f"{self._base(vendor)}/{path}", headers, body, self._limits)
        except (Unreached, Unanswered) as error:
            raise Outage(f"{self._where(vendor, path)}: {error}", service=service(vendor)) from None

    def _problem(self, vendor: Vendor, path: str, answer: Answer) -> AlmanacError:
        says = f"{self._where(vendor, path)} answered {answer.says(self._access)}"
        content = answer.json()
        later = answer.retry_at or _retry_info(content)
        told = answer.body[:LARGEST].decode("utf-8", "replace")
        if "insufficient_quota" in told or "credit balance" in told or _days_quota(content):
            return QuotaExhausted(says, retry_at=later, service=service(vendor))
        if answer.status in _OURS or "API_KEY_INVALID" in told:
            asked = f"is the key or the model's name in connection {self._access.conn_id} and its variables right?"
            return KeyRefused(f"{says} ({asked})", service=service(vendor))
        # 529 is Anthropic's "overloaded".
        if answer.status in _TRY_LATER or not 400 <= answer.status < 500:  # noqa: PLR2004 - HTTP's own numbers
            return Outage(says, retry_at=later, service=service(vendor))
        return Refused(says)

    def _key(self, vendor: Vendor) -> str:
        key = self._access.text(f"{vendor}_api_key") or self._access.password or ""
        if not re.fullmatch(r"[!-~]+", key):
            why = "must be the vendor's key, in visible ASCII characters (or set the extra 'provider' to stand_in)"
            said = str(self._access.bad(f"extra '{vendor}_api_key'", why))
            raise KeyRefused(said, service=service(vendor))
        return key

    def _base(self, vendor: Vendor) -> str:
        own = self._access.text(f"{vendor}_url")
        if own is None and not self._access.host and self._access.text("base_url") is None:
            return _PROTOCOLS[vendor].url
        try:
            if own is None:
                return f"{self._access.base_url()}/{vendor}"
            return replace(self._access, extra={**self._access.extra, "base_url": own}).base_url()
        except BadInput as error:
            # A slip in the connection is no idea's fault.
            raise KeyRefused(str(error), service=service(vendor)) from None

    def _where(self, vendor: Vendor, path: str) -> str:
        return f"models {self._access.conn_id}: {self._base(vendor)}/{path}"


def _details(content: Any) -> list[dict[str, Any]]:
    """Return what Google says of an error beside its message."""
    try:
        return _dicts(content["error"]["details"])
    except (KeyError, TypeError):
        return []


def _dicts(given: Any) -> list[dict[str, Any]]:
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def _days_quota(content: Any) -> bool:
    """Say whether Google refuses for the rest of a day: its 429 is the same for a minute's quota."""
    violations = [one for detail in _details(content) for one in _dicts(detail.get("violations"))]
    quotas = [str(one.get("quotaId")) for one in violations]
    return any(_DAYS_QUOTA.search(quota) for quota in quotas)


def _retry_info(content: Any) -> datetime | None:
    """Return when Google wants to be asked again: it says so in the body."""
    delays = [detail.get("retryDelay") for detail in _details(content)]
    found = [m for delay in delays if isinstance(delay, str) and (m := _SECONDS.fullmatch(delay))]
    return datetime.now(UTC) + timedelta(seconds=int(found[0][1]) + 1) if found else None


def _ended(reason: object, whole: str, cut: tuple[str, ...]) -> None:
    """Let an answer pass that ended by itself."""
    if reason in cut:
        raise Truncated(f"the answer was cut off ({reason})")
    if reason != whole:
        raise Refused(f"the model did not answer ({reason})")


def _anthropic_sent(question: Question) -> tuple[str, Mapping[str, Any]]:
    return "v1/messages", {
        "model": question.model,
        "max_tokens": question.most,
        "system": question.instructions,
        "messages": [{"role": "user", "content": question.text}],
    }


def _anthropic_read(content: Any) -> Reply:
    # Nothing is said of tools, so that neither they nor a pause in them can be asked for.
    _ended(content["stop_reason"], "end_turn", ("max_tokens", "model_context_window_exceeded"))
    texts = [block["text"] for block in content["content"] if block["type"] == "text"]
    usage = content.get("usage")
    return _reply(texts, content["model"], _tokens(usage, "input_tokens"), _tokens(usage, "output_tokens"))


def _openai_sent(question: Question) -> tuple[str, Mapping[str, Any]]:
    return "v1/chat/completions", {
        "model": question.model,
        "max_completion_tokens": question.most,
        "response_format": {"type": "json_object"},
        "messages": [
            {"role": "system", "content": question.instructions},
            {"role": "user", "content": question.text},
        ],
    }


def _openai_read(content: Any) -> Reply:
    choice = content["choices"][0]
    _ended(choice["finish_reason"], "stop", ("length",))
    if choice["message"].get("refusal"):
        raise Refused("the model did not answer (refusal)")
    usage = content.get("usage")
    tokens_in, tokens_out = _tokens(usage, "prompt_tokens"), _tokens(usage, "completion_tokens")
    return _reply([choice["message"]["content"]], content["model"], tokens_in, tokens_out)


def _google_sent(question: Question) -> tuple[str, Mapping[str, Any]]:
    return f"v1beta/models/{quote(question.model, safe='')}:generateContent", {
        "system_instruction": {"parts": [{"text": question.instructions}]},
        "contents": [{"role": "user", "parts": [{"text": question.text}]}],
        "generationConfig": {"maxOutputTokens": question.most, "responseMimeType": "application/json"},
    }


def _google_read(content: Any) -> Reply:
    blocked = (content.get("promptFeedback") or {}).get("blockReason")
    if blocked:
        raise Refused(f"the model did not answer ({blocked})")
    candidate = content["candidates"][0]
    _ended(candidate["finishReason"], "STOP", ("MAX_TOKENS",))
    texts = [part["text"] for part in candidate["content"]["parts"] if not part.get("thought")]
    usage = content.get("usageMetadata")
    tokens_in, tokens_out = _tokens(usage, "promptTokenCount"), _tokens(usage, "candidatesTokenCount")
    return _reply(texts, content["modelVersion"], tokens_in, tokens_out)


def _tokens(usage: Any, name: str) -> int:
    """Return a number of tokens; an odd one counts as none, since the answer beside it is paid for."""
    number = usage.get(name) if isinstance(usage, dict) else None
    return number if isinstance(number, int) and 0 <= number <= _MOST_TOKENS else 0


def _reply(texts: list[Any], model: Any, tokens_in: int, tokens_out: int) -> Reply:
    if not all(isinstance(text, str) for text in [*texts, model]):
        raise TypeError("text")
    return Reply("".join(texts), model, tokens_in, tokens_out)


_PROTOCOLS: Mapping[Vendor, _Protocol] = {
    "anthropic": _Protocol(
        url="https://api.anthropic.com",
        models_path="v1/models",
        headers=lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
        sent=_anthropic_sent,
        read=_anthropic_read,
    ),
    "openai": _Protocol(
        url="https://api.openai.com",
        models_path="v1/models",
        headers=lambda key: {"Authorization": f"Bearer {key}"},
        sent=_openai_sent,
        read=_openai_read,
    ),
    "google": _Protocol(
        url="https://generativelanguage.googleapis.com",
        models_path="v1beta/models",
        headers=lambda key: {"x-goog-api-key": key},
        sent=_google_sent,
        read=_google_read,
    ),
}
