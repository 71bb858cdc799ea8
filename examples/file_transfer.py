"""FTP: a file is sent, found, read and deleted. SFTP and SCP go the same way.

python -m pyftpdlib -w -p 2121 -u me -P secret &
hyperscale run examples/file_transfer.py    # FTP=ftp://user:password@files.example for another
"""

import os
from pathlib import Path

from hyperscale import Workflow, step
from hyperscale.testing import URL, File, FTPResponse

FTP = os.environ.get("FTP", "ftp://me:secret@127.0.0.1:2121")
USERS = Path(__file__).with_name("users.csv")


class Exchange(Workflow):
    vus = 5
    duration = "10s"
    thresholds = ["ftp_req_duration: p(95)<1s", "ftp_req_failed: rate<1%"]

    @step()
    async def send(self, server: URL = FTP, rows: File = USERS) -> FTPResponse:
        return await self.client.ftp.put(server, f"/{self.vu_id}.csv", rows, timeout="10s")

    @step("send")
    async def read(self, server: URL = FTP) -> FTPResponse:
        answer = await self.client.ftp.get(server, f"/{self.vu_id}.csv", timeout="10s")
        if answer.ok and "lovelace" not in answer.text():
            answer.fail("the file has no users in it")
        return answer

    @step("read")
    async def clean_up(self, server: URL = FTP) -> FTPResponse:
        return await self.client.ftp.delete(server, f"/{self.vu_id}.csv", timeout="10s")
