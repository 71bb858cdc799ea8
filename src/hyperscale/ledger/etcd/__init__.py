"""Logs of operations kept in an etcd that somebody else looks after."""
