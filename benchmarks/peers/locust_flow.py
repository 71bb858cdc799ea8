"""Log in with JSON, read the token, send it in a header: the Locust twin of workflows.Flow."""

import json

from locust import FastHttpUser, task

CREDENTIALS = json.dumps({"user": "ada", "password": "lovelace"})
JSON = {"Content-Type": "application/json"}


class Flow(FastHttpUser):
    @task
    def log_in_and_read(self) -> None:
        token = self.client.post("/login", data=CREDENTIALS, headers=JSON).json()["token"]
        self.client.get("/me", headers={"Authorization": f"Bearer {token}"})
