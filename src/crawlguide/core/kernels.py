"""How kernels are compiled: numba loops over numpy columns.

Signatures are explicit, so kernels compile when a guide is opened and never during a request. The machine code is
cached on disk between runs (see `kernel_cache.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba

from crawlguide.core.kernel_cache import fingerprint, key_by_fields, share_between_processes

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., Any]")

f32s = numba.float32[::1]
f64s = numba.float64[::1]
i8s = numba.int8[::1]
i32s = numba.int32[::1]
i64s = numba.int64[::1]
u64s = numba.uint64[::1]
u8s = numba.uint8[::1]
bools = numba.boolean[::1]
fixed_bytes = numba.types.Array(numba.uint8, 1, "C", readonly=True)
one_i64 = numba.int64
one_u64 = numba.uint64
one_f64 = numba.float64
flag = numba.boolean
nothing = numba.void
matrix = numba.float64[:, ::1]
matrix_f32 = numba.float32[:, ::1]
matrix_i64 = numba.int64[:, ::1]
pair = numba.types.UniTuple(numba.int64, 2)  # type: ignore[no-untyped-call]


def records(dtype: Any) -> Any:
    """The numba type of a column of records."""
    return numba.from_dtype(dtype)[::1]


def named_tuple(kind: type[tuple[Any, ...]], *fields: Any) -> Any:
    """The numba type of a `NamedTuple`: one argument of a kernel that has many arrays to read and write.

    It costs some three microseconds a call more than its columns one by one: not for kernels that are called per row.
    """
    types: Any = numba.types
    if all(field == fields[0] for field in fields):
        return types.NamedUniTuple(fields[0], len(fields), kind)
    return types.NamedTuple(fields, kind)


def kernel(signature: Any) -> Callable[[Function], Function]:
    """Compile for exactly this signature, and cache the machine code beside the source or in the user's cache folder.

    A kernel writes its results into columns that the caller passes: returning an array costs several microseconds more.
    """

    def compiled(function: Function) -> Function:
        return _compiled(function, signature)

    return compiled


def part(function: Function) -> Function:
    """A function that kernels call; it is compiled into each of them.

    It is compiled without reference counting of arrays, which took most of the time of a kernel. Therefore it may
    neither allocate nor return an array: no `np.empty`, no `sort`, no assignment of a slice to a slice.
    """
    return _part(function)


def summing_part(function: Function) -> Function:
    """A part that sums many numbers in the order that is fastest for the processor.

    The order is the same at every call, but may differ on another kind of processor, and the last bit with it.
    """
    return _part(function, fastmath={"reassoc"})


def _part(function: Function, **options: Any) -> Function:
    result: Any = _compiled(function, _nrt=False, **options)
    compile_for = result.compile

    def checked(signature: Any) -> Any:
        overload_address = compile_for(signature)
        for overload in result.overloads.values():
            kind = overload.signature.return_type
            if any(isinstance(one, numba.types.Array) for one in getattr(kind, "types", (kind,))):
                raise TypeError(f"{function.__qualname__}: expected a part to return numbers or a record, got {kind}")
        return overload_address

    result.compile = checked
    return cast("Function", result)


def allocating_part(function: Function) -> Function:
    """A part that may allocate arrays and return them to its kernel."""
    return _compiled(function, _nrt=True)


def _compiled(function: Function, *signature: Any, **options: Any) -> Function:
    """Where neither the source folder nor the user's cache folder can be written, it compiles at every start."""
    compiler: Any = numba.njit
    try:
        result = compiler(cache=True, nogil=True, **options)(function)
        cache_file = result._cache._cache_file
        cache_file._source_stamp = fingerprint(function, options)
        key_by_fields(result._cache)
        share_between_processes(cache_file)
    except RuntimeError:
        result = compiler(nogil=True, **options)(function)
    for exactly in signature:
        result.compile(exactly)
        result.disable_compile()
    return cast("Function", result)
