"""Language models as the pipeline asks them, and which one does what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from include.effects import Effects
from include.errors import Outage, Transient

Vendor = Literal["anthropic", "openai", "google"]

CLAUDE = "arcvest_claude_model"
GPT = "arcvest_gpt_model"
GEMINI = "arcvest_gemini_model"

VENDORS: dict[str, Vendor] = {CLAUDE: "anthropic", GPT: "openai", GEMINI: "google"}
"""Who has the model that a variable names."""

MODELS: dict[str, str | None] = {
    CLAUDE: "claude-sonnet-4-5",
    GPT: "gpt-5.1",
    GEMINI: "gemini-2.5-pro",
}
"""The one place where models are named: the variables that choose them, with their defaults."""


class KeyRefused(Outage):
    """Our key, our account or the name of a model is wrong: whoever asks gets the same answer, until we mend it."""


class Unusable(Transient):
    """A model answered with something that must not be kept: cut off, no JSON, or not in the agreed form.

    Models don't give the same answer twice, so another try may bring a whole one.
    """


class Truncated(Unusable):
    """The answer ended at the limit of its length, whatever it looks like."""


@dataclass(frozen=True, slots=True)
class Question:
    """What one model is asked: `instructions` are ours, `text` is a JSON document and nothing but data.

    `most` is the length of the answer in tokens.
    """

    vendor: Vendor
    model: str
    instructions: str
    text: str
    most: int = 16_000


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer, as text; `model` is who gave it by its own account. Tokens are what it cost."""

    text: str
    model: str
    tokens_in: int = 0
    tokens_out: int = 0


def service(vendor: Vendor) -> str:
    """Return the name of a vendor in the ledger of outages."""
    return f"arcvest models: {vendor}"


class Models(Protocol):
    """Where questions are answered."""

    def check(self, vendor: Vendor) -> None:
        """See that we have what a vendor is asked with, and ask nobody. Raises KeyRefused if we have not."""
        ...

    def ask(self, question: Question) -> Reply:
        """Return the whole answer of one request, which is made once.

        Raises Outage if the vendor is out of reach or overloaded, or our key for it is wrong; Truncated or
        Unusable for an answer that is not whole; Refused if the vendor won't answer this question.
        """
        ...


class RecordedModels:
    """What a preview uses: it asks nobody, and a placeholder answers."""

    def __init__(self, effects: Effects, models: Models, placeholder: Models) -> None:
        self._effects = effects
        self._models = models
        self._placeholder = placeholder

    def check(self, vendor: Vendor) -> None:
        self._models.check(vendor)

    def ask(self, question: Question) -> Reply:
        self._effects.call(question.vendor, f"ask {question.model}")
        return self._placeholder.ask(question)
