"""GraphQL over HTTP/2: the queries of a page, at the same time on one connection.

hyperscale run examples/graphql_http2.py   # GRAPHQL=https://shop.example/graphql
"""

import asyncio
import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, GraphQLResponse

SHOP = os.environ.get("GRAPHQL", "http://127.0.0.1:8000/graphql")
ITEM = "query Item($id: Int!) { item(id: $id) { id name } }"


class Page(Workflow):
    vus = 10
    duration = "10s"
    thresholds = ["graphql_req_duration: p(95)<1s", "graphql_req_failed: rate<1%"]

    @step()
    async def show(self, shop: URL = SHOP) -> GraphQLResponse:
        query = self.client.graphqlh2.query
        items = self.random.sample(range(1, 101), 5)
        answers = await asyncio.gather(*(query(shop, ITEM, {"id": item}) for item in items))
        return answers[0]
