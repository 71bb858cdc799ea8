"""MongoDB: documents found and changed, and a transaction over two collections.

pip install 'hyperscale-loadtest[mongodb]'
MONGODB=mongodb://user:password@host/shop hyperscale run examples/mongodb_shop.py
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, MongoDBResponse

MONGODB = os.environ.get("MONGODB", "mongodb://127.0.0.1/shop")


class Shop(Workflow):
    vus = 10
    duration = "10s"
    thresholds = ["mongodb_req_duration: p(95)<500ms", "mongodb_req_failed: rate<1%"]

    async def setup(self):
        mongodb = self.client.mongodb
        await mongodb.delete(MONGODB, "items", {}, many=True)
        items = ({"_id": number, "name": f"lamp {number}", "sold": 0} for number in range(100))
        made = await mongodb.insert(MONGODB, "items", *items)
        if not made.ok:
            raise RuntimeError(made.error)

    @step()
    async def look(self, shop: URL = MONGODB) -> MongoDBResponse:
        answer = await self.client.mongodb.find(
            shop, "items", {"_id": self.random.randrange(100)}, limit=1
        )
        if answer.ok and answer.document is None:
            answer.fail("there is no such item")
        return answer

    @step("look")
    async def buy(self, shop: URL = MONGODB) -> MongoDBResponse:
        mongodb = self.client.mongodb
        # Each user sells items of its own: two transactions that change one document conflict.
        item = {"_id": self.vu_id % 100}
        async with mongodb.transaction(shop) as tx:
            await mongodb.update(tx, "items", item, {"$inc": {"sold": 1}})
            return await mongodb.insert(tx, "orders", {"item": item["_id"], "user": self.vu_id})
