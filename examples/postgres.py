"""PostgreSQL: prepared queries and a transaction.

pip install 'hyperscale-loadtest[postgres]' pgserver
hyperscale run examples/postgres.py      # POSTGRES=postgresql://user:password@host/db for another
"""

import asyncio
import os
import tempfile

from hyperscale import Workflow, step
from hyperscale.testing import URL, PostgresResponse

FOLDER = f"{tempfile.gettempdir()}/hyperscale-postgres-{os.getuid()}"
POSTGRES = os.environ.get("POSTGRES") or f"postgresql://postgres@/postgres?host={FOLDER}"
SCHEMA = """
create table if not exists accounts (id int primary key, balance int not null);
insert into accounts select n, 100 from generate_series(1, 100) n on conflict do nothing;
"""


def wheels_server():
    """The server in that folder, started if it does not run."""
    import pgserver

    return pgserver.get_server(FOLDER)


class Bank(Workflow):
    vus = 10
    duration = "10s"
    thresholds = ["postgres_req_duration: p(95)<500ms", "postgres_req_failed: rate<1%"]

    async def setup(self):
        if not os.environ.get("POSTGRES"):
            await asyncio.to_thread(wheels_server)
        made = await self.client.postgres.execute(POSTGRES, SCHEMA)
        if not made.ok:
            raise RuntimeError(made.error)

    async def teardown(self):
        if not os.environ.get("POSTGRES"):
            wheels_server().cleanup()

    @step()
    async def look(self, bank: URL = POSTGRES) -> PostgresResponse:
        answer = await self.client.postgres.query(
            bank, "select balance from accounts where id = $1", self.random.randint(1, 100)
        )
        if answer.ok and answer.row_count != 1:
            answer.fail(f"{answer.row_count} accounts of one number")
        return answer

    @step("look")
    async def transfer(self, bank: URL = POSTGRES) -> PostgresResponse:
        postgres = self.client.postgres
        first, second = sorted(self.random.sample(range(1, 101), 2))  # so that nobody deadlocks
        change = "update accounts set balance = balance + $2 where id = $1"
        async with postgres.transaction(bank) as tx:
            await postgres.execute(tx, change, first, -1)
            return await postgres.execute(tx, change, second, 1)
