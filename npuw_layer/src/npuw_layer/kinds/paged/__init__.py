"""Models whose attention reads K and V in pages (NPUW_PA), for continuous batching.

OpenVINO's transformation SDPAToPagedAttention creates such a model from a stateful one. Tokens of
any number of sequences come in one row, [tokens]. Each attention is an op PagedAttentionExtension,
which writes K and V into blocks of the caller's caches, and reads them there. Tables, which come
with each inference, define the sequences and their blocks.

A model is compiled for a few numbers of tokens; surplus rows are padding. All ops except attention
are then static, and run on NPUW_DEVICES. Attention is cut out (a group that ``execution.partition``
turns into separate submodels), and the host computes it for the actual tokens in the caller's
caches, so padding never enters them. More tokens than the largest variant takes are read in several
runs, each of which attends to the rows that earlier runs cached.

Programs of attention are bound to memory of any size: it determines the number of blocks in caches
and of entries in tables. So caches and tables are not copied, and programs do not depend on the
number of sequences and blocks.

    names            roles of the model's inputs
    lengths          numbers of tokens of the variants, and the choice of variants to run
    variant          the graph for some tokens
    isolate          attention as separate parts
    attention        the device that computes attention
    compiled         all variants, compiled
    dispatch         tables of one inference, for all or some of its tokens
    runner           one variant with memory for its tokens
    ports, infer_request, compiled_model   OpenVINO's API

Source: NPUW's PACompiledModel after OpenVINO 2026.4 (semi-static variants, dynamic islands of
attention, i32 tables); 2026.4 itself runs such models entirely on the CPU.
"""
