"""Routes for the page: ``/npu/state``, ``/npu/events`` and ``/npu/plan``.

schema     JSON of the routes
view       state of a model as JSON, with the tasks of a step on the device
routes     the routes
"""

from genai_layer.serve.observe.routes import router as router
