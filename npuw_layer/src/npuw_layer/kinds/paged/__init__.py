"""Models whose attention reads K and V in pages (NPUW_PA), as continuous batching has them.

OpenVINO's transformation SDPAToPagedAttention makes them of stateful ones: tokens of any number of
sequences come in one row, [tokens], and each attention is an op PagedAttentionExtension, which
writes K and V into blocks of caches that are the caller's, and reads them there. What a sequence
is, and which blocks are its own, tables say that come with each inference.

A model is compiled for a few numbers of tokens; rows that are left over are padding. All but
attention is static then, and runs on NPUW_DEVICES. Attention is cut out of it (a group that
``execution.partition`` makes a submodel of its own), and the host computes it, for as many tokens
as there are, in the caller's caches: padding reaches none of them. More tokens than the largest
variant takes are read in several runs, each of which finds in the caches what earlier ones wrote.

The programs of attention are bound to memory of any size: caches have as many blocks as their
memory holds, and tables as many entries. So nothing of them is copied, and no program has to know
how many sequences and blocks there are.

    names            what the model's inputs are for
    lengths          for which numbers of tokens it is compiled, and which run when
    heads            how many heads its caches have, and how wide they are
    variant          the graph for some tokens
    isolate          lets attention stand alone
    attention        a device that computes it
    compiled         all variants, compiled
    dispatch         the tables of one inference, whole or for some of its tokens
    runner           one variant with memory for its tokens
    ports, infer_request, compiled_model   OpenVINO's API

Source: NPUW's PACompiledModel after OpenVINO 2026.4 (semi-static variants, dynamic islands of
attention, i32 tables); 2026.4 itself gives such models to the CPU whole.
"""
