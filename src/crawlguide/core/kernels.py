"""Loops over bare columns, compiled by numba when a guide is opened and never before.

Signatures are explicit, so nothing compiles during a request; the machine code is cached on disk between runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba

from crawlguide.core.kernel_cache import guard, stamp

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
one_f64 = numba.float64
flag = numba.boolean
nothing = numba.void
matrix = numba.float64[:, ::1]
matrix_f32 = numba.float32[:, ::1]
matrix_i32 = numba.int32[:, ::1]
matrix_i64 = numba.int64[:, ::1]
pair = numba.types.UniTuple(numba.int64, 2)  # type: ignore[no-untyped-call]


def records(dtype: Any) -> Any:
    """The numba type of a column of records."""
    return numba.from_dtype(dtype)[::1]


def named(kind: type, *members: Any) -> Any:
    """The numba type of a NamedTuple of columns: for kernels that are called a few times a request, not per row.

    Such an argument costs some three microseconds a call more than its columns one by one.
    """
    return numba.types.NamedTuple(members, kind)  # type: ignore[no-untyped-call]


def kernel(signature: Any) -> Callable[[Function], Function]:
    """Compile for exactly this signature, and keep the machine code beside the source or in the user's cache.

    A kernel writes into columns it is given: to return an array costs several microseconds more.
    """

    def compiled(function: Function) -> Function:
        return _compiled(function, signature)

    return compiled


def part(function: Function) -> Function:
    """A piece of several kernels, compiled together with each for the types it meets there.

    It makes no array of its own, so the arrays it is given are not counted as references: to count them at every call
    took most of the time of a kernel. Neither `np.empty` nor `sort` nor a slice that is set to a slice will do here,
    and it returns no array: nobody would have counted it.
    """
    return _part(function)


def summing_part(function: Function) -> Function:
    """A part that adds up many numbers, in whatever order is fastest: else each step waits for the one before.

    The order is the same at every call, but on another kind of processor it may be another, and the last bit with it.
    """
    return _part(function, fastmath={"reassoc"})


def _part(function: Function, **options: Any) -> Function:
    result: Any = _compiled(function, _nrt=False, **options)
    compiled = result.compile

    def checked(signature: Any) -> Any:
        found = compiled(signature)
        for overload in result.overloads.values():
            told = overload.signature.return_type
            if any(isinstance(one, numba.types.Array) for one in getattr(told, "types", (told,))):
                raise TypeError(f"{function.__qualname__}: expected a part to return numbers or a record, got {told}")
        return found

    result.compile = checked
    return cast("Function", result)


def allocating_part(function: Function) -> Function:
    """A piece of several kernels that makes arrays, or returns them to a kernel."""
    return _compiled(function, _nrt=True)


def _compiled(function: Function, *signature: Any, **options: Any) -> Function:
    """Where nothing may be written, neither beside the source nor in the user's cache, it compiles at every start."""
    compiler: Any = numba.njit
    try:
        result = compiler(cache=True, nogil=True, **options)(function)
        kept = result._cache._cache_file
        kept._source_stamp = stamp(function, options)
        guard(kept)
    except RuntimeError:
        result = compiler(nogil=True, **options)(function)
    for only in signature:
        result.compile(only)
        result.disable_compile()
    return cast("Function", result)
