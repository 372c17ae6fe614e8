"""NPUW_DUMP_…: submodels and their tensors as files, which OpenVINO and NumPy read.

``graphs``    IRs of static models and of their submodels, when they are compiled
``programs``  programs that dump their inputs and outputs
``tensors``   the files of one tensor, and lists of them

Source: docs/reference/npuw.md#further-options; names and contents of the files are NPUW's, which
has these options only in developer builds.
"""

from __future__ import annotations

from npuw_layer.backends.protocols import LoadedModel
from npuw_layer.options.reports import DumpOptions, selects


def dumped(model: LoadedModel, name: str, options: DumpOptions) -> LoadedModel:
    """Wrap a static model so that it dumps tensors, if NPUW_DUMP_IO requests it.

    Args:
        model: a static model, partitioned or not.
        name: the static model's name.
        options: the submodels to dump, and the folder.

    Raises:
        NpuwFault: the folder cannot be created.
    """
    if not selects(options.dump_io):
        return model
    # Imported here: without dumps, their modules are not loaded.
    from npuw_layer.execution.dumps.programs import dumping_model

    return dumping_model(model, name, options)
