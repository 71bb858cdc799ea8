"""SMTP: mails to one and to several recipients.

python -m aiosmtpd -n -l 127.0.0.1:8025 &
hyperscale run examples/smtp_mails.py    # SMTP=smtp://user:password@mail.example:587 for another
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, Email, SMTPResponse

SMTP = os.environ.get("SMTP", "smtp://127.0.0.1:8025")


class Mails(Workflow):
    vus = 5
    duration = "10s"
    thresholds = ["smtp_req_duration: p(95)<1s", "smtp_req_failed: rate<1%"]

    @step()
    async def receipt(
        self,
        server: URL = SMTP,
        mail: Email = {
            "from": "Shop <shop@shop.example>",
            "to": "buyer@shop.example",
            "subject": "Your order",
            "text": "Thank you.",
        },
    ) -> SMTPResponse:
        return await self.client.smtp.send(server, mail, timeout="10s")

    @step("receipt")
    async def news(self, server: URL = SMTP) -> SMTPResponse:
        number = self.random.randrange(1000)
        mail = {
            "from": "news@shop.example",
            "to": [f"reader{number}@shop.example", "editor@shop.example"],
            "subject": f"Issue {number}",
            "text": "Lamps are back.",
            "html": "<p>Lamps are back.</p>",
        }
        return await self.client.smtp.send(server, mail, timeout="10s")
