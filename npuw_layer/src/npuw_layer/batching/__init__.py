"""Several conversations on one device: continuous batching on static blobs.

slots      a static model that generates for B conversations at once
request    one conversation, spoken to from any thread
schedule   who comes in, whose prompt is read, who generates: no tensors
engine     runs that, step by step
worker     a thread that makes the steps while there is something to do
"""

from npuw_layer.batching.engine import ContinuousBatching as ContinuousBatching
from npuw_layer.batching.engine import StepReport as StepReport
from npuw_layer.batching.request import BatchedRequest as BatchedRequest
from npuw_layer.batching.worker import Worker as Worker
