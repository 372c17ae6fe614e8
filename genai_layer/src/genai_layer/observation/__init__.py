"""Views that a runtime offers of itself: optional abilities, each found by ``isinstance``.

The data are read-only and of one moment; they are for people, and no pipeline depends on them. A
runtime without these abilities, such as the real ``openvino``, is not observable.

batching   state of a batching: caches, conversations, memory, the last step
plans      what would run for a prompt
timelines  times of programs' tasks on the device

Source: ours; npuw_layer has them.
"""
