"""RabbitMQ in AMQP 0-9-1: `session` is a connection, `client` what a user calls with."""
