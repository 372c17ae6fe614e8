"""Compiler of LLVM IR modules, and loader of the object files."""

from __future__ import annotations

import functools
import itertools

import llvmlite.binding as llvm

from driver_layer.engines.native.jit.host import Host

_numbers = itertools.count()


@functools.cache
def _start_llvm() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def compile_ir(text: str, host: Host) -> bytes:
    """Compile a module to an object file.

    Kernels are written with explicit vectors, so LLVM only simplifies and selects instructions.
    """
    _start_llvm()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = host.target_machine()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_unrolling = False
    options.loop_interleaving = False
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    return machine.emit_object(module)


@functools.cache
def _linker() -> llvm.LLJIT:
    _start_llvm()
    return llvm.create_lljit_compiler()


def load_object(image: bytes, symbol: str) -> tuple[int, object]:
    """Load an object file into memory.

    Returns:
        The address of its function ``symbol``, and an object that keeps the code in memory.
    """
    library = llvm.JITLibraryBuilder()
    library.add_object_img(image)
    library.add_current_process()
    library.export_symbol(symbol)
    tracker = library.link(_linker(), f"kernel-{next(_numbers)}")
    return tracker[symbol], tracker
