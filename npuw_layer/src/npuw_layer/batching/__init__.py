"""Several conversations on one device: continuous batching on static blobs.

slots         a static model that generates for B conversations at once
request       one conversation, spoken to from any thread
participant   what it has to say, and where its caches are
schedule      whose prompt is read on, who generates: integers only, no tensors
runner        runs what a step has chosen
engine        conversations that join, wait for a place, take steps and leave
worker        a thread that makes the steps while there is something to do
"""

from npuw_layer.batching.engine import ContinuousBatching as ContinuousBatching
from npuw_layer.batching.engine import StepReport as StepReport
from npuw_layer.batching.request import BatchedRequest as BatchedRequest
from npuw_layer.batching.worker import Worker as Worker
