"""Language models: split into prefill and generate models by ``npuw_layer.llm``.

Begin with ``kind``; ``compiled_model`` has the interface for OpenVINO users.
"""
