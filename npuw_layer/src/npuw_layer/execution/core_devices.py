"""The devices of one Core, as options name them; models run in parts where options ask for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import (
    STATIC_MODEL,
    Compiler,
    Contexts,
    Device,
    ImportsMemory,
    ability,
    required,
)
from npuw_layer.errors import OptionError
from npuw_layer.execution.devices.make import make_device, make_npu
from npuw_layer.execution.devices.several import SeveralDevices
from npuw_layer.execution.devices.staged import StagedDevice
from npuw_layer.execution.devices.told import tell, told
from npuw_layer.execution.isolations import in_parts
from npuw_layer.options import NAMES, RUN_TIME, Options
from npuw_layer.options.devices import device_names
from npuw_layer.options.stages import (
    KINDS,
    RUNS,
    WHERE,
    StageKind,
)

_NEED_MEMORY = "static models and remote tensors"

if TYPE_CHECKING:
    from npuw_layer.execution.partition.ports import Isolation


class CoreDevices:
    """Makes devices; all of them share memory.

    Args:
        compiler: used instead of the one that NPUW_COMPILER names.
        device: used instead of those that NPUW_DEVICES names.
    """

    def __init__(self, compiler: Compiler | None = None, device: Device | None = None) -> None:
        self._compiler = compiler
        self._device = device
        self._contexts = Contexts()

    def of_stages(self, options: Options, names: Sequence[str]) -> Device:
        """Make the device of a split model, or a device for each kind of its stages.

        Args:
            options: NPUW_DEVICES and what else decides where stages run, of all or of one stage.
            names: the stages in the order in which they are compiled.

        Raises:
            OptionError: options name what there is not, or contradict one another.
            DeviceError: a device is not there.
        """
        own: dict[StageKind, Options] = {kind: options.of_stage(kind) for kind in KINDS}
        if _alike(own, WHERE):
            return self._in_parts(own["prefill"], partial(self._whole, submodels=names))
        return self._staged(own, names)

    def of_static(
        self,
        options: Options,
        submodels: Sequence[str] = (STATIC_MODEL,),
        cut: str = STATIC_MODEL,
        apart: Mapping[str, Isolation] | None = None,
    ) -> Device:
        """Make the device of a static model: the NPU itself, or with NPUW those of its submodels.

        Args:
            options: NPU_USE_NPUW and NPUW_DEVICES, and what is to run apart.
            submodels: the static models that a model consists of.
            cut: the kind of submodel that is cut as options say; others run whole.
            apart: in place of these cuts, the parts of such a submodel that run apart, by tag.

        Raises:
            OptionError, DeviceError: as ``of_stages``.
        """
        if not options.use_npuw:
            npu = self.npu(options)
            required(npu, ImportsMemory, _NEED_MEMORY)
            return npu
        whole = partial(self._whole, submodels=submodels)
        return self._in_parts(options, whole, static=cut, apart=apart)

    def npu_of(self, device: Device, options: Options) -> ImportsMemory:
        """The NPU whose memory a device uses; devices that compute on the host use any.

        Raises:
            OptionError: a device in its place imports no memory.
        """
        return ability(device, ImportsMemory) or self.remote(options)

    def remote(self, options: Options) -> ImportsMemory:
        """The NPU as what remote tensors are made by; errors as ``npu_of``."""
        return required(self.npu(options), ImportsMemory, _NEED_MEMORY)

    def npu(self, options: Options) -> Device:
        """The NPU itself, or the device that was given in its place."""
        device = self._device or make_npu(options, self._compiler, self._contexts)
        return told(device, options)

    def _staged(self, stages: Mapping[StageKind, Options], submodels: Sequence[str]) -> Device:
        """Make a device for each kind; where they run apart, each tells where that is.

        Where they differ in what counts when they run alone, programs are those of one device.
        """
        made: list[Device] = []
        apart, same = not _alike(stages, RUNS), _alike(stages, WHERE - RUN_TIME)

        def whole(options: Options, kind: StageKind) -> Device:
            made.append(self._made(options, submodels, kind if apart else ""))
            return made[-1]

        device = StagedDevice(
            {
                kind: self._in_parts(options, partial(whole, kind=kind), KINDS if same else [kind])
                for kind, options in stages.items()
            }
        )
        tell(made, stages["prefill"])
        return device

    def _in_parts(
        self,
        options: Options,
        whole: Callable[[Options], Device],
        kinds: Sequence[StageKind] = KINDS,
        static: str = STATIC_MODEL,
        apart: Mapping[str, Isolation] | None = None,
    ) -> Device:
        without = partial(self._without, options, whole)
        return in_parts(whole(options), options, without, kinds, static, apart)

    def _whole(self, options: Options, submodels: Sequence[str]) -> Device:
        return told(self._made(options, submodels), options)

    def _made(self, options: Options, submodels: Sequence[str], kind: str = "") -> Device:
        return self._device or make_device(options, submodels, self._compiler, self._contexts, kind)

    def _without(self, options: Options, whole: Callable[[Options], Device], name: str) -> Device:
        """Make the devices of NPUW_DEVICES but one."""
        every = device_names(options.devices)
        names = [each for each in every if each != name]
        if not names or names == every or self._device is not None:
            raise OptionError(
                f"NPUW_ONLINE_AVOID: NPUW_DEVICES = {options.devices} has no {name}, or nothing "
                "that takes over"
            )
        others = {"devices": ",".join(names), "submodel_device": ""}
        rest = whole(options.model_copy(update=others))
        # Even one is taken as several are, whose models tell where they run.
        return (
            rest if isinstance(rest, SeveralDevices) else SeveralDevices({names[0]: lambda: rest})
        )


def _alike(stages: Mapping[StageKind, Options], names: frozenset[str]) -> bool:
    """Whether some options are the same in all stages."""
    found = [[getattr(own, NAMES[name]) for name in sorted(names)] for own in stages.values()]
    return all(each == found[0] for each in found)
