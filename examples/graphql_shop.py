"""GraphQL: a query, a mutation and a subscription.

hyperscale run examples/graphql_shop.py   # GRAPHQL=https://shop.example/graphql
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, GraphQLResponse

SHOP = os.environ.get("GRAPHQL", "http://127.0.0.1:8000/graphql")

ITEM = "query Item($id: Int!) { item(id: $id) { id name } }"
BUY = "mutation Buy($id: Int!) { buy(id: $id) }"
COUNT = "subscription Count { count(to: 3) }"


class Shop(Workflow):
    vus = 5
    duration = "10s"
    thresholds = ["graphql_req_duration: p(95)<1s", "graphql_req_failed: rate<1%"]

    @step()
    async def look(self, shop: URL = SHOP) -> GraphQLResponse:
        answer = await self.client.graphql.query(shop, ITEM, {"id": self.random.randint(1, 100)})
        if answer.ok and not answer.data["item"]["name"]:
            answer.fail("an item without a name")
        return answer

    @step("look")
    async def buy(self, shop: URL = SHOP) -> GraphQLResponse:
        return await self.client.graphql.mutation(shop, BUY, {"id": 1})

    @step("buy")
    async def watch(self) -> GraphQLResponse:
        graphql = self.client.graphql
        opened = await graphql.subscribe(SHOP.replace("http", "ws", 1), COUNT)
        if not opened.ok:
            return opened
        first = await graphql.next(opened, timeout="5s")
        await graphql.unsubscribe(opened)
        return first
