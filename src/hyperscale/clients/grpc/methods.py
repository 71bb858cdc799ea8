"""Methods by their names: what they take and give, as the description or the server tells it."""

from __future__ import annotations

from typing import Any, NamedTuple

from hyperscale.errors import BadInput
from hyperscale.workload.arguments import Data
from hyperscale.workload.protos import Protos, add_file, protobuf
from hyperscale.workload.texts import shown


class Method(NamedTuple):
    """`takes` and `gives` are classes of messages; None: they are handed over as bytes."""

    path: str
    takes: Any
    gives: Any
    streams_in: bool  # many messages go to the server
    streams_out: bool  # many come from it


def path_of(name: Any) -> str:
    """`package.Service/Method`, with or without a slash before it. Raises BadInput."""
    text = name if isinstance(name, str) else ""
    service, slash, method = text.removeprefix("/").partition("/")
    if not slash or not service or not method or "/" in method or not text.isascii():
        raise BadInput(f"{shown(name)} is not a method of gRPC", "write 'package.Service/Method'")
    return f"/{service}/{method}"


def described(path: str, protos: Protos | None, message: Any) -> Method | None:
    """The method, by the description that was given, else by the one that the message comes from,
    else by the generated modules that are imported; None: nobody but the server knows it."""
    if protos is not None:
        return _found(protos.descriptors(), path, strict=True)
    descriptor = getattr(message, "DESCRIPTOR", None)
    if descriptor is not None:
        return _found(descriptor.file.pool, path)
    return _found(protobuf("descriptor_pool").Default(), path)


def _found(pool: Any, path: str, strict: bool = False) -> Method | None:
    service_name, method_name = path[1:].split("/")
    try:
        service = pool.FindServiceByName(service_name)
    except KeyError:
        if strict:
            raise BadInput(f"the description has no service {service_name}") from None
        return None
    method = service.methods_by_name.get(method_name)
    if method is None and not strict:
        return None
    if method is None:
        known = ", ".join(one.name for one in service.methods) or "none"
        raise BadInput(f"{service_name} has no method {method_name}", f"its methods: {known}")
    made = protobuf("message_factory").GetMessageClass
    return Method(
        path,
        made(method.input_type),
        made(method.output_type),
        method.client_streaming,
        method.server_streaming,
    )


def encoded(method: Method, message: Any) -> bytes:
    """A message as its bytes. Raises BadInput."""
    if isinstance(message, bytes):
        return message
    if isinstance(message, Data):  # a typed argument: once for all calls
        known: bytes | None = message.optimized.get(method.path)
        if known is None:
            known = message.optimized[method.path] = encoded(method, message.value)
        return known
    if message is None:
        return b""
    if isinstance(message, dict):
        return _of_dict(method, message)
    serialize = getattr(message, "SerializeToString", None)
    if serialize is None:
        raise BadInput(
            f"a message of gRPC is {shown(message)}", "give a dict, a message of protobuf or bytes"
        )
    data: bytes = serialize()
    return data


def _of_dict(method: Method, message: dict[str, Any]) -> bytes:
    if method.takes is None:
        raise BadInput(f"nobody knows what {method.path} takes", "give protos=")
    parser = protobuf("json_format")
    try:
        data: bytes = parser.ParseDict(message, method.takes()).SerializeToString()
    except (parser.ParseError, TypeError, ValueError) as error:
        name = method.takes.DESCRIPTOR.full_name
        raise BadInput(f"{shown(message)} is not a {name}: {error}") from None
    return data


# -- what a server tells of itself (grpc.reflection) -----------------------------------------------

REFLECTION = ("grpc.reflection.v1", "grpc.reflection.v1alpha")


def question(*, symbol: str = "", file: str = "") -> bytes:
    """A ServerReflectionRequest: for the file that defines a symbol, or for a file."""
    asked = (symbol or file).encode()
    number = 4 if symbol else 3
    return bytes((number << 3 | 2,)) + _length(len(asked)) + asked


def _length(size: int) -> bytes:
    return bytes((size,)) if size < 128 else bytes((size & 0x7F | 0x80, size >> 7))


def answer_type() -> Any:
    """The class of a ServerReflectionResponse, as far as it is read."""
    files = protobuf("descriptor_pb2").FileDescriptorProto
    text = """
        name: "hyperscale/reflection.proto" package: "hyperscale.reflection" syntax: "proto3"
        message_type { name: "Files"
          field { name: "file" number: 1 label: LABEL_REPEATED type: TYPE_BYTES } }
        message_type { name: "Error"
          field { name: "code" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32 }
          field { name: "message" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING } }
        message_type { name: "Answer"
          field { name: "files" number: 4 label: LABEL_OPTIONAL type: TYPE_MESSAGE
            type_name: ".hyperscale.reflection.Files" }
          field { name: "error" number: 7 label: LABEL_OPTIONAL type: TYPE_MESSAGE
            type_name: ".hyperscale.reflection.Error" } }
    """
    pool = protobuf("descriptor_pool").DescriptorPool()
    pool.Add(protobuf("text_format").Parse(text, files()))
    found = pool.FindMessageTypeByName("hyperscale.reflection.Answer")
    return protobuf("message_factory").GetMessageClass(found)


class Reflected:
    """What a server has told, file by file; `missing` are those that the others import."""

    def __init__(self) -> None:
        self.files: dict[str, Any] = {}
        self._kind = protobuf("descriptor_pb2").FileDescriptorProto

    def add(self, data: bytes) -> None:
        file = self._kind.FromString(data)
        self.files[file.name] = file

    @property
    def missing(self) -> list[str]:
        named = (name for file in self.files.values() for name in file.dependency)
        return [
            name
            for name in dict.fromkeys(named)
            if name not in self.files and not name.startswith("google/protobuf/")
        ]

    def method(self, path: str) -> Method:
        """Raises BadInput."""
        pool = protobuf("descriptor_pool").DescriptorPool()
        files = dict(self.files)
        for name in list(files):
            add_file(pool, files, name)
        found = _found(pool, path, strict=True)
        assert found is not None
        return found
