"""MQTT: sensors that publish, a reader for each, and how long a message takes between them.

mosquitto -p 1883 &
hyperscale run examples/mqtt_sensors.py  # MQTT=mqtts://user:password@broker.example for another
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, MQTTResponse

MQTT = os.environ.get("MQTT", "mqtt://127.0.0.1:1883")


class Sensors(Workflow):
    vus = 10
    duration = "10s"
    thresholds = [
        "mqtt_req_duration{name:reading}: p(95)<250ms",
        "mqtt_req_failed: rate<1%",
        "mqtt_msg_latency: p(95)<500ms",
    ]

    async def on_start(self):
        self.topic = f"sensors/{self.vu_id}/temperature"
        await self.client.mqtt.subscribe(MQTT, self.topic, name="subscribe")

    @step()
    async def measure(self, broker: URL = MQTT) -> MQTTResponse:
        reading = {"celsius": self.random.randrange(15, 25)}
        return await self.client.mqtt.publish(broker, self.topic, reading, qos=1, name="reading")

    @step("measure")
    async def show(self, broker: URL = MQTT) -> MQTTResponse:
        answer = await self.client.mqtt.consume(broker, self.topic, timeout="5s", name="shown")
        if answer.ok and not 15 <= answer.json()["celsius"] < 25:
            answer.fail(f"no sensor sent {answer.text()}")
        return answer
