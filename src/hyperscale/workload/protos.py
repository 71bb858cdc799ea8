"""What a service of gRPC looks like: from `.proto` files, a descriptor set, or generated modules.

Everything becomes a descriptor set, once; that is also what travels to other processes and
machines, which then need neither the files nor a compiler. `protobuf` is imported by those who
need it.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Self

from hyperscale.errors import BadInput
from hyperscale.workload.arguments import OptimizedArgument
from hyperscale.workload.files import locate

COMPILE_S_MAX = 60
_INSTALL = "pip install 'hyperscale-loadtest[grpc]'"


class Protos(OptimizedArgument):
    """`Protos("shop.proto")`, `Protos("shop.binpb")`, `Protos(shop_pb2)`, or a list of them."""

    __slots__ = ()
    accepts: ClassVar[str] = "paths of .proto files or descriptor sets, or generated modules"

    @classmethod
    def checked(cls, value: Any) -> Any:
        given = value if isinstance(value, list | tuple) else [value]
        if not given or not all(isinstance(one, str | Path | bytes | ModuleType) for one in given):
            raise cls.refuse(value)
        for one in given:
            if isinstance(one, ModuleType) and not hasattr(one, "DESCRIPTOR"):
                raise BadInput(
                    f"module {one.__name__} holds no messages",
                    "name the one that ends in _pb2, which protoc made",
                )
        return value

    def descriptors(self) -> Any:
        """The pool of all that is described."""
        pool = self.optimized.get("pool")
        if pool is None:
            pool = self.optimized["pool"] = pool_of([self._set()])
        return pool

    def _set(self) -> bytes:
        """As a serialized descriptor set."""
        known: bytes | None = self.optimized.get("set")
        if known is None:
            given = self.value if isinstance(self.value, list | tuple) else [self.value]
            files = [one for one in given if isinstance(one, str | Path)]
            # Descriptor sets are messages of a list: joined, they are one of both lists.
            parts = [_of_other(one) for one in given if not isinstance(one, str | Path)]
            protos = [one for one in files if str(one).endswith(".proto")]
            parts += [_read(one) for one in files if one not in protos]
            if protos:
                parts.append(_compiled(protos))
            known = self.optimized["set"] = b"".join(parts)
        return known

    def __reduce__(self) -> tuple[type[Self], tuple[Any]]:
        return type(self), (self._set(),)


def protobuf(module: str) -> Any:
    """A module of protobuf. Raises BadInput."""
    try:
        return import_module(f"google.protobuf.{module}")
    except ImportError:
        raise BadInput("gRPC needs a package that is not installed", _INSTALL) from None


def pool_of(sets: list[bytes]) -> Any:
    """A pool with the files of these descriptor sets."""
    kind = protobuf("descriptor_pb2").FileDescriptorSet
    files: dict[str, Any] = {}
    for one in sets:
        try:
            found = kind.FromString(one)
        except protobuf("message").DecodeError:
            raise BadInput("a descriptor set cannot be read", "protoc -o writes them") from None
        files.update((file.name, file) for file in found.file)
    pool = protobuf("descriptor_pool").DescriptorPool()
    for name in list(files):
        add_file(pool, files, name)
    return pool


def add_file(pool: Any, files: dict[str, Any], name: str) -> None:
    """With those that it imports first; those of protobuf itself are known. Raises BadInput."""
    file = files.pop(name, None)
    if file is None:
        try:
            pool.FindFileByName(name)
        except KeyError:
            copy = protobuf("descriptor_pb2").FileDescriptorProto()
            _well_known(name).CopyToProto(copy)
            pool.Add(copy)
        return
    for each in file.dependency:
        add_file(pool, files, each)
    try:
        pool.Add(file)
    except TypeError as error:
        raise BadInput(f"{name} cannot be used: {error}") from None


def _well_known(name: str) -> Any:
    try:
        import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        return protobuf("descriptor_pool").Default().FindFileByName(name)
    except (ImportError, KeyError):
        raise BadInput(
            f"a description imports {name}, which is not there",
            "write a descriptor set with protoc --include_imports",
        ) from None


def _of_other(given: bytes | ModuleType) -> bytes:
    if isinstance(given, bytes):
        return given
    kind = protobuf("descriptor_pb2").FileDescriptorSet
    files: dict[str, bytes] = {}

    def add(file: Any) -> None:
        if file.name not in files:
            for imported in file.dependencies:
                add(imported)
            files[file.name] = file.serialized_pb

    add(given.DESCRIPTOR)
    made = kind()
    for data in files.values():
        made.file.add().MergeFromString(data)
    return bytes(made.SerializeToString())


def _read(path: str | Path) -> bytes:
    try:
        return locate(str(path)).read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error


def _compiled(paths: list[str | Path]) -> bytes:
    import subprocess
    import tempfile

    found = [locate(str(path)) for path in paths]
    for path in found:
        if not path.is_file():
            raise BadInput(f"{path} is not a file")
    with tempfile.TemporaryDirectory(prefix="hyperscale-protos-") as folder:
        out = Path(folder) / "set"
        places = dict.fromkeys(str(path.parent.resolve()) for path in found)
        words = [*(f"-I{place}" for place in places), "--include_imports", f"-o{out}"]
        words += [str(path.resolve()) for path in found]
        ended = subprocess.run(
            [*_compiler(), *words],
            capture_output=True,
            text=True,
            timeout=COMPILE_S_MAX,
            check=False,
        )
        if ended.returncode:
            said = (ended.stderr or ended.stdout).strip()
            raise BadInput(f"{', '.join(map(str, paths))} cannot be compiled: {said[:1000]}")
        return out.read_bytes()


def _compiler() -> list[str]:
    import shutil
    import sys
    from importlib.util import find_spec

    if find_spec("grpc_tools") is not None:
        return [sys.executable, "-m", "grpc_tools.protoc"]
    found = shutil.which("protoc")
    if found:
        return [found]
    raise BadInput(
        "a .proto file needs a compiler, and none is installed",
        "pip install grpcio-tools, or give a descriptor set, which protoc -o writes",
    )
