"""The devices of one Core, as options name them; options may request that models run in parts."""

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
    ProfilesPrograms,
    TakesTurns,
    Urgency,
    abilities,
    ability,
    required,
)
from npuw_layer.errors import OptionError
from npuw_layer.execution.devices.make import make_device, make_npu
from npuw_layer.execution.devices.several import SeveralDevices
from npuw_layer.execution.devices.staged import StagedDevice
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
    """Factory of devices that share memory.

    Args:
        compiler: used instead of the compiler that NPUW_COMPILER names.
        device: used instead of the devices that NPUW_DEVICES names.
    """

    def __init__(self, compiler: Compiler | None = None, device: Device | None = None) -> None:
        self._compiler = compiler
        self._device = device
        self._contexts = Contexts()

    def of_stages(self, options: Options, names: Sequence[str]) -> Device:
        """Return the device of a split model, or a device of several, one for each kind of stage.

        Args:
            options: NPUW_DEVICES and the other options that place stages, for all or for one stage.
            names: the stages in compilation order.

        Raises:
            OptionError: options name something unknown, or contradict one another.
            DeviceError: a device is not available.
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
        """Return the device of a static model: the NPU itself, or with NPUW its submodels' devices.

        Args:
            options: NPU_USE_NPUW, NPUW_DEVICES, and options that isolate groups of ops.
            submodels: names of the model's submodels.
            cut: kind of submodel that options cut; others run whole.
            apart: isolations of such a submodel, by tag, which replace those of the options.

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
        """Return the NPU whose memory a device uses; devices that compute on the host use any.

        Raises:
            OptionError: the device in place of the NPU imports no memory.
        """
        return ability(device, ImportsMemory) or self.remote(options)

    def remote(self, options: Options) -> ImportsMemory:
        """Return the NPU as a factory of remote tensors; errors as ``npu_of``."""
        return required(self.npu(options), ImportsMemory, _NEED_MEMORY)

    def npu(self, options: Options) -> Device:
        """Return the NPU itself, or the device that replaces it."""
        device = self._device or make_npu(options, self._compiler, self._contexts)
        _configure([device], options)
        return device

    def _staged(self, stages: Mapping[StageKind, Options], submodels: Sequence[str]) -> Device:
        """Return a device made of one for each kind of stage; each then reports its placements.

        If the kinds differ only in run-time options, all programs are those of one device.
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
        _configure(made, stages["prefill"])
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
        device = self._made(options, submodels)
        _configure([device], options)
        return device

    def _made(self, options: Options, submodels: Sequence[str], kind: str = "") -> Device:
        return self._device or make_device(options, submodels, self._compiler, self._contexts, kind)

    def _without(self, options: Options, whole: Callable[[Options], Device], name: str) -> Device:
        """Return the devices of NPUW_DEVICES without one."""
        every = device_names(options.devices)
        names = [each for each in every if each != name]
        if not names or names == every or self._device is not None:
            raise OptionError(
                f"NPUW_ONLINE_AVOID: NPUW_DEVICES = {options.devices} has no {name}, or no other "
                "device; add one"
            )
        others = {"devices": ",".join(names), "submodel_device": ""}
        rest = whole(options.model_copy(update=others))
        # A single device is wrapped, too, so that its models report their placements.
        return (
            rest if isinstance(rest, SeveralDevices) else SeveralDevices({names[0]: lambda: rest})
        )


def _configure(devices: Sequence[Device], options: Options) -> None:
    """Pass PERF_COUNT and a model's urgency to its devices, before programs are loaded.

    Raises:
        OptionError: the options set an urgency, and no device schedules programs.
    """
    if options.perf_count:
        for device in abilities(devices, ProfilesPrograms):
            device.profile_programs()
    urgency = Urgency(options.model_priority, options.workload_type)
    able = any([device.set_urgency(urgency) for device in abilities(devices, TakesTurns)])
    if urgency != Urgency() and not able:
        raise OptionError(
            f"MODEL_PRIORITY, WORKLOAD_TYPE: NPUW_DEVICES = {options.devices} runs programs in "
            "order of submission; leave them out, or use the NPU"
        )


def _alike(stages: Mapping[StageKind, Options], names: frozenset[str]) -> bool:
    """Return whether some options are equal in all stages."""
    found = [[getattr(own, NAMES[name]) for name in sorted(names)] for own in stages.values()]
    return all(each == found[0] for each in found)
