"""What steps take and return: arguments prepared once, responses, and metrics of your own."""

from __future__ import annotations

from hyperscale.workload.arguments import (
    URL,
    Auth,
    Cookies,
    Data,
    Digest,
    File,
    Headers,
    Params,
)
from hyperscale.workload.browser_options import BrowserOptions
from hyperscale.workload.browser_response import BrowserResponse
from hyperscale.workload.custom_metrics import COUNT, DISTRIBUTION, RATE, SAMPLE, Metric
from hyperscale.workload.data import feed
from hyperscale.workload.email import Email
from hyperscale.workload.folders import Directory, FileGlob
from hyperscale.workload.grpc_response import GRPCResponse
from hyperscale.workload.http_options import ClientCert, HTTPOptions
from hyperscale.workload.protos import Protos
from hyperscale.workload.replies import (
    FTPResponse,
    GraphQLResponse,
    KafkaResponse,
    MongoDBResponse,
    MQTTResponse,
    MySQLResponse,
    NATSResponse,
    PostgresResponse,
    RabbitMQResponse,
    RedisResponse,
    SCPResponse,
    SFTPResponse,
    SMTPResponse,
    SSEResponse,
    TCPResponse,
    UDPResponse,
    WebSocketResponse,
)
from hyperscale.workload.responses import HTTP2Response, HTTP3Response, HTTPResponse
from hyperscale.workload.results import CallFailed, CallResult, CustomResult, Outcome

__all__ = [
    "COUNT",
    "DISTRIBUTION",
    "RATE",
    "SAMPLE",
    "URL",
    "Auth",
    "BrowserOptions",
    "BrowserResponse",
    "CallFailed",
    "CallResult",
    "ClientCert",
    "Cookies",
    "CustomResult",
    "Data",
    "Digest",
    "Directory",
    "Email",
    "FTPResponse",
    "File",
    "FileGlob",
    "GRPCResponse",
    "GraphQLResponse",
    "HTTP2Response",
    "HTTP3Response",
    "HTTPOptions",
    "HTTPResponse",
    "Headers",
    "KafkaResponse",
    "MQTTResponse",
    "Metric",
    "MongoDBResponse",
    "MySQLResponse",
    "NATSResponse",
    "Outcome",
    "Params",
    "PostgresResponse",
    "Protos",
    "RabbitMQResponse",
    "RedisResponse",
    "SCPResponse",
    "SFTPResponse",
    "SMTPResponse",
    "SSEResponse",
    "TCPResponse",
    "UDPResponse",
    "WebSocketResponse",
    "feed",
]
