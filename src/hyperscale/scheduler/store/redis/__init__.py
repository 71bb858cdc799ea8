"""The shared store: one Redis (or one slot of a Redis cluster), used by many machines."""

from hyperscale.scheduler.store.redis.ground import RedisStore

__all__ = ["RedisStore"]
