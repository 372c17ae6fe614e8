"""Routes for the page: ``/npu/state``, ``/npu/events`` and ``/npu/plan``.

schema     JSON of the routes
timelines  tasks of a step on the device, engine by engine
view       state of a model as JSON
routes     the routes
"""

from genai_layer.serve.observe.routes import router as router
