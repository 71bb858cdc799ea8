"""A mail as a step takes it: encoded once, before the clock starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperscale.errors import BadInput
from hyperscale.workload.arguments import OptimizedArgument
from hyperscale.workload.texts import shown

_KNOWN = ("from", "to", "cc", "bcc", "subject", "text", "html", "headers", "attachments")


class Email(OptimizedArgument):
    """`{"from": ..., "to": [...], "subject": ..., "text": ...}`, and `cc`, `bcc`, `html`, `headers`
    (a dict) and `attachments` (names and bytes)."""

    __slots__ = ()
    accepts = "a dict with from, to, subject and text"

    @classmethod
    def checked(cls, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not value.get("from"):
            raise cls.refuse(value)
        unknown = [name for name in value if name not in _KNOWN]
        if unknown:
            raise BadInput(f"a mail has {shown(unknown[0])}", f"it may have {', '.join(_KNOWN)}")
        mail = dict(value)
        for name in ("to", "cc", "bcc"):
            given = mail.get(name) or ()
            mail[name] = [given] if isinstance(given, str) else list(given)
        if not (mail["to"] or mail["cc"] or mail["bcc"]):
            raise BadInput("a mail has no recipient", 'write "to": ["someone@shop.example"]')
        return mail

    def message(self) -> tuple[str, list[str], bytes]:
        """The sender, all recipients, and what is sent."""
        made: tuple[str, list[str], bytes] | None = self.optimized.get("message")
        if made is None:
            made = self.optimized["message"] = _encoded(self.value)
        return made


def _encoded(mail: dict[str, Any]) -> tuple[str, list[str], bytes]:
    # Imported by those who send mails: the package opens in milliseconds.
    from email.message import EmailMessage
    from email.policy import SMTP

    message = EmailMessage(policy=SMTP)
    try:
        message["From"] = mail["from"]
        for name in ("to", "cc"):
            if mail[name]:
                message[name.title()] = ", ".join(mail[name])
        message["Subject"] = mail.get("subject", "")
        for name, text in dict(mail.get("headers") or {}).items():
            message[name] = text
        message.set_content(mail.get("text", ""))
        if mail.get("html"):
            message.add_alternative(mail["html"], subtype="html")
        for name, data in dict(mail.get("attachments") or {}).items():
            message.add_attachment(
                data, maintype="application", subtype="octet-stream", filename=name
            )
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        raise BadInput(f"a mail cannot be written: {error}") from None
    sender = message["From"].addresses
    if len(sender) != 1:
        raise BadInput(f"the sender of a mail is {shown(mail['from'])}, not one address")
    everybody = [*mail["to"], *mail["cc"], *mail["bcc"]]
    return sender[0].addr_spec, everybody, message.as_bytes()
