"""Language models: split into prefill and generate models by ``npuw_layer.llm``.

Begin with ``kind``; ``compiled_model`` is what OpenVINO users see of one.
"""
