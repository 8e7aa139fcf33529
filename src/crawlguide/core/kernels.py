"""Loops over bare columns, compiled by numba when a guide is opened and never before.

Signatures are explicit, so nothing compiles during a request; the machine code is cached on disk between runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., Any]")

F32 = numba.float32[::1]
F64 = numba.float64[::1]
I8 = numba.int8[::1]
I32 = numba.int32[::1]
I64 = numba.int64[::1]
U64 = numba.uint64[::1]
U8 = numba.uint8[::1]
MASK = numba.boolean[::1]
Bytes = numba.types.Array(numba.uint8, 1, "C", readonly=True)
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


def kernel(signature: Any) -> Callable[[Function], Function]:
    """Compile for exactly this signature, and keep the machine code beside the source or in the user's cache.

    A kernel writes into columns it is given: to return an array costs several microseconds more.
    """

    def compiled(function: Function) -> Function:
        return _compiled(function, signature)

    return compiled


def part(function: Function) -> Function:
    """A piece of several kernels, compiled together with each for the types it meets there."""
    return _compiled(function)


def _compiled(function: Function, *signature: Any) -> Function:
    """Where nothing may be written, neither beside the source nor in the user's cache, it compiles at every start."""
    compiler: Any = numba.njit
    try:
        result: Function = compiler(*signature, cache=True, nogil=True)(function)
    except RuntimeError:
        result = compiler(*signature, nogil=True)(function)
    return result
