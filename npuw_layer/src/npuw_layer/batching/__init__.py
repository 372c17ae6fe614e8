"""Several conversations on one device: continuous batching on static blobs.

slots           a static model that reads tokens of B conversations together
request         one conversation, usable from any thread
participant     a conversation's pending tokens and its caches
places          caches and models of conversations, which others use again
schedule        order of the prompts to read, and the generating conversations; integers only
shared_prefill  choice of the short prompts that one prefill run reads
runner          the static models of one step's choices, and their execution
engine          conversations that join, wait for a place, take part in steps, and leave
worker          a thread that runs steps while work is pending
observed        counts of one step, and the state of a batching at one moment
observe         reads that state from what conversations count
memory_map      memory that a batching uses, by purpose
"""

from npuw_layer.batching.engine import ContinuousBatching as ContinuousBatching
from npuw_layer.batching.observed import StepReport as StepReport
from npuw_layer.batching.request import BatchedRequest as BatchedRequest
from npuw_layer.batching.worker import Worker as Worker
