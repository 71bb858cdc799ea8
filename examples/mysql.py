"""MySQL or MariaDB: prepared queries and a transaction.

pip install 'hyperscale-loadtest[mysql]'
MYSQL=mysql://user:password@host/database hyperscale run examples/mysql.py
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, MySQLResponse

MYSQL = os.environ.get("MYSQL", "mysql://root@127.0.0.1/test")
TABLE = "create table if not exists accounts (id int primary key, balance int not null)"


class Bank(Workflow):
    vus = 10
    duration = "10s"
    thresholds = ["mysql_req_duration: p(95)<500ms", "mysql_req_failed: rate<1%"]

    async def setup(self):
        mysql = self.client.mysql
        accounts = ", ".join(f"({number}, 100)" for number in range(1, 101))
        for sql in (TABLE, f"insert ignore into accounts values {accounts}"):
            made = await mysql.execute(MYSQL, sql)
            if not made.ok:
                raise RuntimeError(made.error)

    @step()
    async def look(self, bank: URL = MYSQL) -> MySQLResponse:
        answer = await self.client.mysql.query(
            bank, "select balance from accounts where id = ?", self.random.randint(1, 100)
        )
        if answer.ok and answer.row_count != 1:
            answer.fail(f"{answer.row_count} accounts of one number")
        return answer

    @step("look")
    async def transfer(self, bank: URL = MYSQL) -> MySQLResponse:
        mysql = self.client.mysql
        first, second = sorted(self.random.sample(range(1, 101), 2))  # so that nobody deadlocks
        change = "update accounts set balance = balance + ? where id = ?"
        async with mysql.transaction(bank) as tx:
            await mysql.execute(tx, change, -1, first)
            return await mysql.execute(tx, change, 1, second)
