"""How kernels are compiled: numba loops over numpy columns.

Signatures are explicit, so kernels compile when a guide is opened and never during a request. The machine code is
cached on disk between runs (see `kernel_cache.py`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
from numba.core import compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.sigutils import normalize_signature

from crawlguide.core import processor
from crawlguide.core.kernel_cache import fingerprint, key_by_fields, read_beside_source, share_between_processes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Function = TypeVar("Function", bound="Callable[..., Any]")

processor.choose()

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
    return lambda function: _compiled(function, signature)


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


def allocating_part(function: Function) -> Function:
    """A part that may allocate arrays and return them to its kernel."""
    return _part(function, may_allocate=True)


def _part(function: Function, *, may_allocate: bool = False, **options: Any) -> Function:
    options = {**options, "_nrt": may_allocate, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    result: Any = numba.njit(**options)(function)
    fingerprint(function, options)

    def compiled(signature: Any) -> Any:
        arguments: tuple[Any, ...] = tuple(normalize_signature(signature)[0])  # type: ignore[no-untyped-call]
        if arguments not in result.overloads:
            with global_compiler_lock:
                made = _linkable(result, arguments)
            if not may_allocate:
                _check_returned(made)
            result.overloads[arguments] = made
            result.targetctx.insert_user_function(made.entry_point, made.fndesc, [made.library])
        return result.overloads[arguments].entry_point

    result.compile = compiled
    return cast("Function", result)


def _linkable(part: Any, arguments: Sequence[Any]) -> Any:
    """What numba compiles of a part, for kernels to be linked with. There is no machine code of its own, nothing to
    call it from Python and nothing to keep: a third of the time to compile all kernels went into these.
    """
    numba_compiler: Any = compiler
    function, flags = part.py_func, numba_compiler.Flags()
    part.targetdescr.options.parse_as_flags(flags, part.targetoptions)
    flags.no_compile = True
    library = part.targetctx.codegen().create_library(function.__qualname__)
    library._finalize_final_module = partial(setattr, library, "_finalized", True)
    made = numba_compiler.compile_extra(part.typingctx, part.targetctx, function, arguments, None, flags, {}, library)
    return made._replace(entry_point=function)  # what runs where Python calls it, and by which kernels find it


def _check_returned(made: Any) -> None:
    kind = made.signature.return_type
    if any(isinstance(one, numba.types.Array) for one in getattr(kind, "types", (kind,))):
        raise TypeError(f"{made.fndesc.qualname}: expected a part to return numbers or a record, got {kind}")


def _compiled(function: Function, signature: Any) -> Function:
    """Where neither the source folder nor the user's cache folder can be written, it compiles at every start."""
    njit: Any = numba.njit
    options: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}  # no C code calls a kernel
    try:
        result = njit(cache=True, **options)(function)
        cache_file = result._cache._cache_file
        cache_file._source_stamp = fingerprint(function, options)
        key_by_fields(result._cache)
        share_between_processes(cache_file)
        read_beside_source(cache_file, function)
    except RuntimeError:
        result = njit(**options)(function)
    result.compile(signature)
    result.disable_compile()
    return cast("Function", result)
