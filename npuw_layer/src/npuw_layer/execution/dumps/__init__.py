"""NPUW_DUMP_…: submodels and their tensors as files, which OpenVINO and NumPy read.

``graphs``    IRs of static models and of their submodels, when they are compiled
``programs``  programs that write down what goes in and out
``tensors``   the files of one tensor, and lists of them

Source: fact sheet npuw §b.2 and §f 8; names of files and what is in them are the original's, which
has all this in builds for its developers alone.
"""

from __future__ import annotations

from npuw_layer.backends.protocols import LoadedModel
from npuw_layer.options.reports import DumpOptions, selects


def dumped(model: LoadedModel, name: str, options: DumpOptions) -> LoadedModel:
    """Let a static model write down tensors, if NPUW_DUMP_IO says so.

    Args:
        model: it may be one in parts.
        name: the static model's.
        options: which submodels, and where to.

    Raises:
        NpuwFault: the folder cannot be made.
    """
    if not selects(options.dump_io):
        return model
    # Imported here: who writes nothing loads nothing of it.
    from npuw_layer.execution.dumps.programs import dumping_model

    return dumping_model(model, name, options)
